package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// attached reads the names of a sandbox's providers page by page.
func attached(t *testing.T, g *gatewaytest.Gateway, sandbox string, size int32) []string {
	t.Helper()
	var names []string
	req := &openshellv1.ListSandboxProvidersRequest{Sandbox: sandbox, PageSize: size, WorkspaceScope: gatewaytest.Default()}
	for {
		page, err := g.OpenShell().ListSandboxProviders(call(t), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.GetProviders() {
			names = append(names, p.GetMetadata().GetName())
			for _, value := range p.GetCredentials() {
				if value != "REDACTED" {
					t.Errorf("credential %q", value)
				}
			}
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			return names
		}
	}
}

// Large providers, too, come in pages of less than 4 MiB.
func TestListLargeSandboxProviders(t *testing.T) {
	g := startWithProviders(t, 9, func(p *datamodelv1.Provider) { // half a MiB each
		p.Config = map[string]string{}
		for i := range 64 {
			p.Config[fmt.Sprintf("c%d", i)] = strings.Repeat("x", 8192)
		}
	})
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("p%d", i))
	}
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = names }))
	if got := attached(t, g, "web", 0); !slices.Equal(got, names) {
		t.Errorf("%v", got)
	}
}

func TestListSandboxProviders(t *testing.T) {
	g := startWithProviders(t, 4)
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p3", "p0", "p2"} }))
	g.MustCreate(t, "bare")
	list := func(req *openshellv1.ListSandboxProvidersRequest) (*openshellv1.ListSandboxProvidersResponse, error) {
		if req.GetWorkspaceScope() == nil {
			req.WorkspaceScope = gatewaytest.Default()
		}
		return g.OpenShell().ListSandboxProviders(call(t), req)
	}
	for _, size := range []int32{0, 1, 2, 3} {
		if got := attached(t, g, "web", size); !slices.Equal(got, []string{"p0", "p2", "p3"}) {
			t.Errorf("pages of %d: %v", size, got)
		}
	}
	if page, err := list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "bare"}); err != nil || len(page.GetProviders()) != 0 {
		t.Errorf("%v, %v", page, err)
	}
	_, err := list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "none"})
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = list(&openshellv1.ListSandboxProvidersRequest{Sandbox: ""})
	wantPlain(t, err, codes.InvalidArgument, "sandbox is required")
	_, err = list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "web", PageSize: -1})
	wantPlain(t, err, codes.InvalidArgument, "page_size")
	_, err = list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "web", WorkspaceScope: workspace("nowhere")})
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	page, err := list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "web", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = list(&openshellv1.ListSandboxProvidersRequest{Sandbox: "bare", PageToken: page.GetNextPageToken()})
	wantPlain(t, err, codes.InvalidArgument, "page_token")
}

func TestProviderStatus(t *testing.T) {
	g := startWithProviders(t, 2)
	g.MustCreate(t, "web")
	get := func(provider, receipt string) (*openshellv1.ProviderReadinessStatus, error) {
		reply, err := g.OpenShell().GetSandboxProviderStatus(call(t), &openshellv1.GetSandboxProviderStatusRequest{
			Sandbox: "web", Provider: provider, ReceiptId: receipt, WorkspaceScope: gatewaytest.Default(),
		})
		return reply.GetStatus(), err
	}
	want := func(provider, receipt string, state openshellv1.ProviderReadinessState, reason openshellv1.ProviderReadinessReason) {
		t.Helper()
		got, err := get(provider, receipt)
		if err != nil || got.GetState() != state || got.GetReason() != reason || got.GetEvaluatedTime() == nil || got.GetReceipt().GetProvider() != provider ||
			got.GetReceipt().GetReceiptId() != receipt {
			t.Errorf("%v, %v", got, err)
		}
		if (got.GetObserved() != nil) != (state == openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_READY) {
			t.Errorf("observed %v", got.GetObserved())
		}
	}
	const (
		pending    = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_PENDING
		isReady    = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_READY
		revoked    = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_REVOKED
		withheld   = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_WITHHELD
		persisted  = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_PERSISTED
		superseded = openshellv1.ProviderReadinessState_PROVIDER_READINESS_STATE_SUPERSEDED
		none       = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_UNSPECIFIED
		waiting    = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_WAITING_FOR_SUPERVISOR
		apart      = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_SUPERVISOR_DISCONNECTED
		changed    = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_DESIRED_STATE_CHANGED
		isExpired  = openshellv1.ProviderReadinessReason_PROVIDER_READINESS_REASON_CREDENTIAL_EXPIRED
	)
	want("p0", "", revoked, none) // as if it had never been there
	attached, err := attach(t, g, "web", "p0", 0)
	if err != nil {
		t.Fatal(err)
	}
	first := attached.GetReceipt().GetReceiptId()
	want("p0", first, isReady, none)
	want("p0", "", isReady, none)

	g.SetPhase(t, "web", provisioning)
	want("p0", first, pending, waiting)
	g.SetPhase(t, "web", starting)
	want("p0", "", pending, waiting)
	g.SetPhase(t, "web", stopped)
	want("p0", first, persisted, apart)
	g.SetPhase(t, "web", ready)

	update := func(edit func(*openshellv1.UpdateProviderRequest)) *openshellv1.ProviderResponse {
		t.Helper()
		req := &openshellv1.UpdateProviderRequest{Provider: &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "p0"}}, WorkspaceScope: gatewaytest.Default()}
		edit(req)
		reply, err := g.OpenShell().UpdateProvider(call(t), req)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	second := update(func(r *openshellv1.UpdateProviderRequest) { r.Provider.Config = map[string]string{"a": "b"} }).GetTargetReceipts()[0].GetReceiptId()
	want("p0", first, superseded, changed)
	want("p0", second, isReady, none)
	update(func(r *openshellv1.UpdateProviderRequest) {
		r.CredentialExpirationTimes = map[string]*timestamppb.Timestamp{"TOKEN_0": timestamppb.New(time.Now().Add(-time.Hour))}
	})
	want("p0", "", withheld, isExpired)

	detached, err := detach(t, g, "web", "p0", 0)
	if err != nil {
		t.Fatal(err)
	}
	third := detached.GetReceipt().GetReceiptId()
	want("p0", third, revoked, none)
	want("p0", second, superseded, changed)
	if _, err := attach(t, g, "web", "p0", 0); err != nil {
		t.Fatal(err)
	}
	want("p0", third, superseded, changed)

	g.MustCreate(t, "other")
	elsewhere, err := attach(t, g, "other", "p0", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range [][2]string{
		{"p1", first}, {"p0", elsewhere.GetReceipt().GetReceiptId()}, {"p0", anID}, {"p0", "x"}, {"p0", id(attached.GetSandbox())},
	} {
		_, err := get(tc[0], tc[1])
		wantPlain(t, err, codes.NotFound, "receipt")
	}
	_, err = get("none", "")
	wantPlain(t, err, codes.NotFound, "provider 'none' not found")
	_, err = get("", "")
	wantField(t, err, "provider")
}

// A sandbox keeps the newest receipts.
func TestReceiptsAreBounded(t *testing.T) {
	g := startWithProviders(t, 1)
	g.MustCreate(t, "web")
	var receipts []string
	for range 101 {
		reply, err := attach(t, g, "web", "p0", 0)
		if err != nil {
			t.Fatal(err)
		}
		receipts = append(receipts, reply.GetReceipt().GetReceiptId())
	}
	for i, want := range map[int]codes.Code{0: codes.NotFound, 1: codes.OK, 100: codes.OK} {
		_, err := g.OpenShell().GetSandboxProviderStatus(call(t), &openshellv1.GetSandboxProviderStatusRequest{
			Sandbox: "web", Provider: "p0", ReceiptId: receipts[i], WorkspaceScope: gatewaytest.Default(),
		})
		t.Log(fmt.Sprint("receipt ", i))
		wantStatus(t, err, want, "")
	}
}
