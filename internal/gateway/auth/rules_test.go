package auth_test

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	optionsv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/options/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth/authtest"
)

// methods lists every method of both services with its rule, straight from the descriptors.
func methods(t *testing.T) map[string]*optionsv1.AuthorizationRule {
	t.Helper()
	rules := map[string]*optionsv1.AuthorizationRule{}
	for _, file := range []protoreflect.FileDescriptor{openshellv1.File_openshell_v1_openshell_proto, conditionalv1.File_openshell_conditional_v1_conditional_proto} {
		services := file.Services()
		for i := range services.Len() {
			list := services.Get(i).Methods()
			for j := range list.Len() {
				m := list.Get(j)
				option, ok := proto.GetExtension(m.Options(), optionsv1.E_Authorization).(*optionsv1.AuthorizationRule)
				if !ok {
					t.Fatalf("%s has no rule", m.FullName())
				}
				rules["/"+string(m.Parent().FullName())+"/"+string(m.Name())] = option
			}
		}
	}
	return rules
}

// reaches makes a call of any kind and tells whether its handler was called, and the code if it was not.
func (g *gateway) reaches(conn *grpc.ClientConn, method, token string) (bool, codes.Code) {
	g.t.Helper()
	err := call(g.t, conn, method, token)
	hits := g.hits()
	if len(hits) > 1 || len(hits) == 1 && hits[0] != method {
		g.t.Fatalf("%s reached %v", method, hits)
	}
	return len(hits) == 1, status.Code(err)
}

// scopesBut are all scopes but one, as a token has them.
func scopesBut(one string) string {
	var all []string
	for _, what := range []string{"sandbox", "provider", "config", "workspace"} {
		for _, how := range []string{"read", "write"} {
			if scope := what + ":" + how; scope != one {
				all = append(all, scope)
			}
		}
	}
	return strings.Join(all, " ")
}

// Every method against every kind of caller: whose call reaches the handler.
func TestEveryMethod(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	cfg := issuer.ScopedConfig()
	g := start(t, auth.Config{OIDC: cfg}, nil)
	conn := g.dial(nil)
	roles := func(names ...string) map[string]any { return map[string]any{"roles": names} }
	const user, admin = "openshell-user", "openshell-admin"

	rules := methods(t)
	if len(rules) < 50 {
		t.Fatalf("only %d methods", len(rules))
	}
	for method, rule := range rules {
		needsNothing := rule.GetAuthMode() == "unauthenticated"
		anyRole := rule.GetWorkspaceRole() == "" && rule.GetGlobalRole() == ""
		for name, tc := range map[string]struct {
			token string
			may   bool
			code  codes.Code
		}{
			"no credential":     {"", needsNothing, codes.Unauthenticated},
			"expired":           {issuer.Token("ann", map[string]any{"exp": 1, "scope": "openshell:all", "realm_access": roles(admin)}), needsNothing, codes.Unauthenticated},
			"no scope, no role": {issuer.Token("ann", map[string]any{"realm_access": nil}), needsNothing || anyRole && rule.GetScope() == "", codes.PermissionDenied},
			"user, no scope":    {issuer.Token("ann", map[string]any{"realm_access": roles(user)}), needsNothing || rule.GetGlobalRole() == "" && rule.GetScope() == "", codes.PermissionDenied},
			"user, this scope":  {issuer.Token("ann", map[string]any{"realm_access": roles(user), "scope": rule.GetScope()}), rule.GetGlobalRole() == "", codes.PermissionDenied},
			"user, every scope": {issuer.Token("ann", map[string]any{"realm_access": roles(user), "scope": "openshell:all"}), rule.GetGlobalRole() == "", codes.PermissionDenied},
			"user, others":      {issuer.Token("ann", map[string]any{"realm_access": roles(user), "scope": scopesBut(rule.GetScope())}), needsNothing || rule.GetGlobalRole() == "" && rule.GetScope() == "", codes.PermissionDenied},
			"admin, no scope":   {issuer.Token("ann", map[string]any{"realm_access": roles(admin)}), needsNothing || rule.GetScope() == "", codes.PermissionDenied},
			"admin, this scope": {issuer.Token("ann", map[string]any{"realm_access": roles(admin), "scope": rule.GetScope()}), true, codes.OK},
			"no role, scope":    {issuer.Token("ann", map[string]any{"realm_access": nil, "scope": "openshell:all"}), needsNothing || anyRole, codes.PermissionDenied},
		} {
			may, code := g.reaches(conn, method, tc.token)
			if may != tc.may {
				t.Errorf("%s by %q: reaches the handler: %v, want %v", method, name, may, tc.may)
			}
			if !may && code != tc.code {
				t.Errorf("%s by %q: %v, want %v", method, name, code, tc.code)
			}
		}
	}
}

// The rules themselves, for a few methods that matter most, as the contract has them.
func TestRulesOfTheContract(t *testing.T) {
	rules := methods(t)
	for method, want := range map[string]*optionsv1.AuthorizationRule{
		"/openshell.v1.OpenShell/Health":                                       {AuthMode: "unauthenticated"},
		"/openshell.v1.OpenShell/GetCurrentUser":                               {AuthMode: "bearer"},
		"/openshell.v1.OpenShell/GetGatewayInfo":                               {AuthMode: "bearer", Scope: "config:read", GlobalRole: "platform_admin"},
		"/openshell.v1.OpenShell/DeleteSandbox":                                {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox":         {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/StopSandbox":           {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/StartSandbox":          {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/AttachSandboxProvider": {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/DetachSandboxProvider": {AuthMode: "bearer", Scope: "sandbox:write", WorkspaceRole: "user"},
		"/openshell.conditional.v1.ConditionalSandboxes/UpdateSandboxConfig":   {AuthMode: "bearer", Scope: "config:write", WorkspaceRole: "admin"},
		"/openshell.v1.OpenShell/CreateProvider":                               {AuthMode: "bearer", Scope: "provider:write", WorkspaceRole: "admin"},
		"/openshell.v1.OpenShell/CreateWorkspace":                              {AuthMode: "bearer", Scope: "workspace:write", GlobalRole: "platform_admin"},
		"/openshell.v1.OpenShell/GetGatewayConfig":                             {AuthMode: "bearer", Scope: "config:read"},
		"/openshell.v1.OpenShell/UpdateConfig":                                 {AuthMode: "dual", Scope: "config:write", WorkspaceRole: "admin"},
		"/openshell.v1.OpenShell/AddWorkspaceMember":                           {AuthMode: "bearer", Scope: "workspace:write", WorkspaceRole: "admin"},
	} {
		if !proto.Equal(rules[method], want) {
			t.Errorf("%s: %v, want %v", method, rules[method], want)
		}
	}
}

// What a stock gateway says to a method it does not know, in each mode of authentication: the caller first, then the
// scope, and only then that there is no such method.
func TestUnknownMethods(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	scoped := issuer.ScopedConfig()
	ca := authtest.NewCA(t, "clients")
	files := authtest.WriteFiles(t, ca.Server(), ca)
	server, err := auth.NewTLS(auth.TLSConfig{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.ClientCA})
	if err != nil {
		t.Fatal(err)
	}
	stock := []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc}
	withCertificate := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Client("ann").Certificate()}}
	user := func(scope string) string { return issuer.Token("ann", map[string]any{"scope": scope}) }

	for name, tc := range map[string]struct {
		cfg            auth.Config
		server, client *tls.Config
		token          string
		want           codes.Code
	}{
		"local development":            {cfg: auth.Config{Unauthenticated: auth.FromLoopback}, want: codes.Unimplemented},
		"mTLS":                         {cfg: auth.Config{ClientCertificates: true}, server: server, client: withCertificate, want: codes.Unimplemented},
		"mTLS, no certificate":         {cfg: auth.Config{ClientCertificates: true}, server: server, client: &tls.Config{RootCAs: ca.Pool()}, want: codes.Unauthenticated},
		"OIDC, no token":               {cfg: auth.Config{OIDC: issuer.Config()}, want: codes.Unauthenticated},
		"OIDC, bad token":              {cfg: auth.Config{OIDC: issuer.Config()}, token: "x", want: codes.Unauthenticated},
		"OIDC, user":                   {cfg: auth.Config{OIDC: issuer.Config()}, token: user(""), want: codes.Unimplemented},
		"OIDC, nobody in particular":   {cfg: auth.Config{OIDC: issuer.Config()}, token: issuer.Token("ann", map[string]any{"realm_access": nil}), want: codes.PermissionDenied},
		"OIDC with scopes, write only": {cfg: auth.Config{OIDC: scoped}, token: user("sandbox:write"), want: codes.PermissionDenied},
		"OIDC with scopes, all":        {cfg: auth.Config{OIDC: scoped}, token: user("openshell:all"), want: codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			tc.cfg.Services = stock
			g := start(t, tc.cfg, tc.server)
			conn := g.dial(tc.client)
			for _, method := range []string{
				"/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox", // not registered here
				"/openshell.v1.OpenShell/NoSuchMethod",
				"/no.such.Service/Method",
			} {
				wantCode(t, call(t, conn, method, tc.token), tc.want)
			}
			// Health and reflection are open, and not there.
			for _, method := range []string{"/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
				wantCode(t, call(t, conn, method, ""), codes.Unimplemented)
			}
			if hits := g.hits(); len(hits) > 2 {
				t.Errorf("reached %v", hits)
			}
		})
	}
}

// A method that lacks a rule, or has one that says nothing or too much, keeps the server from starting.
func TestServerDoesNotStartWithoutRules(t *testing.T) {
	service := func(name string, methods ...string) *grpc.ServiceDesc {
		desc := &grpc.ServiceDesc{ServiceName: name}
		for _, m := range methods {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m})
		}
		return desc
	}
	for name, tc := range map[string]struct {
		service *grpc.ServiceDesc
		says    string
	}{
		"no option":        {&healthv1.Health_ServiceDesc, "/grpc.health.v1.Health/Check: has no openshell.options.v1.authorization option"},
		"unknown service":  {service("no.such.Service", "Method"), "/no.such.Service/Method: "},
		"unknown method":   {service("openshell.v1.OpenShell", "NoSuchMethod"), "not in the descriptors"},
		"not a service":    {service("openshell.v1.Sandbox", "Method"), "no service in the descriptors"},
		"one bad of three": {service("openshell.v1.OpenShell", "GetSandbox", "NoSuchMethod", "Health"), "NoSuchMethod"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := auth.New(t.Context(), auth.Config{Services: []*grpc.ServiceDesc{tc.service}, Unauthenticated: auth.FromLoopback})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
}

// A service that the server registers behind the gate's back is found before it serves, and refused if it is not.
func TestUnannouncedService(t *testing.T) {
	gate, err := auth.New(t.Context(), auth.Config{Services: []*grpc.ServiceDesc{&openshellv1.OpenShell_ServiceDesc}, Unauthenticated: auth.FromLoopback})
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	openshellv1.RegisterOpenShellServer(server, dummy{})
	if err := gate.CheckServer(server.GetServiceInfo()); err != nil {
		t.Error(err)
	}
	conditionalv1.RegisterConditionalSandboxesServer(server, conditionalv1.UnimplementedConditionalSandboxesServer{})
	if err := gate.CheckServer(server.GetServiceInfo()); err == nil || !strings.Contains(err.Error(), "ConditionalSandboxes/DeleteSandbox") {
		t.Errorf("got %v", err)
	}
	_, err = gate.UnaryInterceptor(loopback(t.Context()), &emptypb.Empty{},
		&grpc.UnaryServerInfo{FullMethod: "/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox"},
		func(context.Context, any) (any, error) { t.Error("reached"); return nil, nil })
	wantCode(t, err, codes.Unimplemented)
}

// Configurations that let nobody in, or everybody by accident.
func TestBadConfigurations(t *testing.T) {
	issuer := authtest.NewIssuer(t)
	for name, tc := range map[string]struct {
		change func(*auth.OIDCConfig)
		says   string
	}{
		"no audience":        {func(c *auth.OIDCConfig) { c.Audience = "" }, "audience"},
		"no TTL":             {func(c *auth.OIDCConfig) { c.JWKSTTL = 0 }, "TTL"},
		"negative leeway":    {func(c *auth.OIDCConfig) { c.Leeway = -1 }, "leeway"},
		"admin role alone":   {func(c *auth.OIDCConfig) { c.UserRole = "" }, "set both"},
		"user role alone":    {func(c *auth.OIDCConfig) { c.AdminRole = "" }, "set both"},
		"no roles claim":     {func(c *auth.OIDCConfig) { c.RolesClaim = "" }, "claim that carries the roles"},
		"no host":            {func(c *auth.OIDCConfig) { c.Issuer = "issuer" }, "name a host"},
		"plaintext":          {func(c *auth.OIDCConfig) { c.Issuer = "http://issuer.example" }, "must be https"},
		"credentials":        {func(c *auth.OIDCConfig) { c.Issuer = "https://user:canary-password@issuer.example" }, "no credentials"},
		"query":              {func(c *auth.OIDCConfig) { c.Issuer += "?a=b" }, "no query"},
		"not a URL":          {func(c *auth.OIDCConfig) { c.Issuer = "http://%zz" }, "not a URL"},
		"plaintext keys":     {func(c *auth.OIDCConfig) { c.JWKSOrigins = []string{"http://keys.example"} }, "must be https"},
		"key origin no URL":  {func(c *auth.OIDCConfig) { c.JWKSOrigins = []string{"http://%zz"} }, "not a URL"},
		"nobody knows which": {func(*auth.OIDCConfig) {}, "members of workspaces"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := issuer.Config()
			tc.change(cfg)
			_, err := auth.New(t.Context(), auth.Config{OIDC: cfg})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("got %v, want it to say %q", err, tc.says)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := auth.New(t.Context(), auth.Config{ClientCertificates: true, Unauthenticated: auth.FromLoopback}); err == nil || !strings.Contains(err.Error(), "does not go together") {
		t.Errorf("got %v", err)
	}
	if _, err := auth.New(t.Context(), auth.Config{}); err == nil || !strings.Contains(err.Error(), "nobody could call") {
		t.Errorf("got %v", err)
	}
}
