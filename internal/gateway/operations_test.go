package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/wrapperspb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// get asks a handler over HTTP.
func get(t *testing.T, handler http.Handler, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(call(t), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func wantAnswer(t *testing.T, handler http.Handler, path string, status int, text string) {
	t.Helper()
	if got, body := get(t, handler, path); got != status || strings.TrimSpace(body) != text {
		t.Errorf("%s: %d %q, want %d %q", path, got, body, status, text)
	}
}

func TestHealthOverHTTP(t *testing.T) {
	b := &breakable{Store: open(t)}
	r := run(t, gateway.Config{Store: b})
	h := r.HealthHandler()
	wantAnswer(t, h, "/healthz", 200, "ok")
	wantAnswer(t, h, "/health", 200, "ok")
	wantAnswer(t, h, "/readyz", 200, "ready")
	wantAnswer(t, h, "/metrics", 404, "404 page not found")

	b.err = errors.Join(store.ErrUnavailable, errors.New("inner secret"))
	wantAnswer(t, h, "/readyz", 503, "not ready: the database does not answer")
	wantAnswer(t, h, "/healthz", 200, "ok")
	if !strings.Contains(r.log.String(), "inner secret") {
		t.Error("the log does not say why")
	}
	b.err = nil
	wantAnswer(t, h, "/readyz", 200, "ready")
}

// The caller is told no more than to try again; why stands in the log, under the id of its request.
func TestLogSaysWhyTheDatabaseFails(t *testing.T) {
	for _, trouble := range []error{store.ErrUnavailable, store.ErrOutcomeUnknown, store.ErrInternal} {
		t.Run(trouble.Error(), func(t *testing.T) {
			b := &breakable{Store: open(t)}
			r := run(t, gateway.Config{Store: b})
			b.err = fmt.Errorf("%w: inner secret", trouble)
			ctx := metadata.AppendToOutgoingContext(call(t), "x-request-id", "of-this-call")
			_, err := r.client.GetWorkspace(ctx, &openshellv1.GetWorkspaceRequest{Name: store.DefaultWorkspace})
			if err == nil || strings.Contains(err.Error(), "inner secret") {
				t.Errorf("the caller got %v", err)
			}
			if !regexp.MustCompile(`"request_id":"of-this-call","error":".*inner secret"`).MatchString(r.log.String()) {
				t.Errorf("the log does not say why:\n%s", r.log)
			}
		})
	}
}

// breakable is a store that does not find its workspaces when it is told not to.
type breakable struct {
	store.Store
	err error
}

func (b *breakable) Workspace(ctx context.Context, name string) (store.Workspace, error) {
	if b.err != nil {
		return store.Workspace{}, b.err
	}
	return b.Store.Workspace(ctx, name)
}

// When clients are told to go elsewhere, readyz has turned already; calls under way still end well.
func TestReadyTurnsFirst(t *testing.T) {
	h := newHeld()
	r := run(t, gateway.Config{Store: open(t), Driver: h})
	answered := make(chan error, 1)
	go func() {
		_, err := r.client.CreateSandbox(context.Background(), createWeb(&openshellv1.SandboxSpec{}))
		answered <- err
	}()
	<-h.called
	w := connect(t, r.address).taken()
	down := make(chan struct{})
	go func() { r.Shutdown(call(t)); close(down) }()
	until[*http2.GoAwayFrame](w)
	wantAnswer(t, r.HealthHandler(), "/readyz", 503, "not ready: the gateway is shutting down")
	wantAnswer(t, r.HealthHandler(), "/healthz", 200, "ok")
	w.must(w.conn.Close())
	close(h.goOn)
	if err := <-answered; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	<-down
}

// metrics are those of a gateway after the last of its calls.
func metrics(t *testing.T, r *running) string {
	t.Helper()
	r.Shutdown(call(t)) // a call is counted after its answer
	status, text := get(t, r.MetricsHandler(), "/metrics")
	if status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	return text
}

func wantLine(t *testing.T, metrics, line string) {
	t.Helper()
	if !strings.Contains(metrics, "\n"+line+"\n") {
		name, _, _ := strings.Cut(line, "{")
		t.Errorf("no line %s but\n%s", line, strings.Join(regexp.MustCompile(`(?m)^`+name+`\W.*$`).FindAllString(metrics, -1), "\n"))
	}
}

func TestMetricsOfCalls(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t), Version: "1.2.3"})
	for range 3 {
		if _, err := r.client.Health(call(t), &openshellv1.HealthRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := r.client.GetSandbox(call(t), getWeb())
	wantCode(t, err, codes.NotFound)
	for i := range 20 {
		err := r.conn.Invoke(call(t), fmt.Sprintf("/invented.Service%d/Method%d", i, i), &openshellv1.HealthRequest{}, &openshellv1.HealthResponse{})
		wantCode(t, err, codes.Unimplemented)
	}
	text := metrics(t, r)
	wantLine(t, text, `grpc_server_handled_total{grpc_code="OK",grpc_method="Health",grpc_service="openshell.v1.OpenShell",grpc_type="unary"} 3`)
	wantLine(t, text, `grpc_server_handled_total{grpc_code="NotFound",grpc_method="GetSandbox",grpc_service="openshell.v1.OpenShell",grpc_type="unary"} 1`)
	wantLine(t, text, `grpc_server_handled_total{grpc_code="Unimplemented",grpc_method="unknown",grpc_service="unknown",grpc_type="unary"} 20`)
	wantLine(t, text, `grpc_server_handling_seconds_count{grpc_method="Health",grpc_service="openshell.v1.OpenShell",grpc_type="unary"} 3`)
	wantLine(t, text, `openshell_gateway_build_info{version="1.2.3"} 1`)
	wantLine(t, text, `openshell_gateway_store_seconds_count{operation="sandbox",result="ok"} 1`)
	wantLine(t, text, `openshell_gateway_connections 0`)
	for _, made := range []string{"invented", "web"} {
		if strings.Contains(text, made) {
			t.Errorf("what a client makes up is in the metrics: %s", made)
		}
	}
}

// Connections are counted while they are open.
func TestMetricsOfConnections(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	connect(t, r.address).taken().refused()
	connect(t, r.address).taken().refused()
	_, text := get(t, r.MetricsHandler(), "/metrics")
	wantLine(t, text, `openshell_gateway_connections 2`)
}

// counted is a store that says what is in it.
type counted struct {
	store.Store
	statistics store.Statistics
	err        error
}

func (c counted) Statistics(context.Context) (store.Statistics, error) { return c.statistics, c.err }

// What is in the store, with a line for every phase.
func TestMetricsOfTheStore(t *testing.T) {
	text := metrics(t, run(t, gateway.Config{Store: counted{Store: open(t), statistics: store.Statistics{
		Sandboxes: map[openshellv1.SandboxPhase]int{openshellv1.SandboxPhase_SANDBOX_PHASE_READY: 2},
		Overdue:   3, LongestOverdue: 1500 * time.Millisecond,
	}}}))
	wantLine(t, text, `openshell_gateway_store_up 1`)
	wantLine(t, text, `openshell_gateway_sandboxes{phase="READY"} 2`)
	wantLine(t, text, `openshell_gateway_sandboxes{phase="DELETING"} 0`)
	wantLine(t, text, `openshell_gateway_operations_overdue 3`)
	wantLine(t, text, `openshell_gateway_operations_overdue_seconds 1.5`)

	r := run(t, gateway.Config{Store: counted{Store: open(t), err: errors.Join(store.ErrUnavailable, errors.New("inner secret"))}})
	text = metrics(t, r)
	wantLine(t, text, `openshell_gateway_store_up 0`)
	wantLine(t, text, `openshell_gateway_connections 0`)
	if strings.Contains(text, "openshell_gateway_sandboxes{") || strings.Contains(text, "secret") || !strings.Contains(r.log.String(), "secret") {
		t.Errorf("metrics %s\nlog %s", text, r.log)
	}
}

// Trouble of the database shows in the metrics of the store; that something is not there is no trouble.
func TestMetricsOfTrouble(t *testing.T) {
	r := run(t, gateway.Config{Store: broken{open(t), func() error { return errors.Join(store.ErrUnavailable, errors.New("inner secret")) }}})
	_, err := r.client.GetSandbox(call(t), getWeb())
	wantCode(t, err, codes.Unavailable)
	text := metrics(t, r)
	wantLine(t, text, `openshell_gateway_store_seconds_count{operation="sandbox",result="failed"} 1`)
	if strings.Contains(text, "secret") {
		t.Error("what the database says is in the metrics")
	}
}

// What came of preconditions, of those calls that came so far.
func TestMetricsOfPreconditions(t *testing.T) {
	h := newHeld()
	r := run(t, gateway.Config{Store: open(t), Driver: h})
	answered := make(chan *openshellv1.Sandbox, 1)
	go func() {
		created, err := r.client.CreateSandbox(context.Background(), createWeb(&openshellv1.SandboxSpec{}))
		if err != nil {
			t.Error(err)
		}
		answered <- created.GetSandbox()
	}()
	<-h.called
	held, err := r.client.GetSandbox(call(t), getWeb())
	if err != nil {
		t.Fatal(err)
	}
	id := held.GetSandbox().GetMetadata().GetId()
	del := func(want codes.Code, edit func(*conditionalv1.ConditionalDeleteSandboxRequest)) {
		t.Helper()
		req := conditionalDelete(id)
		edit(req)
		_, err := r.conditional.DeleteSandbox(call(t), req)
		wantCode(t, err, want)
	}
	as := func(req *conditionalv1.ConditionalDeleteSandboxRequest) {}
	del(codes.FailedPrecondition, as) // pending
	close(h.goOn)
	<-answered
	del(codes.FailedPrecondition, func(req *conditionalv1.ConditionalDeleteSandboxRequest) {
		req.Precondition.Id = new("0b3c8f6e-3b52-4c38-9a7e-5a8a4f3f2b11")
	})
	del(codes.Aborted, func(req *conditionalv1.ConditionalDeleteSandboxRequest) {
		req.Precondition.ResourceVersion = new(uint64(1))
	})
	del(codes.InvalidArgument, func(req *conditionalv1.ConditionalDeleteSandboxRequest) { req.Precondition = nil })
	del(codes.NotFound, func(req *conditionalv1.ConditionalDeleteSandboxRequest) { req.Request.Name = "none" })
	del(codes.OK, func(req *conditionalv1.ConditionalDeleteSandboxRequest) {
		req.Request.Name, req.Request.AllowMissing = "none", true
	})
	once := func(req *conditionalv1.ConditionalDeleteSandboxRequest) {
		req.Request.RequestId = "5d0f4e5c-8f0b-4f7e-9d5b-0f3a2b1c4d5e"
	}
	del(codes.OK, once)
	del(codes.OK, once) // is answered from the one before
	text := metrics(t, r)
	for outcome, n := range map[string]int{"pending": 1, "identity_mismatch": 1, "version_conflict": 1, "absent": 2, "matched": 1} {
		wantLine(t, text, fmt.Sprintf(`openshell_gateway_preconditions_total{method="DeleteSandbox",outcome="%s"} %d`, outcome, n))
		if log := r.log.String(); strings.Count(log, fmt.Sprintf(`"precondition":"%s"`, outcome)) != n {
			t.Errorf("the log has not %d %s: %s", n, outcome, log)
		}
	}
	if log := r.log.String(); strings.Count(log, `"replayed":true`) != 1 {
		t.Errorf("the log does not tell one replay: %s", log)
	}
}

// What gRPC refuses before anything else runs has an id, a line and a count, too.
func TestRefusedBeforeInterceptors(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	for name, tc := range map[string]struct {
		message any
		code    codes.Code
	}{
		"too long":    {&openshellv1.GetSandboxRequest{Name: strings.Repeat("x", 1<<20)}, codes.ResourceExhausted},
		"not UTF-8":   {wrapperspb.Bytes([]byte{0xff}), codes.Internal},
		"interceptor": {getWeb(), codes.NotFound},
	} {
		var header, trailer metadata.MD
		ctx := metadata.AppendToOutgoingContext(call(t), "x-request-id", "find-"+name)
		err := r.conn.Invoke(ctx, openshellv1.OpenShell_GetSandbox_FullMethodName, tc.message, &openshellv1.SandboxResponse{}, grpc.Header(&header), grpc.Trailer(&trailer))
		wantCode(t, err, tc.code)
		if got := append(header.Get("x-request-id"), trailer.Get("x-request-id")...); len(got) != 1 || got[0] != "find-"+name {
			t.Errorf("%s: x-request-id %q", name, got)
		}
	}
	text := metrics(t, r)
	for _, code := range []string{"ResourceExhausted", "Internal", "NotFound"} {
		wantLine(t, text, `grpc_server_handled_total{grpc_code="`+code+`",grpc_method="GetSandbox",grpc_service="openshell.v1.OpenShell",grpc_type="unary"} 1`)
	}
	for _, name := range []string{"too long", "not UTF-8", "interceptor"} {
		if strings.Count(r.log.String(), `"request_id":"find-`+name+`"`) != 1 {
			t.Errorf("%s: not one line in the log:\n%s", name, r.log)
		}
	}
}

// No caller fills the log.
func TestLogLinesAreShort(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	long := strings.Repeat("x", 100_000)
	_, err := r.client.GetSandbox(call(t), &openshellv1.GetSandboxRequest{Name: long, WorkspaceScope: getWeb().GetWorkspaceScope()})
	wantCode(t, err, codes.NotFound)
	err = r.conn.Invoke(call(t), "/"+long[:30_000]+"/Method", getWeb(), &openshellv1.SandboxResponse{})
	wantCode(t, err, codes.Unimplemented)
	r.Shutdown(call(t))
	for line := range strings.Lines(r.log.String()) {
		if len(line) > 3000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// The guide has every metric of the gateway's own.
func TestGuideListsTheMetrics(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	_, err := r.conditional.DeleteSandbox(call(t), conditionalDelete("0b3c8f6e-3b52-4c38-9a7e-5a8a4f3f2b11"))
	wantCode(t, err, codes.NotFound)
	guide, err := os.ReadFile("../../templates/guides/reference-gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^# TYPE ((?:grpc|openshell)_\S+)`).FindAllStringSubmatch(metrics(t, r), -1)
	if len(names) < 10 {
		t.Errorf("only %v", names)
	}
	for _, name := range names {
		if !strings.Contains(string(guide), "| `"+name[1]+"` |") {
			t.Errorf("no word of %s", name[1])
		}
	}
}
