package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/postgres"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// OpenStore opens the database at a URL: sqlite:PATH, sqlite::memory: for one that is gone when it is closed, or
// postgres://…, which several gateways may share. It is made or brought up to date as needed. No error repeats a password.
func OpenStore(ctx context.Context, databaseURL string) (store.Store, error) {
	s, err := open(ctx, databaseURL, sqlite.Open, postgres.Open)
	if err != nil {
		return nil, err // and not a nil pointer in an interface
	}
	return s, nil
}

// OpenAudit opens the database at a URL to read what a gateway has recorded of deletes, and leaves it as it is.
func OpenAudit(ctx context.Context, databaseURL string) (store.AuditReader, error) {
	a, err := open(ctx, databaseURL, sqlite.OpenAudit, postgres.OpenAudit)
	if err != nil {
		return nil, err
	}
	return a, nil
}

func open[T any](ctx context.Context, databaseURL string, file, server func(context.Context, string) (*T, error)) (*T, error) {
	scheme, rest, _ := strings.Cut(databaseURL, ":")
	switch scheme {
	case "sqlite":
		if rest == "" {
			return nil, fmt.Errorf("the database URL %q names no file; it must be sqlite:PATH, or sqlite::memory: for one that ends with the process", databaseURL)
		}
		return file(ctx, strings.TrimPrefix(rest, "//"))
	case "postgres", "postgresql":
		return server(ctx, databaseURL)
	}
	return nil, errors.New("the database URL begins with neither sqlite: nor postgres:; " +
		"it must be sqlite:PATH, sqlite::memory: or postgres://user:password@host:5432/database")
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
