package fuzz

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// home selects the workspace that there is.
var home = &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: store.DefaultWorkspace}}

// populated has one of each thing in it, all of the same name.
func populated(tb testing.TB) *memory {
	tb.Helper()
	m := newMemory()
	g := newGateway(tb, m)
	meta := &datamodelv1.ObjectMeta{Name: sample}
	profile := &openshellv1.ProviderProfile{
		Id: sample, DisplayName: sample, Category: openshellv1.ProviderProfileCategory_PROVIDER_PROFILE_CATEGORY_OTHER,
		Credentials: []*openshellv1.ProviderProfileCredential{{Name: sample, EnvVars: []string{sample}}},
	}
	for name, req := range map[string]proto.Message{
		openshellv1.OpenShell_ImportProviderProfiles_FullMethodName: &openshellv1.ImportProviderProfilesRequest{
			Profiles: []*openshellv1.ProviderProfileImportItem{{Profile: profile}},
		},
		openshellv1.OpenShell_CreateSandbox_FullMethodName: &openshellv1.CreateSandboxRequest{WorkspaceScope: home, Name: sample, Spec: &openshellv1.SandboxSpec{}},
		openshellv1.OpenShell_CreateSandboxTemplate_FullMethodName: &openshellv1.CreateSandboxTemplateRequest{
			WorkspaceScope: home, Template: &openshellv1.SandboxWorkloadTemplate{
				Metadata: meta, Spec: &openshellv1.SandboxWorkloadTemplateSpec{Workload: &openshellv1.SandboxWorkloadConfig{}},
			},
		},
		openshellv1.OpenShell_AddWorkspaceMember_FullMethodName: &openshellv1.AddWorkspaceMemberRequest{
			WorkspaceScope: home, PrincipalSubject: sample, Role: openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER,
		},
	} {
		if _, err := g.call(tb, name, req); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	provider := &datamodelv1.Provider{Metadata: meta, Type: sample, Credentials: map[string]string{sample: "secret"}}
	if _, err := g.call(tb, openshellv1.OpenShell_CreateProvider_FullMethodName, &openshellv1.CreateProviderRequest{WorkspaceScope: home, Provider: provider}); err != nil {
		tb.Fatal(err)
	}
	if _, err := g.call(tb, openshellv1.OpenShell_ExposeService_FullMethodName, &openshellv1.ExposeServiceRequest{
		WorkspaceScope: home, Sandbox: sample, Name: sample, TargetPort: 80,
	}); err != nil {
		tb.Fatal(err)
	}
	for id, s := range m.sandboxes {
		s.Status = proto.CloneOf(s.Status)
		s.Status.Phase = openshellv1.SandboxPhase_SANDBOX_PHASE_READY
		m.sandboxes[id] = s
	}
	return m
}

// more are requests besides the samples, by method.
var more = map[string][]proto.Message{
	openshellv1.OpenShell_CreateSandbox_FullMethodName: {
		creation("", &openshellv1.SandboxSpec{}), creation("-new", &openshellv1.SandboxSpec{}), creation(strings.Repeat("n", 64), &openshellv1.SandboxSpec{}),
		creation("new", &openshellv1.SandboxSpec{Environment: map[string]string{"1A": "b"}}),
		creation("new", &openshellv1.SandboxSpec{Command: []string{""}}),
		creation("new", &openshellv1.SandboxSpec{Providers: []string{sample, sample}, LogLevel: "info", Tty: true}),
		&openshellv1.CreateSandboxRequest{WorkspaceScope: home, Spec: &openshellv1.SandboxSpec{}, Labels: map[string]string{"a/b": "c/d"}},
		&openshellv1.CreateSandboxRequest{WorkspaceScope: home, Spec: &openshellv1.SandboxSpec{}, Annotations: map[string]string{"a": "b\x00c", "": ""}},
		&openshellv1.CreateSandboxRequest{WorkspaceScope: home, WorkloadTemplate: sample},
	},
	openshellv1.OpenShell_UpdateConfig_FullMethodName: {
		&openshellv1.UpdateConfigRequest{Sandbox: sample, WorkspaceScope: home, SettingKey: "ocsf_json_enabled", DeleteSetting: true},
		&openshellv1.UpdateConfigRequest{Sandbox: sample, WorkspaceScope: home, MergeOperations: []*openshellv1.PolicyMergeOperation{
			{Operation: &openshellv1.PolicyMergeOperation_RemoveRule{RemoveRule: &openshellv1.RemoveNetworkRule{RuleName: sample}}},
		}},
	},
}

func creation(name string, spec *openshellv1.SandboxSpec) *openshellv1.CreateSandboxRequest {
	return &openshellv1.CreateSandboxRequest{Name: name, WorkspaceScope: home, Spec: spec}
}

// FuzzRequests has every method answer whatever it is asked, without a failure of its own, and take in nothing that the
// rules of the contract refuse.
func FuzzRequests(f *testing.F) {
	full, m := populated(f), newMemory()
	g := newGateway(f, m)
	var id string
	for id = range full.sandboxes {
	}
	for i, method := range g.methods {
		f.Add(uint8(i), []byte(nil))
		f.Add(uint8(i), wireOf(f, sampleRequest(f, method.name, id)))
		for _, req := range more[method.name] {
			f.Add(uint8(i), wireOf(f, req))
		}
		if method.name == openshellv1.OpenShell_UpdateConfig_FullMethodName {
			for _, req := range configUpdates() {
				f.Add(uint8(i), wireOf(f, req))
			}
		}
	}
	f.Fuzz(func(t *testing.T, number uint8, wire []byte) {
		m.restore(full)
		method := g.methods[int(number)%len(g.methods)]
		ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
		defer cancel()
		_, err := method.call(ctx, wire)
		if errors.Is(err, errWire) {
			return
		}
		if wantShown(t, err); t.Failed() {
			t.Error(method.name)
		}
		for _, s := range m.sandboxes {
			if problem := rules.Name(s.Name) + rules.Labels(s.Labels); problem != "" {
				t.Errorf("%s let in the sandbox %q with %v, which %s", method.name, s.Name, s.Labels, problem)
			}
			if v := rules.Annotations("annotations", s.Annotations); v != nil {
				t.Errorf("%s let in: %v", method.name, v)
			}
			if v := rules.Spec("spec", s.Spec); v != nil {
				t.Errorf("%s let in: %v", method.name, v)
			}
		}
		for _, o := range m.objects {
			if strings.ContainsRune(o.Name, 0) || o.Workspace != "" && m.workspaces[o.Workspace].ID == "" && method.name != openshellv1.OpenShell_DeleteWorkspace_FullMethodName {
				t.Errorf("%s let in the %s %q of %q", method.name, o.Kind, o.Name, o.Workspace)
			}
		}
	})
}

// configUpdates are updates of the configuration that are made.
func configUpdates() []*openshellv1.UpdateConfigRequest {
	rule := &sandboxv1.NetworkPolicyRule{
		Endpoints: []*sandboxv1.NetworkEndpoint{{Host: "*.a.example.com", Port: 443, Protocol: "rest", Rules: []*sandboxv1.L7Rule{{Allow: &sandboxv1.L7Allow{Method: "GET", Path: "/v1/**"}}}}},
		Binaries:  []*sandboxv1.NetworkBinary{{Path: "/usr/bin/curl"}},
	}
	policy := &sandboxv1.SandboxPolicy{
		Version: 1, Filesystem: &sandboxv1.FilesystemPolicy{ReadOnly: []string{"/usr"}}, NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{sample: rule},
	}
	add := &openshellv1.PolicyMergeOperation{Operation: &openshellv1.PolicyMergeOperation_AddRule{AddRule: &openshellv1.AddNetworkRule{RuleName: sample, Rule: rule}}}
	value := &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: true}}
	return []*openshellv1.UpdateConfigRequest{
		{Sandbox: sample, WorkspaceScope: home, Policy: policy, Annotations: map[string]string{sample: sample}},
		{Sandbox: sample, WorkspaceScope: home, MergeOperations: []*openshellv1.PolicyMergeOperation{add}},
		{Sandbox: sample, WorkspaceScope: home, SettingKey: "ocsf_json_enabled", SettingValue: value},
		{Global: true, Policy: policy}, {Global: true, SettingKey: "policy", DeleteSetting: true}, {Global: true, SettingKey: "ocsf_json_enabled", SettingValue: value},
	}
}

// sample is the text in sample requests: a name that all rules of names and keys allow.
const sample = "web"

// left are fields that a sample request is better off without: what they refer to is not known, or they exclude others.
var left = []protoreflect.Name{
	"request_id", "page_token", "label_selector", "resource_version", "expected_resource_version", "workspace", "global", "receipt_id",
	"resume_after_cursor", "profile_workspace",
}

// sampleRequest is a request with something in most fields, about the things that there are; id is that of the sandbox.
func sampleRequest(tb testing.TB, method, id string) proto.Message {
	tb.Helper()
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	methodDescriptor, ok := descriptor.(protoreflect.MethodDescriptor)
	if !ok {
		tb.Fatalf("%s is no method", name)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(methodDescriptor.Input().FullName())
	if err != nil {
		tb.Fatal(err)
	}
	req := kind.New()
	fill(req, id, 6)
	return req.Interface()
}

// fill sets the fields of a message and, so many levels down, of those in it.
func fill(m protoreflect.Message, id string, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Message() != nil && depth == 0, f.ContainingOneof() != nil && m.WhichOneof(f.ContainingOneof()) != nil:
		case f.IsMap():
			if f.MapValue().Message() == nil {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(sample).MapKey(), scalar(f.MapValue()))
			}
		case f.IsList() && f.Message() != nil:
			fill(m.Mutable(f).List().AppendMutable().Message(), id, depth-1)
		case f.IsList():
			m.Mutable(f).List().Append(scalar(f))
		case f.Message() != nil:
			fill(m.Mutable(f).Message(), id, depth-1)
		case !slices.Contains(left, f.Name()):
			m.Set(f, scalar(f))
		}
	}
	switch m := m.Interface().(type) {
	case *datamodelv1.WorkspaceSelector:
		m.Selection = home.GetSelection()
	case *conditionalv1.SandboxPrecondition:
		m.Id = &id
	case *openshellv1.UpdateConfigRequest: // of what it can change, one
		m.SettingKey, m.SettingValue, m.DeleteSetting, m.MergeOperations = "", nil, false, nil
	}
}

func scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(sample)
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(sample))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(1)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(1)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(1)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(1)
	default:
		return protoreflect.ValueOfFloat64(1)
	}
}

func wireOf(tb testing.TB, m proto.Message) []byte {
	tb.Helper()
	wire, err := proto.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return wire
}
