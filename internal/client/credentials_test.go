package client

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func login(token string, end time.Time) string {
	return fmt.Sprintf(`{"access_token": %q, "refresh_token": "r", "expires_at": %d}`, token, end.Unix())
}

// A token in a file is read for every call. Once the file holds none, no call is made.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	writeFile(t, path, "\n first\t\n")
	f := newFake()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: TokenFile(path)}, func(ctx context.Context, c *Client) {
		for _, content := range []string{"first", "second\n"} {
			writeFile(t, path, content)
			if _, err := c.Workspace(ctx, "default"); err != nil {
				t.Error(err)
			}
		}
		if got := f.tokens; !slices.Equal(got, []string{"Bearer first", "Bearer first", "Bearer second"}) {
			t.Errorf("tokens %v", got)
		}
		calls := len(f.calls)
		for _, content := range []string{"", " \n", "two words " + canary} {
			writeFile(t, path, content)
			_, err := c.Create(ctx, newWeb(), nil)
			if e := as[*CredentialError](t, err); e.Attribute != "token_file" || strings.Contains(e.Error()+e.Remedy, canary) {
				t.Errorf("%+v", e)
			}
		}
		if len(f.calls) != calls {
			t.Errorf("calls %v", f.calls[calls:])
		}
	})
}

// A call refused for its token is made once more with a new one, whether it changes something or not, and only if there is
// a new one.
func TestRefusedToken(t *testing.T) {
	for name, tc := range map[string]struct {
		credentials func(path string) Credentials
		content     func(token string) string
		refused     func(*testing.T, error)
	}{
		"token file": {
			func(path string) Credentials { return TokenFile(path) }, func(token string) string { return token },
			hasCode(codes.Unauthenticated),
		},
		"stored login": {
			func(path string) Credentials { return StoredLogin{Path: path, Gateway: "prod"} },
			func(token string) string { return login(token, time.Now().Add(time.Hour)) },
			func(t *testing.T, err error) {
				t.Helper()
				if e := as[*CredentialError](t, err); e.Attribute != "gateway" || !strings.Contains(e.Remedy, "openshell gateway login prod") {
					t.Errorf("%+v", e)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "token")
			writeFile(t, path, tc.content("old"))
			f := newFake()
			serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", Credentials: tc.credentials(path)}, func(ctx context.Context, c *Client) {
				if _, err := c.Workspace(ctx, "default"); err != nil {
					t.Error(err)
				}
				revoke := func(f *fake, _ int, _ any) error {
					if f.tokens[len(f.tokens)-1] == "Bearer old" {
						writeFile(t, path, tc.content("new")) // somebody renews it at just that moment
						return status.Error(codes.Unauthenticated, "old")
					}
					return nil
				}
				f.hooks = map[string]hook{"CreateSandbox": revoke}
				if _, err := c.Create(ctx, newWeb(), nil); err != nil || f.count("CreateSandbox") != 2 || len(f.sandboxes) != 1 {
					t.Errorf("%v, calls %v", err, f.calls)
				}
				f.hooks = map[string]hook{"GetWorkspace": refuse(codes.Unauthenticated)}
				calls := len(f.calls)
				_, err := c.Workspace(ctx, "default")
				tc.refused(t, err)
				if len(f.calls) != calls+1 {
					t.Errorf("calls %v", f.calls[calls:])
				}
			})
		})
	}
}

// Before the first change, and once, the gateway is asked whether it takes the credentials.
func TestAccessIsProvedBeforeAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		probe hook
		ok    bool
	}{
		"known":           {nil, true},
		"not allowed":     {refuse(codes.PermissionDenied), true},
		"stock":           {refuse(codes.Unimplemented), true},
		"unauthenticated": {refuse(codes.Unauthenticated), false},
		"unreachable":     {refuse(codes.Unavailable), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready)
			if tc.probe != nil {
				f.hooks["GetCurrentUser"] = tc.probe
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				for range 2 {
					_, created := c.Create(ctx, newWeb(), func() string { return "other" })
					_, deleted := c.Delete(ctx, web, false)
					if (created == nil) != tc.ok && !isNameTaken(created) || (deleted == nil) != tc.ok {
						t.Errorf("create %v, delete %v", created, deleted)
					}
				}
				if probed := f.count("GetCurrentUser"); tc.ok && probed != 1 {
					t.Errorf("%d probes", probed)
				}
				if changed := f.count("CreateSandbox") + f.count("DeleteSandbox"); (changed > 0) != tc.ok {
					t.Errorf("calls %v", f.calls)
				}
			})
		})
	}
}

// Headers go out with every call, in lower case, and what a gateway repeats of them does not come back.
func TestHeadersAreSent(t *testing.T) {
	f := newFake()
	cfg := Config{Endpoint: "http://127.0.0.1:1", Headers: map[string]string{"CF-Access-Client-Secret": canary, "x-tenant": "blue"}}
	serveConfig(t, f, cfg, func(ctx context.Context, c *Client) {
		f.hooks["GetWorkspace"] = func(f *fake, _ int, _ any) error {
			return status.Errorf(codes.Internal, "you sent %v", map[string][]string(f.headers))
		}
		_, err := c.Workspace(ctx, "default")
		if got := f.headers.Get("cf-access-client-secret"); !slices.Equal(got, []string{canary}) || !slices.Equal(f.headers.Get("x-tenant"), []string{"blue"}) {
			t.Errorf("%d headers", len(got))
		}
		if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), redacted) {
			t.Error(err)
		}
	})
}
