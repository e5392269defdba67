package gateway_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	optionsv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/options/v1"
	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// method is a method of the gateway and its rule, as the proto sources have them.
type method struct {
	name       string
	descriptor protoreflect.MethodDescriptor
	rule       *optionsv1.AuthorizationRule
}

func (m method) short() string { return string(m.descriptor.Name()) }

// everyMethod lists all that the gateway registers, apart from health and reflection.
func everyMethod(t *testing.T) []method {
	t.Helper()
	var all []method
	for _, file := range []protoreflect.FileDescriptor{openshellv1.File_openshell_v1_openshell_proto, conditionalv1.File_openshell_conditional_v1_conditional_proto} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				rule, ok := proto.GetExtension(m.Options(), optionsv1.E_Authorization).(*optionsv1.AuthorizationRule)
				if !ok {
					t.Fatalf("%s has no rule", m.FullName())
				}
				all = append(all, method{"/" + string(m.Parent().FullName()) + "/" + string(m.Name()), m, rule})
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("only %d methods", len(all))
	}
	return all
}

// request is about the sandbox "web" of the workspace "default", or about things named "none" there. It is complete, but
// for a request_id that no call takes, so that whoever may make the call changes nothing.
func (m method) request(t *testing.T) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.descriptor.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	req := kind.New()
	fill(req)
	return req.Interface()
}

func fill(req protoreflect.Message) {
	name := "none"
	if strings.Contains(string(req.Descriptor().Name()), "Sandbox") && !strings.Contains(string(req.Descriptor().Name()), "Template") {
		name = "web"
	}
	values := map[protoreflect.Name]any{
		"name": name, "sandbox": "web", "provider": "none", "receipt_id": "none", "id": "none", "token": "none",
		"principal_subject": "none", "request_id": "no UUID",
	}
	fields := req.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch value, ok := values[f.Name()]; {
		case f.Name() == "request": // of a conditional call
			fill(req.Mutable(f).Message())
		case ok && f.Kind() == protoreflect.StringKind:
			req.Set(f, protoreflect.ValueOf(value))
		}
	}
	switch r := req.Interface().(type) {
	case *openshellv1.CreateSandboxRequest:
		r.Spec = &openshellv1.SandboxSpec{}
	case *openshellv1.WatchSandboxRequest:
		r.StopOnTerminal = true
	case *openshellv1.CreateSandboxTemplateRequest:
		r.Template = &openshellv1.SandboxWorkloadTemplate{
			Metadata: &datamodelv1.ObjectMeta{Name: "none"},
			Spec:     &openshellv1.SandboxWorkloadTemplateSpec{Workload: &openshellv1.SandboxWorkloadConfig{}},
		}
	case *openshellv1.ExposeServiceRequest:
		r.TargetPort = 80
	case *openshellv1.CreateProviderRequest:
		r.Provider = &datamodelv1.Provider{Type: "none"}
	case *openshellv1.UpdateProviderRequest:
		r.Provider = &datamodelv1.Provider{Metadata: &datamodelv1.ObjectMeta{Name: "none"}}
	case *openshellv1.UpdateProviderProfilesRequest:
		r.ExpectedResourceVersion = 1
		r.Profile = &openshellv1.ProviderProfileImportItem{Profile: &openshellv1.ProviderProfile{Id: "none"}}
	case *openshellv1.AddWorkspaceMemberRequest:
		r.Role = openshellv1.WorkspaceRole_WORKSPACE_ROLE_USER
	case *openshellv1.UpdateConfigRequest:
		r.SettingKey = "ocsf_json_enabled"
		r.SettingValue = &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: true}}
	case *openshellv1.GetWorkspaceRequest:
		r.Name = "default"
	}
	if f := fields.ByName("workspace_scope"); f != nil {
		req.Set(f, protoreflect.ValueOfMessage(gatewaytest.Default().ProtoReflect()))
	}
	if f := fields.ByName("precondition"); f != nil {
		id := "0b3c8f6e-3b52-4c38-9a7e-5a8a4f3f2b11"
		req.Set(f, protoreflect.ValueOfMessage((&conditionalv1.SandboxPrecondition{Id: &id}).ProtoReflect()))
	}
}

// answer is what the method says to somebody who may call it.
func (m method) answer() codes.Code {
	input := m.descriptor.Input()
	if f := input.Fields().ByName("request"); f != nil {
		input = f.Message()
	}
	switch {
	case input.Fields().ByName("request_id") != nil:
		return codes.InvalidArgument
	case slices.Contains([]string{
		"GetProvider", "GetProviderProfile", "GetSandboxTemplate", "GetService", "GetSandboxProviderStatus", "GetSandboxPolicyStatus", "RevokeSshSession",
	}, m.short()):
		return codes.NotFound
	}
	return codes.OK
}

// invoke makes a call of any kind to its end.
func invoke(t *testing.T, conn *grpc.ClientConn, m method, token string) error {
	t.Helper()
	return send(t, conn, m, m.request(t), token)
}

// send is invoke with another request.
func send(t *testing.T, conn *grpc.ClientConn, m method, req proto.Message, token string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), gatewaytest.Timeout)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, m.name)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.descriptor.Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err := stream.RecvMsg(kind.New().Interface()); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
