package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// action is something that callers do: one call or a few.
type action struct {
	name string
	// named are the answers that the contract names for it, where others act on the same names; the first one is what it is
	// for. An answer is a code, and a reason if the error has one.
	named []string
	do    func(ctx context.Context, c *caller) error
}

// mix is all that callers do, each as often as any other.
var mix = slices.Concat(plainCalls, conditionalCalls, objectCalls, configCalls, strayCalls)

const (
	ok                = "OK"
	notFound          = "NotFound"
	alreadyExists     = "AlreadyExists"
	precondition      = "FailedPrecondition"                   // the plain call's own rules
	pending           = "FailedPrecondition OPERATION_PENDING" // of the conditional delete
	mismatch          = "FailedPrecondition SANDBOX_IDENTITY_MISMATCH"
	uncertain         = "FailedPrecondition REQUEST_OUTCOME_UNCERTAIN"
	replayUnavailable = "FailedPrecondition REQUEST_REPLAY_UNAVAILABLE"
	conflict          = "Aborted RESOURCE_VERSION_CONFLICT"
	objectConflict    = "Aborted" // of providers and profiles, without details
	exhausted         = "ResourceExhausted"
)

// world is what all callers share.
type world struct {
	tally tally

	mu    sync.Mutex
	known map[string]known // by the name of a sandbox
}

// known is what was last seen of a sandbox.
type known struct {
	id      string
	version uint64
}

func newWorld() *world { return &world{known: map[string]known{}} }

func (w *world) see(s *openshellv1.Sandbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := s.GetMetadata(); m.GetId() != "" {
		w.known[m.GetName()] = known{m.GetId(), m.GetResourceVersion()}
	}
}

// seen is what was last seen of some sandbox, however long ago.
func (w *world) seen(name string) known {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, found := w.known[name]; found {
		return k
	}
	return known{id: "5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a", version: 1} // nobody's
}

// caller makes one call after the other over its connection.
type caller struct {
	*world
	openshellv1.OpenShellClient
	conditional conditionalv1.ConditionalSandboxesClient
	conn        *grpc.ClientConn
	rng         *rand.Rand
	token       string
}

func newCaller(conn *grpc.ClientConn, rng *rand.Rand, w *world, token string) *caller {
	return &caller{
		world: w, OpenShellClient: openshellv1.NewOpenShellClient(conn), conditional: conditionalv1.NewConditionalSandboxesClient(conn),
		conn: conn, rng: rng, token: token,
	}
}

// act does something out of the mix.
func (c *caller) act(ctx context.Context) {
	a := mix[c.rng.IntN(len(mix))]
	ctx, cancel := context.WithTimeout(as(ctx, c.token), callTimeout)
	defer cancel()
	began := time.Now()
	err := a.do(ctx, c)
	c.tally.count(a, err, time.Since(began))
}

// Names are few, so that callers meet.
func (c *caller) sandbox() string  { return fmt.Sprint("web-", c.rng.IntN(40)) }
func (c *caller) provider() string { return fmt.Sprint("forge-", c.rng.IntN(8)) }
func (c *caller) team() string     { return fmt.Sprint("team-", c.rng.IntN(4)) }

// prepare makes what the mix never deletes.
func prepare(t *testing.T, c *caller) {
	t.Helper()
	defer func() { _ = c.conn.Close() }()
	ctx, cancel := context.WithTimeout(as(t.Context(), c.token), callTimeout)
	defer cancel()
	if err := c.importProfile(ctx, "forge"); err != nil {
		t.Fatal(err)
	}
}

// strayCalls are of callers who should not have called, or not so.
var strayCalls = []action{
	{"health", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.Health(ctx, &openshellv1.HealthRequest{})
		return err
	}},
	{"who am I", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.GetCurrentUser(ctx, &openshellv1.GetCurrentUserRequest{})
		return err
	}},
	{"gateway info", []string{ok}, func(ctx context.Context, c *caller) error {
		_, err := c.GetGatewayInfo(ctx, &openshellv1.GetGatewayInfoRequest{})
		return err
	}},
	{"bad token", []string{"Unauthenticated"}, func(ctx context.Context, c *caller) error {
		_, err := c.GetCurrentUser(as(ctx, "bad"), &openshellv1.GetCurrentUserRequest{})
		return err
	}},
	{"unknown method", []string{"Unimplemented"}, func(ctx context.Context, c *caller) error {
		return c.conn.Invoke(ctx, "/no.such.Service/Method", &openshellv1.HealthRequest{}, &openshellv1.HealthResponse{})
	}},
	{"unknown workspace", []string{notFound}, func(ctx context.Context, c *caller) error {
		_, err := c.ListSandboxes(ctx, &openshellv1.ListSandboxesRequest{WorkspaceScope: in("nowhere")})
		return err
	}},
	{"no workspace", []string{"InvalidArgument"}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: c.sandbox()})
		return err
	}},
	{"message too large", []string{exhausted}, func(ctx context.Context, c *caller) error {
		_, err := c.GetSandbox(ctx, &openshellv1.GetSandboxRequest{Name: strings.Repeat("x", 1<<20), WorkspaceScope: home})
		return err
	}},
	// The caller leaves in the middle; the gateway goes on with what it has begun.
	{"given up", []string{"DeadlineExceeded", ok, notFound, precondition}, func(ctx context.Context, c *caller) error {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(c.rng.IntN(50))*time.Millisecond)
		defer cancel()
		_, err := c.DeleteSandbox(ctx, &openshellv1.DeleteSandboxRequest{Name: c.sandbox(), WorkspaceScope: home})
		return err
	}},
}
