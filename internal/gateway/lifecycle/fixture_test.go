package lifecycle

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

// fixture is a manager over a database in memory and a simulated driver, in a bubble where time passes by itself.
type fixture struct {
	*testing.T
	store  store.Store
	driver *hooked
	*Manager
}

func bubble(t *testing.T, run func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Memory)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{T: t, store: s, driver: &hooked{Driver: simulated.Driver{}, calls: map[string]int{}, hooks: map[string]hook{}}}
		f.Manager = New(s, f.driver, quiet)
		t.Cleanup(func() {
			f.kill()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		run(f)
	})
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// kill breaks everything off, as far as a test in one process can.
func (f *fixture) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.Manager.Close(ctx)
}

// restart is what comes after kill: a new manager that finds the rows due, or the leases run out.
func (f *fixture) restart() {
	f.Manager = New(f.store, f.driver, quiet)
}

// hook runs before a call of the driver, and may answer in its place.
type hook = func(ctx context.Context, i driver.Instance) error

// hooked is a driver whose calls can be counted, held and answered by the test.
type hooked struct {
	driver.Driver
	mu    sync.Mutex
	calls map[string]int
	hooks map[string]hook
}

// on sets the hook of a call: create, start, stop, delete or observe.
func (h *hooked) on(call string, fn hook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks[call] = fn
}

func (h *hooked) count(call string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[call]
}

func (h *hooked) before(ctx context.Context, call string, i driver.Instance) error {
	h.mu.Lock()
	h.calls[call]++
	fn := h.hooks[call]
	h.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn(ctx, i)
}

func (h *hooked) Create(ctx context.Context, i driver.Instance) error {
	if err := h.before(ctx, "create", i); err != nil {
		return err
	}
	return h.Driver.Create(ctx, i)
}

func (h *hooked) Start(ctx context.Context, i driver.Instance) error {
	if err := h.before(ctx, "start", i); err != nil {
		return err
	}
	return h.Driver.Start(ctx, i)
}

func (h *hooked) Stop(ctx context.Context, i driver.Instance) error {
	if err := h.before(ctx, "stop", i); err != nil {
		return err
	}
	return h.Driver.Stop(ctx, i)
}

func (h *hooked) Delete(ctx context.Context, i driver.Instance) (driver.Deletion, error) {
	if err := h.before(ctx, "delete", i); err != nil {
		return driver.Deletion{}, err
	}
	return h.Driver.Delete(ctx, i)
}

func (h *hooked) Observe(ctx context.Context, i driver.Instance) (driver.Observation, error) {
	if err := h.before(ctx, "observe", i); err != nil {
		return driver.Observation{}, err
	}
	return h.Driver.Observe(ctx, i)
}

// held is a hook that waits until the test lets it go on, or its call is given up.
func held() (h hook, goOn func()) {
	gate := make(chan struct{})
	return func(ctx context.Context, _ driver.Instance) error {
		select {
		case <-gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, func() { close(gate) }
}

func refusing(text string) hook {
	return func(context.Context, driver.Instance) error { return &driver.Refusal{Message: text} }
}

// steered is a spec with keys for the simulated driver.
func steered(keys map[string]any) *openshellv1.SandboxSpec {
	config, err := structpb.NewStruct(map[string]any{simulated.Name: keys})
	if err != nil {
		panic(err)
	}
	return &openshellv1.SandboxSpec{
		Template:      &openshellv1.SandboxTemplate{DriverConfig: config},
		RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_NEVER,
	}
}

var web = store.Target{Workspace: store.DefaultWorkspace, Name: "web"}

func (f *fixture) mustCreate(keys map[string]any) store.Sandbox {
	f.Helper()
	s, err := f.Create(f.Context(), store.DefaultWorkspace, Draft{Name: "web", Spec: steered(keys)})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// mustRun creates a sandbox and waits until it is ready.
func (f *fixture) mustRun(keys map[string]any) store.Sandbox {
	f.Helper()
	s := f.mustCreate(keys)
	time.Sleep(time.Second)
	return f.want(s.ID, ready)
}

// want reads a row and holds it to a phase, once everything that can happen now has happened.
func (f *fixture) want(id string, phase openshellv1.SandboxPhase) store.Sandbox {
	f.Helper()
	synctest.Wait()
	s, err := f.store.SandboxByID(context.Background(), id)
	if err != nil {
		f.Fatalf("sandbox %s: %v, want %v", id, err, phase)
	}
	if s.Phase() != phase {
		f.Fatalf("sandbox %s is %v, want %v", id, s.Phase(), phase)
	}
	return s
}

func (f *fixture) wantGone(id string) {
	f.Helper()
	synctest.Wait()
	if s, err := f.store.SandboxByID(context.Background(), id); !errors.Is(err, store.ErrNotFound) {
		f.Fatalf("sandbox %s is there in %v (%v)", id, s.Phase(), err)
	}
}

// async makes a call and hands over its error when it is answered.
func async[T any](call func() (T, error)) <-chan error {
	answered := make(chan error, 1)
	go func() {
		_, err := call()
		answered <- err
	}()
	synctest.Wait()
	return answered
}

func (f *fixture) unanswered(answers <-chan error) {
	f.Helper()
	select {
	case err := <-answers:
		f.Fatalf("answered already: %v", err)
	default:
	}
}
