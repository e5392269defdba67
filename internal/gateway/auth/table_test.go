package auth

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/emptypb"

	optionsv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/options/v1"
)

// A rule that was written down wrongly is found when the server starts, not when somebody gets through.
func TestRuleCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		rule   rule
		method string
		says   string // empty: the rule is good
	}{
		"user":                       {rule{mode: "bearer", workspaceRole: "user", scope: "s:read"}, "/s/M", ""},
		"admin":                      {rule{mode: "dual", workspaceRole: "admin", scope: "s:write"}, "/s/M", ""},
		"platform":                   {rule{mode: "bearer", globalRole: "platform_admin", scope: "s:write"}, "/s/M", ""},
		"open":                       {rule{mode: "unauthenticated"}, "/s/M", ""},
		"for sandboxes":              {rule{mode: "sandbox"}, "/s/M", ""},
		"for gateways":               {rule{mode: "peer"}, "/s/M", ""},
		"authentication only":        {rule{mode: "bearer"}, "/openshell.v1.OpenShell/GetCurrentUser", ""},
		"scope only":                 {rule{mode: "bearer", scope: "config:read"}, "/openshell.v1.OpenShell/GetGatewayConfig", ""},
		"empty":                      {rule{}, "/s/M", `unknown auth_mode ""`},
		"unknown mode":               {rule{mode: "Bearer", workspaceRole: "user", scope: "s:read"}, "/s/M", `unknown auth_mode "Bearer"`},
		"both roles":                 {rule{mode: "bearer", workspaceRole: "user", globalRole: "platform_admin", scope: "s:read"}, "/s/M", "exclude each other"},
		"unknown workspace role":     {rule{mode: "bearer", workspaceRole: "owner", scope: "s:read"}, "/s/M", `unknown workspace_role "owner"`},
		"unknown global role":        {rule{mode: "bearer", globalRole: "root", scope: "s:read"}, "/s/M", `unknown global_role "root"`},
		"forgotten scope":            {rule{mode: "bearer", workspaceRole: "user"}, "/s/M", "no scope"},
		"forgotten role":             {rule{mode: "bearer", scope: "s:read"}, "/s/M", "no role"},
		"forgotten scope and role":   {rule{mode: "bearer"}, "/openshell.v1.OpenShell/GetGatewayConfig", "no scope"},
		"open, but with a scope":     {rule{mode: "unauthenticated", scope: "s:read"}, "/s/M", "takes no role and no scope"},
		"for sandboxes, with a role": {rule{mode: "sandbox", workspaceRole: "user"}, "/s/M", "takes no role and no scope"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.rule.check(tc.method)
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// Methods for sandboxes and for other gateways are not for users, whatever they may do otherwise.
func TestNotForUsers(t *testing.T) {
	root := Identity{Subject: "root", Roles: []string{"admin"}, Scopes: []string{scopeAll}, Provider: OIDC}
	for _, mode := range []string{modeSandbox, modePeer} {
		for _, p := range []policy{{}, {adminRole: "admin", userRole: "user", scopes: true}} {
			if err := p.allows(root, rule{mode: mode}); err == nil {
				t.Errorf("a user may call a method for %q", mode)
			}
		}
	}
}

// A method with a bad rule, and one without any, stop the server, and both are named.
func TestTableRefusesBadRules(t *testing.T) {
	method := func(name string, r *optionsv1.AuthorizationRule) *descriptorpb.MethodDescriptorProto {
		options := &descriptorpb.MethodOptions{}
		if r != nil {
			proto.SetExtension(options, optionsv1.E_Authorization, r)
		}
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, Options: options, InputType: new(".google.protobuf.Empty"), OutputType: new(".google.protobuf.Empty"),
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: new("auth_test.proto"), Package: new("auth.test.v1"), Syntax: new("proto3"), Dependency: []string{"google/protobuf/empty.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: new("Odd"), Method: []*descriptorpb.MethodDescriptorProto{
			method("Good", &optionsv1.AuthorizationRule{AuthMode: "bearer", WorkspaceRole: "user", Scope: "s:read"}),
			method("Careless", &optionsv1.AuthorizationRule{AuthMode: "bearer", WorkspaceRole: "user"}),
			method("Silent", nil),
		}}},
	}, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := protoregistry.GlobalFiles.FindFileByPath(file.Path()); err != nil { // the first run of the test
		if err := protoregistry.GlobalFiles.RegisterFile(file); err != nil {
			t.Fatal(err)
		}
	}
	service := func(methods ...string) []*grpc.ServiceDesc {
		desc := &grpc.ServiceDesc{ServiceName: "auth.test.v1.Odd"}
		for _, name := range methods {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{StreamName: name})
		}
		return []*grpc.ServiceDesc{desc}
	}
	if _, err := newTable(service("Good")); err != nil {
		t.Error(err)
	}
	_, err = newTable(service("Good", "Careless", "Silent"))
	if err == nil || !strings.Contains(err.Error(), "/auth.test.v1.Odd/Careless: names no scope") || !strings.Contains(err.Error(), "/auth.test.v1.Odd/Silent: has no") {
		t.Errorf("got %v", err)
	}
}
