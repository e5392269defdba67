package client

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Whatever code a delete is refused with, its text may repeat the sandbox's environment, which a state need not know.
func TestDeleteRefusalsAreScrubbed(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for _, call := range []string{guardedDelete, plainDelete} {
			t.Run(code.String()+" "+call, func(t *testing.T) {
				f := newFake()
				f.serving = call == guardedDelete
				f.put("web", idA, ready).Spec.Environment = map[string]string{"K": canary}
				f.hooks[call] = func(*fake, int, any) error { return status.Error(code, "the driver failed with K="+canary) }
				serve(t, f, func(ctx context.Context, c *Client) {
					_, err := c.Delete(ctx, web, true)
					if code == codes.NotFound { // not shown
						return
					}
					if err == nil || strings.Contains(err.Error(), canary) || !strings.Contains(err.Error(), "the driver failed with K="+redacted) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The end of the context does not keep a refusal from being shown; that the sandbox cannot be seen does.
func TestDeleteRefusalAfterTheEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		get  error
		want string
	}{
		"seen":     {nil, "the driver failed with K=" + redacted},
		"not seen": {status.Error(codes.PermissionDenied, "no scope"), "could not be read: GetSandbox: PERMISSION_DENIED: no scope"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready).Spec.Environment = map[string]string{"K": canary}
			if tc.get != nil {
				f.hooks["GetSandbox"] = func(*fake, int, any) error { return tc.get }
			}
			f.hooks[guardedDelete] = func(*fake, int, any) error {
				return status.Error(codes.Unavailable, "the driver failed with K="+canary)
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := c.Delete(ctx, web, false)
				if e := as[*WaitError](t, err); strings.Contains(e.Error(), canary) || !strings.Contains(e.Error(), tc.want) {
					t.Error(e)
				}
			})
		})
	}
}
