package auth

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	optionsv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/options/v1"
)

// Values of AuthorizationRule (upstream-contract, custom options).
const (
	modeUnauthenticated = "unauthenticated"
	modeBearer          = "bearer"
	modeDual            = "dual"
	modeSandbox         = "sandbox"
	modePeer            = "peer"

	roleUser          = "user"
	roleAdmin         = "admin"
	rolePlatformAdmin = "platform_admin"

	// scopeAll grants every scope, and is what an unknown method asks for.
	scopeAll = "openshell:all"
)

// rule says who may call a method: its AuthorizationRule, checked.
type rule struct {
	mode, workspaceRole, globalRole, scope string
}

// forUsers tells whether a person may call the method at all; the others are for sandboxes and for other gateways.
func (r rule) forUsers() bool { return r.mode == modeBearer || r.mode == modeDual }

// Methods that ask for less than a role and a scope. They are listed so that a forgotten option cannot open a method.
var (
	authenticationOnly = map[string]bool{"/openshell.v1.OpenShell/GetCurrentUser": true}
	scopeOnly          = map[string]bool{"/openshell.v1.OpenShell/GetGatewayConfig": true}
)

// table holds the rule of every method by its full name, such as /openshell.v1.OpenShell/GetSandbox.
type table map[string]rule

// newTable reads the rules from the options of the methods, which is where they are written down: beside the method.
func newTable(services []*grpc.ServiceDesc) (table, error) {
	rules := table{}
	var problems []error
	for _, service := range services {
		for _, name := range methodNames(service) {
			method := "/" + service.ServiceName + "/" + name
			r, err := ruleOf(service.ServiceName, name)
			if err == nil {
				err = r.check(method)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("auth: method %s: %w", method, err))
				continue
			}
			rules[method] = r
		}
	}
	return rules, errors.Join(problems...)
}

func methodNames(service *grpc.ServiceDesc) []string {
	var names []string
	for _, m := range service.Methods {
		names = append(names, m.MethodName)
	}
	for _, s := range service.Streams {
		names = append(names, s.StreamName)
	}
	return names
}

func ruleOf(service, method string) (rule, error) {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return rule{}, err
	}
	descriptor, ok := found.(protoreflect.ServiceDescriptor)
	if !ok {
		return rule{}, errors.New("its service is no service in the descriptors")
	}
	m := descriptor.Methods().ByName(protoreflect.Name(method))
	if m == nil {
		return rule{}, errors.New("not in the descriptors")
	}
	option, ok := proto.GetExtension(m.Options(), optionsv1.E_Authorization).(*optionsv1.AuthorizationRule)
	if !ok || option == nil {
		return rule{}, errors.New("has no openshell.options.v1.authorization option, so nobody knows who may call it")
	}
	return rule{
		mode: option.GetAuthMode(), workspaceRole: option.GetWorkspaceRole(),
		globalRole: option.GetGlobalRole(), scope: option.GetScope(),
	}, nil
}

func (r rule) check(method string) error {
	switch r.mode {
	case modeUnauthenticated, modeSandbox, modePeer:
		if r.workspaceRole != "" || r.globalRole != "" || r.scope != "" {
			return fmt.Errorf("auth_mode %q takes no role and no scope", r.mode)
		}
		return nil
	case modeBearer, modeDual:
	default:
		return fmt.Errorf("unknown auth_mode %q", r.mode)
	}
	switch {
	case r.workspaceRole != "" && r.globalRole != "":
		return errors.New("workspace_role and global_role exclude each other")
	case r.workspaceRole != "" && r.workspaceRole != roleUser && r.workspaceRole != roleAdmin:
		return fmt.Errorf("unknown workspace_role %q", r.workspaceRole)
	case r.globalRole != "" && r.globalRole != rolePlatformAdmin:
		return fmt.Errorf("unknown global_role %q", r.globalRole)
	case r.scope == "" && !authenticationOnly[method]:
		return errors.New("names no scope")
	case r.workspaceRole == "" && r.globalRole == "" && !authenticationOnly[method] && !scopeOnly[method]:
		return errors.New("names no role")
	}
	return nil
}

// withoutCredential tells whether a method belongs to the services that everybody may call: health and reflection.
func withoutCredential(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.") || strings.HasPrefix(method, "/grpc.reflection.")
}
