package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/postgres"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// OpenStore opens the database at a URL: sqlite:PATH, sqlite::memory: for one that is gone when it is closed, or
// postgres://…, which several gateways may share. No error repeats a password.
func OpenStore(ctx context.Context, databaseURL string) (store.Store, error) {
	scheme, rest, _ := strings.Cut(databaseURL, ":")
	switch scheme {
	case sqliteScheme:
		if rest == "" {
			return nil, fmt.Errorf("the database URL %q names no file; it must be sqlite:PATH, or sqlite::memory: for one that ends with the process", databaseURL)
		}
		s, err := sqlite.Open(ctx, sqlitePath(rest))
		if err != nil {
			return nil, err // and not a nil pointer in an interface
		}
		return s, nil
	case "postgres", "postgresql":
		s, err := postgres.Open(ctx, databaseURL)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	return nil, errors.New("the database URL begins with neither sqlite: nor postgres:; " +
		"it must be sqlite:PATH, sqlite::memory: or postgres://user:password@host:5432/database")
}

const sqliteScheme = "sqlite"

func sqlitePath(rest string) string { return strings.TrimPrefix(rest, "//") }

// OpenExistingStore is [OpenStore] for what a gateway has left: where there is no SQLite file, it makes none but fails.
func OpenExistingStore(ctx context.Context, databaseURL string) (store.Store, error) {
	if scheme, rest, _ := strings.Cut(databaseURL, ":"); scheme == sqliteScheme && rest != "" {
		if _, err := os.Stat(sqlitePath(rest)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("open database %s: there is no database; name the one that the gateway has", sqlitePath(rest))
		}
	}
	return OpenStore(ctx, databaseURL)
}

// StoreName is a database URL fit for a log: credentials that it may hold are left out.
func StoreName(text string) string {
	u, err := url.Parse(text)
	switch {
	case strings.HasPrefix(text, "sqlite:"):
		return text
	case err != nil:
		return "postgres"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
