package server_test

import (
	"database/sql"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func connect(t *testing.T, g *gatewaytest.Gateway, sandbox string) (*openshellv1.CreateSshSessionResponse, error) {
	t.Helper()
	return g.OpenShell().CreateSshSession(call(t), &openshellv1.CreateSshSessionRequest{Sandbox: sandbox, WorkspaceScope: gatewaytest.Default()})
}

// mustConnect makes a session with the sandbox "web".
func mustConnect(t *testing.T, g *gatewaytest.Gateway) *openshellv1.CreateSshSessionResponse {
	t.Helper()
	session, err := connect(t, g, "web")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func revoke(t *testing.T, g *gatewaytest.Gateway, token string, allowMissing bool) (openshellv1.DeletionOutcome, error) {
	t.Helper()
	reply, err := g.OpenShell().RevokeSshSession(call(t), &openshellv1.RevokeSshSessionRequest{Token: token, AllowMissing: allowMissing})
	return reply.GetOutcome(), err
}

func TestSSHSessions(t *testing.T) {
	g := gatewaytest.Start(t)
	web := g.MustCreate(t, "web")
	before := time.Now().Add(-time.Minute)
	first, second := mustConnect(t, g), mustConnect(t, g)
	host, port, err := net.SplitHostPort(g.Address())
	if err != nil {
		t.Fatal(err)
	}
	if first.GetSandboxId() != id(web) || first.GetGatewayHost() != host || strconv.Itoa(int(first.GetGatewayPort())) != port || first.GetGatewayScheme() != "http" {
		t.Errorf("session %v", first)
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{22,99}$`).MatchString(first.GetToken()) || first.GetToken() == second.GetToken() {
		t.Errorf("tokens %q, %q", first.GetToken(), second.GetToken())
	}
	if left := first.GetExpirationTime().AsTime().Sub(before); left < 24*time.Hour || left > 24*time.Hour+2*time.Minute {
		t.Errorf("it expires at %v", first.GetExpirationTime().AsTime())
	}
	if outcome, err := revoke(t, g, first.GetToken(), false); err != nil || outcome != finished {
		t.Errorf("revoke: %v, %v", outcome, err)
	}
	_, err = revoke(t, g, first.GetToken(), false)
	wantPlain(t, err, codes.NotFound, "SSH session not found")
	if outcome, err := revoke(t, g, first.GetToken(), true); err != nil || outcome != alreadyAbsent {
		t.Errorf("revoke again: %v, %v", outcome, err)
	}
	if outcome, err := revoke(t, g, second.GetToken(), true); err != nil || outcome != finished {
		t.Errorf("revoke the other: %v, %v", outcome, err)
	}
	_, err = revoke(t, g, "", true)
	wantPlain(t, err, codes.InvalidArgument, "token is required")
}

func TestSSHSessionRefusals(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	for _, phase := range []openshellv1.SandboxPhase{provisioning, failed, deleting, stopped, starting} {
		g.SetPhase(t, "web", phase)
		_, err := connect(t, g, "web")
		wantPlain(t, err, codes.FailedPrecondition, "sandbox is not ready")
	}
	_, err := connect(t, g, "none")
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = connect(t, g, "")
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	_, err = g.OpenShell().CreateSshSession(call(t), &openshellv1.CreateSshSessionRequest{Sandbox: "web", WorkspaceScope: workspace("nowhere")})
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = g.OpenShell().CreateSshSession(call(t), &openshellv1.CreateSshSessionRequest{Sandbox: "web"})
	wantField(t, err, "workspace_scope")
}

// Sessions end when their sandbox is stopped or deleted, and are not those of its successor.
func TestSSHSessionsEndWithTheirSandbox(t *testing.T) {
	g := gatewaytest.Start(t)
	a := g.MustCreate(t, "web")
	other := g.MustCreate(t, "other")
	kept, err := connect(t, g, "other")
	if err != nil || kept.GetSandboxId() != id(other) {
		t.Fatal(kept, err)
	}
	session := mustConnect(t, g)
	if _, err := stops(nil)(call(t), g, ""); err != nil {
		t.Fatal(err)
	}
	_, err = revoke(t, g, session.GetToken(), false)
	wantPlain(t, err, codes.NotFound, "SSH session not found")

	if _, err := starts(nil)(call(t), g, ""); err != nil {
		t.Fatal(err)
	}
	g.WaitPhase(t, id(a), ready)
	session = mustConnect(t, g)
	g.Replace(t, "web")
	_, err = revoke(t, g, session.GetToken(), false)
	wantPlain(t, err, codes.NotFound, "SSH session not found")
	if outcome, err := revoke(t, g, kept.GetToken(), false); err != nil || outcome != finished {
		t.Errorf("that of the other sandbox: %v, %v", outcome, err)
	}
}

// A sandbox has the newest sessions; the oldest beyond give way.
func TestSSHSessionLimit(t *testing.T) {
	const limit = 100
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	first, second := mustConnect(t, g), mustConnect(t, g)
	for range limit - 1 {
		mustConnect(t, g)
	}
	_, err := revoke(t, g, first.GetToken(), false)
	wantPlain(t, err, codes.NotFound, "SSH session not found")
	if outcome, err := revoke(t, g, second.GetToken(), false); err != nil || outcome != finished {
		t.Errorf("the next: %v, %v", outcome, err)
	}
}

// A session that has expired is as good as none.
func TestSSHSessionsExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.db")
	g := gatewaytest.Start(t, gatewaytest.WithDBPath(path))
	g.MustCreate(t, "web")
	age := func(by time.Duration) string {
		t.Helper()
		token := mustConnect(t, g).GetToken()
		g.Stop(t)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(call(t), "UPDATE objects SET created_at = created_at - ? WHERE kind = 'ssh session'", by.Microseconds()); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		g.Restart(t)
		return token
	}
	if outcome, err := revoke(t, g, age(24*time.Hour-time.Minute), false); err != nil || outcome != finished {
		t.Errorf("a minute before: %v, %v", outcome, err)
	}
	_, err := revoke(t, g, age(24*time.Hour), false)
	wantPlain(t, err, codes.NotFound, "SSH session not found")
}

// A token is no good in the hands of somebody who has no access to its sandbox.
func TestSSHSessionOfAnother(t *testing.T) {
	g, callers := startWithOIDC(t)
	for _, subject := range []string{"ann", "eve"} {
		if err := addMember(callers.as("root"), g, "default", subject, roleUser); err != nil {
			t.Fatal(err)
		}
	}
	created, err := g.OpenShell().CreateSandbox(callers.as("ann"), &openshellv1.CreateSandboxRequest{Name: "web", Spec: &openshellv1.SandboxSpec{}, WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	g.WaitPhase(t, id(created.GetSandbox()), ready)
	session, err := g.OpenShell().CreateSshSession(callers.as("ann"), &openshellv1.CreateSshSessionRequest{Sandbox: "web", WorkspaceScope: gatewaytest.Default()})
	if err != nil {
		t.Fatal(err)
	}
	req := &openshellv1.RevokeSshSessionRequest{Token: session.GetToken()}
	_, err = g.OpenShell().RevokeSshSession(callers.as("mallory"), req)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	if reply, err := g.OpenShell().RevokeSshSession(callers.as("eve"), req); err != nil || reply.GetOutcome() != finished {
		t.Errorf("another member of the workspace: %v, %v", reply, err)
	}
}
