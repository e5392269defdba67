package client

import (
	"context"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

const (
	attachCall = "ConditionalSandboxes/AttachSandboxProvider"
	detachCall = "ConditionalSandboxes/DetachSandboxProvider"
)

// withProviders is a gateway whose sandbox has providers.
func withProviders(names ...string) *fake {
	f := newFake()
	f.put("web", idA, ready).Spec.Providers = names
	return f
}

// Detaches come before attaches, and what others have done meanwhile is left alone.
func TestSetProviders(t *testing.T) {
	for name, tc := range map[string]struct {
		attached, before, want []string
		calls                  string
		after                  []string
	}{
		"one for another":              {[]string{"a"}, []string{"a"}, []string{"b"}, "-a +b", []string{"b"}},
		"sorted":                       {[]string{"d", "c"}, []string{"c", "d"}, []string{"b", "a"}, "-c -d +a +b", []string{"a", "b"}},
		"not known before":             {[]string{"x", "a"}, nil, []string{"a", "b"}, "-x +b", []string{"a", "b"}},
		"none":                         {[]string{"a", "b"}, []string{"a", "b"}, []string{}, "-a -b", nil},
		"attached by another client":   {[]string{"a", "x"}, []string{"a"}, []string{"a", "b"}, "+b", []string{"a", "b", "x"}},
		"detached by another client":   {nil, []string{"a"}, []string{"a", "b"}, "+a +b", []string{"a", "b"}},
		"done by another client":       {[]string{"b"}, []string{"a"}, []string{"b"}, "", []string{"b"}},
		"as it is, not managed before": {[]string{"a"}, nil, []string{"a"}, "", []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProviders(tc.attached...)
			var calls []string
			f.hooks[attachCall] = func(_ *fake, _ int, req any) error {
				calls = append(calls, "+"+cast[*conditionalv1.ConditionalAttachSandboxProviderRequest](req).GetRequest().GetProvider())
				return nil
			}
			f.hooks[detachCall] = func(_ *fake, _ int, req any) error {
				calls = append(calls, "-"+cast[*conditionalv1.ConditionalDetachSandboxProviderRequest](req).GetRequest().GetProvider())
				return nil
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, err := c.SetProviders(ctx, web, tc.before, tc.want)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(calls, " "); got != tc.calls {
					t.Errorf("calls %q, want %q", got, tc.calls)
				}
				if got := slices.Sorted(slices.Values(sb.GetSpec().GetProviders())); !slices.Equal(got, tc.after) {
					t.Errorf("providers %v, want %v", got, tc.after)
				}
			})
		})
	}
}

// A call is made again only when it was refused for what passes by itself; a lost one never.
func TestSetProvidersTrouble(t *testing.T) {
	conflict := (&apierr.VersionConflict{Current: 7}).GRPCStatus().Err()
	for name, tc := range map[string]struct {
		key   string // of the hook
		err   error
		calls int
		fails func(*testing.T, error)
	}{
		"a write in between": {attachCall, conflict, 2, nil},
		"mixed fleet":        {attachCall, status.Error(codes.Unimplemented, "unknown method"), 2, nil},
		"mixed for good":     {attachCall, nil, mixedFleetTries, func(t *testing.T, err error) { t.Helper(); want[*MixedFleetError](t, err) }},
		"reply lost":         {"lose " + attachCall, unavailable(), 1, nil},
		"never arrived":      {attachCall, unavailable(), 1, func(t *testing.T, err error) { t.Helper(); want[*UnansweredChangeError](t, err) }},
		"refused":            {attachCall, status.Error(codes.FailedPrecondition, "no such provider"), 1, func(t *testing.T, err error) { t.Helper(); want[*CallError](t, err) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := withProviders("a")
			f.hooks[tc.key] = one(1, tc.err)
			if tc.err == nil {
				f.hooks[tc.key] = refuse(codes.Unimplemented)
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, err := c.SetProviders(ctx, web, []string{"a"}, []string{"b"})
				if n := f.count(attachCall); n != tc.calls {
					t.Errorf("%d attaches", n)
				}
				if tc.fails == nil && (err != nil || !slices.Equal(sb.GetSpec().GetProviders(), []string{"b"})) {
					t.Errorf("%v, %v", sb, err)
				}
				if tc.fails != nil {
					tc.fails(t, err)
					if !strings.Contains(err.Error(), `provider "b" was not attached`) || sb == nil || len(sb.GetSpec().GetProviders()) > 0 {
						t.Errorf("%v, %v: the detach must show", sb, err)
					}
				}
			})
		})
	}
}

// A sandbox that was replaced gets nothing and loses nothing, whenever that happened.
func TestSetProvidersSparesStrangers(t *testing.T) {
	replace := func(f *fake) { f.put("web", idB, ready).Spec.Providers = []string{"a"} }
	for name, when := range map[string]func(f *fake){
		"before":          replace,
		"before the call": func(f *fake) { f.hooks[detachCall] = func(f *fake, _ int, _ any) error { replace(f); return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			f := withProviders("a")
			when(f)
			serve(t, f, func(ctx context.Context, c *Client) {
				_, err := c.SetProviders(ctx, web, []string{"a"}, []string{"b"})
				if e := as[*GoneError](t, err); e.Gone.CurrentID != idB {
					t.Errorf("%+v", e)
				}
				if got := f.sandboxes["web"].GetSpec().GetProviders(); !slices.Equal(got, []string{"a"}) {
					t.Errorf("the stranger has %v", got)
				}
			})
		})
	}
	t.Run("being deleted", func(t *testing.T) {
		f := withProviders("a")
		f.sandboxes["web"].Status.Phase = deleting
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.SetProviders(ctx, web, []string{"a"}, []string{"b"})
			if e := as[*FailedError](t, err); e.Error() != "the sandbox is being deleted, so nothing is changed any more: phase deleting" {
				t.Error(e)
			}
			if f.count(attachCall)+f.count(detachCall) > 0 {
				t.Error("a call was made")
			}
		})
	})
	t.Run("unaware gateway", func(t *testing.T) {
		f := withProviders("a")
		f.serving = false
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.SetProviders(ctx, web, []string{"a"}, []string{"b"})
			want[*NotSupportedError](t, err)
		})
	})
}

// Trouble in asking whether the gateway has the service at all passes like any other.
func TestSetProvidersAsksAgainForSupport(t *testing.T) {
	f := withProviders()
	f.hooks[attachCall] = one(1, status.Error(codes.Unimplemented, "unknown method"))
	f.hooks["Health/Check"] = func(_ *fake, nth int, _ any) error {
		if nth <= readAttempts {
			return unavailable()
		}
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		if sb, err := c.SetProviders(ctx, web, nil, []string{"b"}); err != nil || !slices.Equal(sb.GetSpec().GetProviders(), []string{"b"}) {
			t.Errorf("%v, %v", sb, err)
		}
	})
}

// A change that never comes says so in words that fit it.
func TestSetProvidersTimesOut(t *testing.T) {
	f := withProviders()
	f.hooks["GetCurrentUser"] = refuse(codes.Unavailable)
	serve(t, f, func(ctx context.Context, c *Client) {
		_, err := c.SetProviders(ctx, web, nil, []string{"b"})
		if e := as[*WaitError](t, err); !strings.Contains(e.Error(), "the change was not made within 10m0s") || f.count(attachCall) > 0 {
			t.Error(e)
		}
	})
}
