package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

func attachIn(t *testing.T, g *gatewaytest.Gateway, scope *datamodelv1.WorkspaceSelector, sandbox, provider string, version uint64) (*openshellv1.AttachSandboxProviderResponse, error) {
	t.Helper()
	return g.OpenShell().AttachSandboxProvider(call(t), &openshellv1.AttachSandboxProviderRequest{
		Sandbox: sandbox, Provider: provider, ExpectedResourceVersion: version, WorkspaceScope: scope,
	})
}

func attach(t *testing.T, g *gatewaytest.Gateway, sandbox, provider string, version uint64) (*openshellv1.AttachSandboxProviderResponse, error) {
	t.Helper()
	return attachIn(t, g, gatewaytest.Default(), sandbox, provider, version)
}

func detach(t *testing.T, g *gatewaytest.Gateway, sandbox, provider string, version uint64) (*openshellv1.DetachSandboxProviderResponse, error) {
	t.Helper()
	return g.OpenShell().DetachSandboxProvider(call(t), &openshellv1.DetachSandboxProviderRequest{
		Sandbox: sandbox, Provider: provider, ExpectedResourceVersion: version, WorkspaceScope: gatewaytest.Default(),
	})
}

func conditionalAttach(sandbox, provider string, p *conditionalv1.SandboxPrecondition) *conditionalv1.ConditionalAttachSandboxProviderRequest {
	return &conditionalv1.ConditionalAttachSandboxProviderRequest{
		Precondition: p, Request: &openshellv1.AttachSandboxProviderRequest{Sandbox: sandbox, Provider: provider, WorkspaceScope: gatewaytest.Default()},
	}
}

func conditionalDetach(sandbox, provider string, p *conditionalv1.SandboxPrecondition) *conditionalv1.ConditionalDetachSandboxProviderRequest {
	return &conditionalv1.ConditionalDetachSandboxProviderRequest{
		Precondition: p, Request: &openshellv1.DetachSandboxProviderRequest{Sandbox: sandbox, Provider: provider, WorkspaceScope: gatewaytest.Default()},
	}
}

// startWithProviders has providers p0, p1, … that can be attached together, and "twin", which sets the variable of p0.
func startWithProviders(t *testing.T, n int, edits ...func(*datamodelv1.Provider)) *gatewaytest.Gateway {
	t.Helper()
	g := gatewaytest.Start(t)
	for i := range n {
		profile := fmt.Sprintf("type-%d", i)
		importProfiles(t, g, nil, &openshellv1.ProviderProfile{Id: profile, Credentials: []*openshellv1.ProviderProfileCredential{
			{Name: "token", EnvVars: []string{fmt.Sprintf("TOKEN_%d", i)}}, {Name: "second", EnvVars: []string{fmt.Sprintf("SECOND_%d", i), "SHARED"}},
		}})
		mustCreateProvider(t, g, gatewaytest.Default(), fmt.Sprintf("p%d", i), profile, map[string]string{fmt.Sprintf("TOKEN_%d", i): "s3cret"}, edits...)
	}
	mustCreateProvider(t, g, gatewaytest.Default(), "twin", "type-0", map[string]string{"TOKEN_0": "s3cret"})
	return g
}

func wantReceipt(t *testing.T, got *openshellv1.ProviderMutationReceipt, kind openshellv1.ProviderMutationKind, sandbox *openshellv1.Sandbox, provider *datamodelv1.Provider) {
	t.Helper()
	d := got.GetDesired()
	if uuid.Validate(got.GetReceiptId()) != nil || uuid.Validate(got.GetMutationId()) != nil || got.GetPersistedTime() == nil || got.GetKind() != kind ||
		got.GetProvider() != provider.GetMetadata().GetName() || got.GetWorkspace() != "default" ||
		d.GetSandboxId() != id(sandbox) || d.GetSandbox() != sandbox.GetMetadata().GetName() || d.GetProviderId() != provider.GetMetadata().GetId() ||
		d.GetProviderResourceVersion() != provider.GetMetadata().GetResourceVersion() ||
		d.GetAttachmentEpoch() != sandbox.GetSpec().GetProviderAttachmentEpoch() {
		t.Errorf("receipt %v", got)
	}
}

func version(s *openshellv1.Sandbox) uint64 { return s.GetMetadata().GetResourceVersion() }

func TestAttachAndDetach(t *testing.T) {
	g := startWithProviders(t, 2)
	before := g.MustCreate(t, "web")
	p0, p1 := getProvider(t, g, "p0"), getProvider(t, g, "p1")
	for i, tc := range []struct {
		attach   bool
		provider *datamodelv1.Provider
		changed  bool
		want     []string
	}{
		{true, p1, true, []string{"p1"}}, {true, p0, true, []string{"p1", "p0"}}, // in the order of attachment
		{true, p1, false, []string{"p1", "p0"}},
		{false, p1, true, []string{"p0"}}, {false, p1, false, []string{"p0"}},
		{true, p1, true, []string{"p0", "p1"}},
	} {
		name := tc.provider.GetMetadata().GetName()
		var after *openshellv1.Sandbox
		var changed bool
		if tc.attach {
			reply, err := attach(t, g, "web", name, version(before))
			if err != nil {
				t.Fatal(err)
			}
			after, changed = reply.GetSandbox(), reply.GetAttached()
			wantReceipt(t, reply.GetReceipt(), openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_ATTACH, after, tc.provider)
		} else {
			reply, err := detach(t, g, "web", name, 0)
			if err != nil {
				t.Fatal(err)
			}
			after, changed = reply.GetSandbox(), reply.GetDetached()
			wantReceipt(t, reply.GetReceipt(), openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_DETACH, after, tc.provider)
		}
		if changed != tc.changed || !slices.Equal(after.GetSpec().GetProviders(), tc.want) || id(after) != id(before) {
			t.Errorf("step %d: changed %v, providers %v", i, changed, after.GetSpec().GetProviders())
		}
		if version(after) != version(before)+1 { // also when nothing changed
			t.Errorf("step %d: from version %d to %d", i, version(before), version(after))
		}
		if sameEpoch := after.GetSpec().GetProviderAttachmentEpoch() == before.GetSpec().GetProviderAttachmentEpoch(); sameEpoch == tc.changed {
			t.Errorf("step %d: the epoch is the same: %v", i, sameEpoch)
		}
		if after.GetStatus().GetPhase() != ready {
			t.Errorf("step %d: phase %v", i, after.GetStatus().GetPhase())
		}
		wantUnchanged(t, g, after)
		before = after
	}
}

func TestAttachRefusals(t *testing.T) {
	g := startWithProviders(t, 2)
	web := g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p0"} }))
	attachErr := func(sandbox, provider string, version uint64) error {
		_, err := attach(t, g, sandbox, provider, version)
		return err
	}
	detachErr := func(sandbox, provider string, version uint64) error {
		_, err := detach(t, g, sandbox, provider, version)
		return err
	}
	for name, do := range map[string]func(sandbox, provider string, version uint64) error{"attach": attachErr, "detach": detachErr} {
		t.Run(name, func(t *testing.T) {
			wantPlain(t, do("none", "p0", 0), codes.NotFound, "sandbox not found")
			wantPlain(t, do("", "p0", 0), codes.InvalidArgument, "sandbox is required")
			wantField(t, do("web", "", 0), "provider")
			for _, other := range []uint64{1, version(web) + 1} {
				wantReason(t, do("web", "p0", other), codes.Aborted, "openshell.nvidia.com", "RESOURCE_VERSION_CONFLICT", map[string]string{
					"recovery": "REFRESH_STATE", "current_resource_version": fmt.Sprint(version(web)),
				})
			}
			wantUnchanged(t, g, web)
		})
	}
	wantPlain(t, attachErr("web", "none", 0), codes.FailedPrecondition, "provider 'none' not found in workspace 'default'")
	wantPlain(t, attachErr("web", "none", 99), codes.FailedPrecondition, "provider 'none' not found") // before the version
	wantPlain(t, attachErr("web", "twin", 99), codes.FailedPrecondition, "both set the environment variable TOKEN_0")
	wantUnchanged(t, g, web)
	if reply, err := detach(t, g, "web", "none", 0); err != nil || reply.GetDetached() { // need not exist
		t.Errorf("%v, %v", reply, err)
	}
	for name, scope := range map[string]*datamodelv1.WorkspaceSelector{"none": nil, "all": allWorkspaces()} {
		_, err := attachIn(t, g, scope, "web", "p0", 0)
		t.Log(name)
		wantField(t, err, "workspace_scope")
	}
	_, err := attachIn(t, g, workspace("nowhere"), "web", "p0", 0)
	wantPlain(t, err, codes.NotFound, "sandbox not found")
	_, err = g.OpenShell().AttachSandboxProvider(call(t), &openshellv1.AttachSandboxProviderRequest{Sandbox: "web", Provider: "p0", WorkspaceScope: gatewaytest.Default(), RequestId: "one"})
	wantField(t, err, "request_id")
}

func TestAttachLimit(t *testing.T) {
	g := startWithProviders(t, 33)
	web := g.MustCreate(t, "web")
	for i := range 32 {
		if _, err := attach(t, g, "web", fmt.Sprintf("p%d", i), 0); err != nil {
			t.Fatalf("provider %d: %v", i, err)
		}
	}
	_, err := attach(t, g, "web", "p32", 0)
	wantField(t, err, "provider")
	if reply, err := attach(t, g, "web", "p31", 0); err != nil || reply.GetAttached() {
		t.Errorf("one that is attached: %v, %v", reply, err)
	}
	now, _ := g.GetByID(t, id(web))
	if len(now.GetSpec().GetProviders()) != 32 {
		t.Errorf("%d attached", len(now.GetSpec().GetProviders()))
	}
	g.MustCreate(t, "other", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = now.GetSpec().GetProviders() }))
}

func TestCreateWithProviders(t *testing.T) {
	g := startWithProviders(t, 2)
	create := func(name string, providers ...string) error {
		_, err := g.OpenShell().CreateSandbox(call(t), &openshellv1.CreateSandboxRequest{
			Name: name, WorkspaceScope: gatewaytest.Default(), Spec: &openshellv1.SandboxSpec{Providers: providers},
		})
		return err
	}
	wantPlain(t, create("web", "p0", "none"), codes.FailedPrecondition, "provider 'none' not found")
	wantPlain(t, create("web", "p0", "twin"), codes.FailedPrecondition, "both set the environment variable TOKEN_0")
	wantField(t, create("web", "p0", ""), "spec.providers[1]")
	if _, ok := g.Get(t, "web"); ok {
		t.Error("a refused create left a sandbox")
	}
	if err := create("web", "p1", "p0", "p1"); err != nil {
		t.Fatal(err)
	}
	if web, _ := g.Get(t, "web"); !slices.Equal(web.GetSpec().GetProviders(), []string{"p1", "p0"}) {
		t.Errorf("providers %v", web.GetSpec().GetProviders())
	}
}

// A credential that has expired sets no variable, so it is in the way of none, until it expires later again.
func TestExpiredCredentialsAreInNobodysWay(t *testing.T) {
	g := startWithProviders(t, 1)
	expire := func(at time.Time) error {
		_, err := g.OpenShell().UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{
			Provider:       &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "twin"}},
			WorkspaceScope: gatewaytest.Default(), CredentialExpirationTimes: map[string]*timestamppb.Timestamp{"TOKEN_0": timestamppb.New(at)},
		})
		return err
	}
	g.MustCreate(t, "web", gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = []string{"p0"} }))
	wantStatus(t, expire(time.Now().Add(time.Hour)), codes.OK, "")
	_, err := attach(t, g, "web", "twin", 0)
	wantPlain(t, err, codes.FailedPrecondition, "both set the environment variable TOKEN_0")
	wantStatus(t, expire(time.Now().Add(-time.Hour)), codes.OK, "")
	if _, err := attach(t, g, "web", "twin", 0); err != nil {
		t.Error(err)
	}
	wantPlain(t, expire(time.Now().Add(time.Hour)), codes.FailedPrecondition, "would break sandbox 'web'")
}

// An update of a provider reaches every sandbox that has it, and must not break any.
func TestUpdateProviderReachesSandboxes(t *testing.T) {
	g := startWithProviders(t, 2)
	with := func(names ...string) gatewaytest.CreateOption {
		return gatewaytest.Request(func(r *openshellv1.CreateSandboxRequest) { r.Spec.Providers = names })
	}
	web, api := g.MustCreate(t, "web", with("p0")), g.MustCreate(t, "api", with("p0", "p1"))
	g.MustCreate(t, "other", with("p1"))
	update := func(name string, credentials map[string]string) (*openshellv1.ProviderResponse, error) {
		return g.OpenShell().UpdateProvider(call(t), &openshellv1.UpdateProviderRequest{
			Provider: &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: name}, Credentials: credentials}, WorkspaceScope: gatewaytest.Default(),
		})
	}
	reply, err := update("p0", map[string]string{"TOKEN_0": "new", "SHARED": "x"})
	if err != nil || len(reply.GetTargetReceipts()) != 2 {
		t.Fatal(reply, err)
	}
	for i, s := range []*openshellv1.Sandbox{web, api} {
		receipt := reply.GetTargetReceipts()[i]
		wantReceipt(t, receipt, openshellv1.ProviderMutationKind_PROVIDER_MUTATION_KIND_UPDATE, s, reply.GetProvider())
		if receipt.GetMutationId() != reply.GetMutationId() {
			t.Errorf("receipt of mutation %s, update is mutation %s", receipt.GetMutationId(), reply.GetMutationId())
		}
		wantUnchanged(t, g, s)
	}
	_, err = update("p1", map[string]string{"SHARED": "x"})
	wantPlain(t, err, codes.FailedPrecondition, "would break sandbox 'api'")
	if p1 := getProvider(t, g, "p1"); p1.GetMetadata().GetResourceVersion() != 1 || len(p1.GetCredentials()) != 1 {
		t.Errorf("a refused update left %v", p1)
	}
}

// What belongs to a sandbox is its own, and not its name's.
func TestProvidersDoNotPassToASuccessor(t *testing.T) {
	g := startWithProviders(t, 1)
	g.MustCreate(t, "web")
	reply, err := attach(t, g, "web", "p0", 0)
	if err != nil {
		t.Fatal(err)
	}
	b := g.Replace(t, "web")
	if len(b.GetSpec().GetProviders()) != 0 {
		t.Errorf("the successor has %v", b.GetSpec().GetProviders())
	}
	_, err = g.OpenShell().GetSandboxProviderStatus(call(t), &openshellv1.GetSandboxProviderStatusRequest{
		Sandbox: "web", Provider: "p0", ReceiptId: reply.GetReceipt().GetReceiptId(), WorkspaceScope: gatewaytest.Default(),
	})
	wantPlain(t, err, codes.NotFound, "receipt")
	if _, err := g.OpenShell().DeleteProvider(call(t), &openshellv1.DeleteProviderRequest{Name: "p0", WorkspaceScope: gatewaytest.Default()}); err != nil {
		t.Errorf("the provider of a sandbox that is gone: %v", err)
	}
}
