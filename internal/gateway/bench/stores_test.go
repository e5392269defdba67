package bench

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"google.golang.org/protobuf/types/known/structpb"
	_ "modernc.org/sqlite" // the driver "sqlite"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/pgtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/processtest"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/postgres"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// storeUnderTest is a kind of database.
type storeUnderTest struct {
	name   string
	binary string
	// newDatabase makes an empty database and returns the gateway's URL of it.
	newDatabase func(b *testing.B) string
	open        func(ctx context.Context, url string) (store.Store, error)
	// raw opens it without the store, as many connections as clients where the database takes several writers.
	raw         func(url string) (*sql.DB, error)
	writers     int
	deleteQuery string
}

func stores(b *testing.B) []storeUnderTest {
	b.Helper()
	binary := processtest.Build(b, "-C", filepath.Join("..", "..", "..")) // the gateway is of the main module
	return []storeUnderTest{
		{
			name: "SQLite", binary: binary,
			newDatabase: func(b *testing.B) string { return "sqlite:" + filepath.Join(b.TempDir(), "gateway.db") },
			open: func(ctx context.Context, url string) (store.Store, error) {
				return sqlite.Open(ctx, url[len("sqlite:"):])
			},
			raw: func(url string) (*sql.DB, error) {
				return sql.Open("sqlite", "file:"+url[len("sqlite:"):]+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&_txlock=immediate")
			},
			writers: 1, deleteQuery: "DELETE FROM sandboxes WHERE id = ? AND resource_version = 1",
		},
		{
			name: "PostgreSQL", binary: binary,
			newDatabase: func(b *testing.B) string { return pgtest.NewDatabase(b) },
			open: func(ctx context.Context, url string) (store.Store, error) {
				return postgres.Open(ctx, url)
			},
			raw:     func(url string) (*sql.DB, error) { return sql.Open("pgx", url) },
			writers: 64, deleteQuery: "DELETE FROM sandboxes WHERE id = $1 AND resource_version = 1",
		},
	}
}

func (s storeUnderTest) gateway(b *testing.B) *gateway {
	b.Helper()
	return start(b, s.binary, s.newDatabase(b))
}

// fill makes rows without a gateway, which must not run yet, and returns their ids.
func (s storeUnderTest) fill(b *testing.B, url string, rows int) []string {
	b.Helper()
	st, err := s.open(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	const workers = 64
	ids := make([]string, rows)
	config, err := structpb.NewStruct(map[string]any{"simulated": map[string]any{"never_ready": true}})
	if err != nil {
		b.Fatal(err)
	}
	each(b, workers, func(worker int) error {
		for i := worker; i < rows; i += workers {
			ids[i] = uuid.NewString()
			_, err := st.CreateSandbox(b.Context(), store.DefaultWorkspace, func(time.Time) store.Sandbox {
				return store.Sandbox{
					ID: ids[i], Name: rowName(i),
					Spec: &openshellv1.SandboxSpec{
						Template:    &openshellv1.SandboxTemplate{Image: "nvcr.io/nvidia/base/ubuntu:24.04", DriverConfig: config},
						Environment: map[string]string{"ROLE": "worker", "REGION": "somewhere"},
					},
					Status: &openshellv1.SandboxStatus{Phase: openshellv1.SandboxPhase_SANDBOX_PHASE_STOPPED},
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return ids
}

func rowName(i int) string { return fmt.Sprintf("row-%d", i) }

// bare measures the statement that removes a row, without a gateway: each committed by itself, by n clients, and as many
// in one transaction as there are clients.
func (s storeUnderTest) bare(b *testing.B, n int) (single, grouped float64) {
	b.Helper()
	url := s.newDatabase(b)
	total := n * deletesPerClient
	ids := s.fill(b, url, 2*total)
	db, err := s.raw(url)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(s.writers)
	db.SetMaxIdleConns(s.writers)
	stmt, err := db.PrepareContext(b.Context(), s.deleteQuery)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = stmt.Close() }()
	single = perSecond(total, each(b, n, func(client int) error {
		for i := range deletesPerClient {
			if err := removeOne(b.Context(), stmt, ids[client*deletesPerClient+i]); err != nil {
				return err
			}
		}
		return nil
	}))
	began := time.Now()
	for group := range deletesPerClient {
		tx, err := db.BeginTx(b.Context(), nil)
		if err != nil {
			b.Fatal(err)
		}
		inTx := tx.StmtContext(b.Context(), stmt)
		for client := range n {
			if err := removeOne(b.Context(), inTx, ids[total+group*n+client]); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	return single, perSecond(total, time.Since(began))
}

func removeOne(ctx context.Context, stmt *sql.Stmt, id string) error {
	result, err := stmt.ExecContext(ctx, id)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows removed (%w)", n, err)
	}
	return nil
}
