package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// OpenStore opens the database at a URL: sqlite:PATH, or sqlite::memory: for one that is gone when it is closed.
func OpenStore(ctx context.Context, url string) (store.Store, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case !ok || scheme != "sqlite":
		return nil, fmt.Errorf("the database URL begins with %q; it must be sqlite:PATH or sqlite::memory:", scheme)
	case rest == "":
		return nil, fmt.Errorf("the database URL %q names no file; it must be sqlite:PATH or sqlite::memory:", url)
	}
	s, err := sqlite.Open(ctx, strings.TrimPrefix(rest, "//"))
	if err != nil {
		return nil, err // and not a nil pointer in an interface
	}
	return s, nil
}

// StoreName is a database URL fit for a log: credentials that it may hold are left out.
func StoreName(url string) string {
	if scheme, _, ok := strings.Cut(url, ":"); ok && scheme != "sqlite" {
		return scheme
	}
	return url
}

// Version is what Health reports for a build: the version of OpenShell that it speaks, then its own.
func Version(build string) string { return APIVersion + "+reference." + build }
