package client

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// All pages are read, and a page that leads to itself is refused.
func TestSandboxes(t *testing.T) {
	for name, tc := range map[string]struct {
		next  map[string]string // page token to the next one
		count int
	}{
		"one page":    {nil, 1},
		"three pages": {map[string]string{"": "a", "a": "b"}, 3},
		"a circle":    {map[string]string{"": "a", "a": "a"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.put("web", idA, ready)
			pages := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if list, ok := reply.(*openshellv1.ListSandboxesResponse); ok {
					list.NextPageToken = tc.next[cast[*openshellv1.ListSandboxesRequest](req).GetPageToken()]
				}
				return err
			})
			serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", DialOptions: []grpc.DialOption{pages}}, func(ctx context.Context, c *Client) {
				all, err := c.Sandboxes(ctx, "default", "")
				if tc.count == 0 {
					want[*BrokenReplyError](t, err)
				} else if err != nil || len(all) != tc.count {
					t.Errorf("%d sandboxes, %v", len(all), err)
				}
			})
		})
	}
}
