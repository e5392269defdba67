package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// loop is one working directory in front of one gateway.
type loop struct {
	t      *testing.T
	r      *rand.Rand
	g      *gatewaytest.Gateway
	w      *cli.WorkingDir
	second *secondClient
	checks
}

func (l *loop) logf(format string, args ...any) { l.t.Logf(format, args...) }

// resourceNames are those of the sandboxes that have a name of their own; one more has an invented name.
var resourceNames = []string{"a", "b"}

// write makes up a configuration.
func (l *loop) write() {
	l.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\nprovider \"openshell\" {\n  endpoint = %q\n}\n", cli.RequiredProviders, l.g.Endpoint())
	for _, label := range append([]string{"invented"}, resourceNames...) {
		arguments := []string{
			"timeouts = { create = \"1m\", read = \"1m\", update = \"1m\", delete = \"1m\" }",
			l.one("", "", "", `image = "example.com/agent:2"`),
			l.one("", "running = true", "running = false"),
			l.one("", "", `wait_for = "none"`),
			l.one("", "", policyArgument("api.github.com"), policyArgument("gitlab.com")),
			l.one("", "", "providers = []", fmt.Sprintf("providers = [%q]", attachable)),
			l.one("", "", `driver_config = jsonencode({ simulated = { ready_after = "300ms", delete_after = "300ms" } })`),
		}
		if label == "invented" {
			arguments = append(arguments, l.one("", `name_prefix = "any"`), "lifecycle {\n    create_before_destroy = true\n  }")
		} else {
			arguments = append(arguments, fmt.Sprintf("name = %q", label))
		}
		fmt.Fprintf(&text, "\nresource \"openshell_sandbox\" %q {\n  %s\n}\n", label, strings.Join(arguments, "\n  "))
	}
	if err := l.w.Write("main.tf", text.String()); err != nil {
		l.t.Fatal(err)
	}
}

// policyText lets git talk to a host.
func policyText(host string) string {
	return fmt.Sprintf("{version: 1, network_policies: {git: {endpoints: [{host: %s, port: 443}], binaries: [{path: /usr/bin/git}]}}}", host)
}

func policyArgument(host string) string { return fmt.Sprintf("policy = %q", policyText(host)) }

func (l *loop) one(of ...string) string { return of[l.r.IntN(len(of))] }

const savedPlan = "saved.tfplan"

// round runs one command or two.
func (l *loop) round() {
	if l.r.IntN(2) == 0 { // the names are free, or ours
		l.second.leave()
	}
	switch n := l.r.IntN(20); {
	case n < 7 || len(l.state()) == 0:
		l.write()
		l.run("apply", "-json", "-auto-approve")
	case n < 11:
		l.write()
		l.later()
	case n < 13:
		l.later("-destroy")
	case n < 16:
		l.run("destroy", "-json", "-auto-approve")
	case n < 18:
		l.run("destroy", "-json", "-auto-approve", "-refresh=false")
	default:
		l.run("apply", "-json", "-auto-approve", "-refresh-only")
	}
}

// later applies a saved plan when the gateway has changed.
func (l *loop) later(args ...string) {
	r := l.w.Plan(l.t.Context(), savedPlan, args...)
	l.check(r, nothing)
	if r.Err() != nil {
		return
	}
	for range 1 + l.r.IntN(3) {
		l.second.act()
	}
	l.run("apply", "-json", "-auto-approve", savedPlan)
}

// fault is what is done to a command.
type fault string

const (
	nothing   fault = "nothing"
	interrupt fault = "interrupt"
	kill      fault = "kill"
)

// run runs a command while the second client acts, and perhaps does something to it.
func (l *loop) run(args ...string) {
	l.t.Helper()
	f := []fault{nothing, nothing, nothing, nothing, nothing, nothing, nothing, interrupt, interrupt, kill}[l.r.IntN(10)]
	moment := l.afterCalls(1+l.r.Int64N(15), l.r.IntN(2) == 0)
	ctx, stop := context.WithCancel(l.t.Context())
	defer stop()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		l.second.actUntil(ctx)
	}()
	p, err := l.w.Start(l.t.Context(), args...)
	if err != nil {
		l.t.Fatal(err)
	}
	select {
	case <-moment:
		switch f {
		case interrupt:
			err = p.Interrupt()
		case kill:
			err = p.Kill()
		case nothing:
		}
		if err != nil { // it has just ended
			l.logf("%s: %v", f, err)
		}
	case <-p.Done():
		f = nothing
	}
	r := p.Wait()
	stop()
	<-idle
	l.check(r, f)
}

// afterCalls is closed when the gateway gets the n-th call from now on, or has handled it. The answer to another call may be
// lost.
func (l *loop) afterCalls(n int64, handled bool) <-chan struct{} {
	reached := make(chan struct{})
	lost := 1 + l.r.Int64N(40)
	var calls atomic.Int64
	l.g.ResetCalls()
	l.g.Intercept(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		call := calls.Add(1)
		if call == n && !handled {
			close(reached)
		}
		reply, err := handle(ctx, req)
		if call == n && handled {
			close(reached)
		}
		if call == lost {
			return nil, status.Error(codes.Unavailable, "lost in a test")
		}
		return reply, err
	})
	return reached
}

// converge has the second client take its sandboxes away and leave: then one apply makes everything as it should be.
func (l *loop) converge() {
	l.t.Helper()
	l.second.leave()
	l.g.Intercept(nil)
	for _, sb := range l.labelled() { // an interrupted destroy goes on at the gateway
		if sb.GetStatus().GetPhase() == openshellv1.SandboxPhase_SANDBOX_PHASE_DELETING {
			l.g.WaitGone(l.t, sb.GetMetadata().GetId())
		}
	}
	if err := l.w.Apply(l.t.Context(), "").Err(); err != nil {
		l.t.Fatal(err)
	}
	r := l.w.Plan(l.t.Context(), "")
	if r.ExitCode != 0 || len(r.Errors()) > 0 {
		l.t.Errorf("the plan is not empty: %v\n%s", r.Err(), r.Stdout)
	}
	l.check(r, nothing)
	if have := l.state(); len(have) != len(resourceNames)+1 || len(l.labelled()) != len(have) {
		l.t.Errorf("the state has %v, the gateway %v", have, l.labelled())
	}
}

// end destroys everything.
func (l *loop) end() {
	l.t.Helper()
	l.converge()
	if err := l.w.Destroy(l.t.Context()).Err(); err != nil {
		l.t.Error(err)
	}
	if left := l.labelled(); len(l.state()) > 0 || len(left) > 0 {
		l.t.Errorf("the state has %v, the gateway %v", l.state(), left)
	}
	l.audit()
}
