package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlstore"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/storetest"
)

func open(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "a.db")) })
}

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, sqlite.Memory) })
}
