package telemetry

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// About tells what a request is about: the workspace and the name that it gives, if any. Of a conditional request it is
// what the plain one in it is about.
func About(req any) (workspace, name string) {
	if plain := inner(req); plain != nil {
		req = plain
	}
	if r, ok := req.(interface {
		GetWorkspaceScope() *datamodelv1.WorkspaceSelector
	}); ok {
		workspace = r.GetWorkspaceScope().GetWorkspace()
	}
	return workspace, nameIn(req)
}

// nameIn knows every field that names what a request is about. Most requests have one of them; that of a session to be
// revoked is a secret, and not among them.
func nameIn(req any) (name string) {
	if r, ok := req.(interface{ GetName() string }); ok {
		name = r.GetName()
	}
	switch r := req.(type) {
	case interface{ GetSandbox() string }:
		return cmp.Or(r.GetSandbox(), name) // a service has a name of its own, unique within its sandbox
	case interface{ GetProvider() *datamodelv1.Provider }:
		return r.GetProvider().GetMetadata().GetName()
	case interface {
		GetTemplate() *openshellv1.SandboxWorkloadTemplate
	}:
		return r.GetTemplate().GetMetadata().GetName()
	case interface{ GetPrincipalSubject() string }:
		return r.GetPrincipalSubject()
	case interface{ GetId() string }:
		return r.GetId()
	}
	return name
}

// inner is the plain request in a conditional one, nil for any other.
func inner(conditional any) any {
	switch r := conditional.(type) {
	case *conditionalv1.ConditionalDeleteSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalStopSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalStartSandboxRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalAttachSandboxProviderRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalDetachSandboxProviderRequest:
		return r.GetRequest()
	case *conditionalv1.ConditionalUpdateSandboxConfigRequest:
		return r.GetRequest()
	}
	return nil
}

func expectedID(req any) string {
	if r, ok := req.(interface {
		GetPrecondition() *conditionalv1.SandboxPrecondition
	}); ok {
		return r.GetPrecondition().GetId()
	}
	return ""
}

// idIn is the id of the object that a reply holds, or of the sandbox that it names; lists have none.
func idIn(reply any) (id string) {
	if r, ok := reply.(interface{ GetSandboxId() string }); ok {
		return r.GetSandboxId()
	}
	m, ok := reply.(proto.Message)
	if !ok {
		return ""
	}
	m.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil || field.IsList() || field.IsMap() {
			return true
		}
		if object, ok := value.Message().Interface().(interface {
			GetMetadata() *datamodelv1.ObjectMeta
		}); ok {
			id = object.GetMetadata().GetId()
		}
		return id == ""
	})
	return id
}
