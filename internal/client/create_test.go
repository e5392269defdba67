package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const createCall = "OpenShell/CreateSandbox"

func newWeb() *openshellv1.CreateSandboxRequest {
	return &openshellv1.CreateSandboxRequest{Name: "web", WorkspaceScope: scope("default"), Labels: map[string]string{"team": "a"}}
}

func TestCreateMarksWhatItMakes(t *testing.T) {
	f := newFake()
	serve(t, f, func(ctx context.Context, c *Client) {
		request := newWeb()
		sb, err := c.Create(ctx, request, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := sb.GetMetadata().GetLabels(); got["team"] != "a" || got[LabelManagedBy] != ManagedByTerraform {
			t.Errorf("labels %v", got)
		}
		if !IsUUID(sb.GetMetadata().GetAnnotations()[AnnotationCreateID]) {
			t.Errorf("annotations %v", sb.GetMetadata().GetAnnotations())
		}
		if len(request.GetLabels()) != 1 || len(request.GetAnnotations()) != 0 {
			t.Error("the caller's request was changed")
		}
	})
}

func TestCreateNeverAdopts(t *testing.T) {
	f := newFake()
	f.put("web", idB, ready)
	serve(t, f, func(ctx context.Context, c *Client) {
		start := time.Now()
		sb, err := c.Create(ctx, newWeb(), nil)
		e := as[*NameTakenError](t, err)
		if sb != nil || IDOf(e.Holder) != idB || e.Name != "web" || e.Workspace != "default" {
			t.Errorf("%v, %+v", sb, e)
		}
		if time.Since(start) > 2*time.Second || f.count(createCall) != 1 {
			t.Error("a foreign holder must fail at once")
		}
	})
}

// A gateway that answers a create with an existing sandbox is not followed.
func TestCreateChecksTheReply(t *testing.T) {
	f := newFake()
	f.hooks[createCall] = func(_ *fake, _ int, req any) error {
		cast[*openshellv1.CreateSandboxRequest](req).Annotations[AnnotationCreateID] = idB
		return nil
	}
	serve(t, f, func(ctx context.Context, c *Client) {
		sb, err := c.Create(ctx, newWeb(), nil)
		want[*BrokenReplyError](t, err)
		if sb != nil {
			t.Error("adopted", sb)
		}
	})
}

// A reply that says nothing of use is no reason to forget the sandbox.
func TestCreateMangledReply(t *testing.T) {
	f := newFake()
	serveConfig(t, f, Config{Endpoint: "http://127.0.0.1:1", DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, req, reply, cc, opts...)
			if created, ok := reply.(*openshellv1.SandboxResponse); ok && strings.HasSuffix(method, createCall) {
				created.Sandbox = nil
			}
			return err
		},
	)}}, func(ctx context.Context, c *Client) {
		sb, err := c.Create(ctx, newWeb(), nil)
		if err != nil || IDOf(sb) != IDOf(f.sandboxes["web"]) {
			t.Errorf("%v, %v", sb, err)
		}
	})
}

// A refusal of a repeat says nothing about the first attempt, whose sandbox may yet come.
func TestCreateRefusedAfterALostReply(t *testing.T) {
	for name, late := range map[string]bool{"it came": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.hooks[createCall] = func(f *fake, nth int, req any) error {
				if nth == 1 {
					return unavailable()
				}
				if late {
					f.put("web", idA, ready).Metadata.Annotations = cast[*openshellv1.CreateSandboxRequest](req).GetAnnotations()
				}
				return status.Error(codes.Unauthenticated, "the token has expired")
			}
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, err := c.Create(ctx, newWeb(), nil)
				if late {
					if err != nil || IDOf(sb) != idA {
						t.Errorf("%v, %v", sb, err)
					}
					return
				}
				want[*OutcomeUnknownError](t, err)
			})
		})
	}
}

// A lost reply: the sandbox is found by its marker, or the create made again, and there is one in the end.
func TestCreateLostReply(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Internal, codes.Unknown} {
		t.Run("created, "+code.String(), func(t *testing.T) {
			f := newFake()
			f.hooks["lose "+createCall] = one(1, status.Error(code, "lost"))
			serve(t, f, func(ctx context.Context, c *Client) {
				sb, err := c.Create(ctx, newWeb(), nil)
				if err != nil || IDOf(sb) != IDOf(f.sandboxes["web"]) {
					t.Errorf("%v, %v", sb, err)
				}
				if n := f.count(createCall); n != 1 {
					t.Errorf("%d creates", n)
				}
			})
		})
	}
	t.Run("never arrived", func(t *testing.T) {
		f := newFake()
		markers := map[string]bool{}
		f.hooks[createCall] = func(_ *fake, nth int, req any) error {
			markers[cast[*openshellv1.CreateSandboxRequest](req).GetAnnotations()[AnnotationCreateID]] = true
			if nth == 1 {
				return unavailable()
			}
			return nil
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			sb, err := c.Create(ctx, newWeb(), nil)
			if err != nil || sb == nil || len(markers) != 1 {
				t.Errorf("%v, %v, markers %v", sb, err, markers)
			}
		})
	})
	t.Run("appears late", func(t *testing.T) {
		f := newFake()
		var late *openshellv1.CreateSandboxRequest
		f.hooks[createCall] = func(_ *fake, _ int, req any) error {
			late = cast[*openshellv1.CreateSandboxRequest](req)
			return unavailable()
		}
		f.hooks["GetSandbox"] = func(f *fake, nth int, _ any) error {
			if nth == 4 {
				f.put("web", idA, ready).Metadata.Annotations = late.GetAnnotations()
			}
			return nil
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			sb, err := c.Create(ctx, newWeb(), nil)
			if err != nil || IDOf(sb) != idA || f.count(createCall) != 1 {
				t.Errorf("%v, %v", sb, err)
			}
		})
	})
	t.Run("committed after the retry was sent", func(t *testing.T) {
		f := newFake()
		var first *openshellv1.CreateSandboxRequest
		f.hooks[createCall] = func(f *fake, nth int, req any) error {
			if nth == 1 {
				first = cast[*openshellv1.CreateSandboxRequest](req)
				return unavailable()
			}
			f.put("web", idA, ready).Metadata.Annotations = first.GetAnnotations()
			return nil // ALREADY_EXISTS
		}
		serve(t, f, func(ctx context.Context, c *Client) {
			sb, err := c.Create(ctx, newWeb(), nil)
			if err != nil || IDOf(sb) != idA {
				t.Errorf("%v, %v", sb, err)
			}
		})
	})
}

func TestCreateUnresolved(t *testing.T) {
	t.Run("a stranger has the name", func(t *testing.T) {
		f := newFake()
		f.hooks[createCall] = func(f *fake, _ int, _ any) error { f.put("web", idB, ready); return unavailable() }
		serve(t, f, func(ctx context.Context, c *Client) {
			sb, err := c.Create(ctx, newWeb(), nil)
			if e := as[*NameTakenError](t, err); sb != nil || IDOf(e.Holder) != idB {
				t.Errorf("%v, %+v", sb, e)
			}
		})
	})
	t.Run("the driver refused", func(t *testing.T) {
		f := newFake()
		f.hooks[createCall] = refuse(codes.Internal)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Create(ctx, newWeb(), nil)
			hasCode(codes.Internal)(t, err)
			if n := f.count(createCall); n != 1 {
				t.Errorf("%d creates", n)
			}
		})
	})
	t.Run("nothing can be found out", func(t *testing.T) {
		f := newFake()
		f.hooks["lose "+createCall] = refuse(codes.Unavailable)
		f.hooks["GetSandbox"] = refuse(codes.PermissionDenied)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Create(ctx, newWeb(), nil)
			if e := as[*OutcomeUnknownError](t, err); e.Name != "web" || !IsUUID(e.CreateID) {
				t.Errorf("%+v", e)
			}
			f.hooks["GetSandbox"] = nil
			if f.sandboxes["web"].GetMetadata().GetAnnotations()[AnnotationCreateID] != as[*OutcomeUnknownError](t, err).CreateID {
				t.Error("the error names another marker than the sandbox has")
			}
		})
	})
}

// An interrupt while the reply is awaited: the sandbox is still looked for, in a context that is not interrupted.
func TestCreateInterrupted(t *testing.T) {
	for name, cause := range map[string]string{"cancelled": "cancel", "timed out": "timeout"} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			serve(t, f, func(ctx context.Context, c *Client) {
				if _, err := c.Version(ctx); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				f.hooks["lose "+createCall] = func(f *fake, _ int, _ any) error {
					if cause == "cancel" {
						cancel()
						return unavailable()
					}
					f.mu.Unlock() // a goroutine that waits for a mutex keeps the bubble's clock from moving
					<-time.After(6 * time.Second)
					f.mu.Lock()
					return unavailable()
				}
				sb, err := c.Create(ctx, newWeb(), nil)
				if err != nil || IDOf(sb) != IDOf(f.sandboxes["web"]) {
					t.Errorf("%v, %v", sb, err)
				}
			})
		})
	}
	t.Run("before it was sent", func(t *testing.T) {
		f := newFake()
		serve(t, f, func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := c.Create(ctx, newWeb(), nil); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if f.count(createCall) != 0 {
				t.Error("sent all the same")
			}
		})
	})
	t.Run("no look is answered", func(t *testing.T) {
		f := newFake()
		serve(t, f, func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithCancel(ctx)
			f.hooks[createCall] = func(*fake, int, any) error { cancel(); return unavailable() }
			f.hooks["GetSandbox"] = refuse(codes.Unavailable)
			_, err := c.Create(ctx, newWeb(), nil)
			hasCode(codes.Unavailable)(t, as[*OutcomeUnknownError](t, err).Lookup)
		})
	})
	t.Run("nothing was made", func(t *testing.T) {
		f := newFake()
		serve(t, f, func(ctx context.Context, c *Client) {
			ctx, cancel := context.WithCancel(ctx)
			f.hooks[createCall] = func(*fake, int, any) error { cancel(); return unavailable() }
			start := time.Now()
			_, err := c.Create(ctx, newWeb(), nil)
			want[*OutcomeUnknownError](t, err)
			if took := time.Since(start); took > graceAfterEnd+time.Second {
				t.Errorf("took %v after the interrupt", took)
			}
		})
	})
}

func TestCreateInventsAnotherName(t *testing.T) {
	f := newFake()
	f.put("web", idB, ready)
	f.put("n1", idB, ready)
	serve(t, f, func(ctx context.Context, c *Client) {
		n := 0
		invent := func() string { n++; return fmt.Sprintf("n%d", n) }
		sb, err := c.Create(ctx, newWeb(), invent)
		if err != nil || sb.GetMetadata().GetName() != "n2" {
			t.Errorf("%v, %v", sb, err)
		}
		f.hooks[createCall] = refuse(codes.AlreadyExists)
		_, err = c.Create(ctx, newWeb(), func() string { return "n1" })
		want[*NameTakenError](t, err)
		if n := f.count(createCall); n != 3+nameTries {
			t.Errorf("%d creates", n)
		}
	})
}

func TestCreateRefused(t *testing.T) {
	for _, code := range []codes.Code{codes.InvalidArgument, codes.FailedPrecondition, codes.PermissionDenied, codes.NotFound, codes.Unauthenticated, codes.ResourceExhausted} {
		f := newFake()
		f.hooks[createCall] = refuse(code)
		serve(t, f, func(ctx context.Context, c *Client) {
			_, err := c.Create(ctx, newWeb(), nil)
			hasCode(code)(t, err)
			if f.count(createCall) != 1 || f.count("GetSandbox") != 0 {
				t.Errorf("%v: calls %v", code, f.calls)
			}
		})
	}
}
