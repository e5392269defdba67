package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Canonical returns the form a gateway stores: MCP options present on MCP endpoints, their versions defaulted and in
// order of publication; marks that the gateway derives, and fields it does not know, cleared. The order of lists stays,
// as upstream keeps it. The argument is left as it is.
func Canonical(policy *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	if policy == nil {
		return nil
	}
	canonical := proto.CloneOf(policy)
	dropUnknown(canonical.ProtoReflect())
	for _, rule := range canonical.GetNetworkPolicies() {
		for _, endpoint := range rule.GetEndpoints() {
			endpoint.ProviderCredentialed = false
			endpoint.TokenGrantOwner = ""
			if isProtocol(endpoint, protocolMCP) {
				if endpoint.GetMcp() == nil {
					endpoint.Mcp = &sandboxv1.McpOptions{}
				}
				defaultMCP(endpoint.GetMcp())
			}
		}
	}
	return canonical
}

// Hash identifies the canonical form: 64 hexadecimal digits, the same in every process and of every build. It does not
// repeat upstream's value, which clients take as opaque.
func Hash(policy *sandboxv1.SandboxPolicy) string {
	sum := sha256.Sum256(encode(Canonical(policy).ProtoReflect(), inOrder))
	return hex.EncodeToString(sum[:])
}

// defaultMCP fills in and sorts the versions. Unknown ones go last, for Validate to report.
func defaultMCP(options *sandboxv1.McpOptions) {
	if len(options.GetVersions()) == 0 {
		options.Versions = []string{defaultMCPVersion}
	}
	rank := func(version string) int {
		if i := slices.Index(mcpVersions, version); i >= 0 {
			return i
		}
		return len(mcpVersions)
	}
	slices.SortFunc(options.GetVersions(), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
}

func dropUnknown(m protoreflect.Message) {
	m.SetUnknown(nil)
	m.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			value.Map().Range(func(_ protoreflect.MapKey, entry protoreflect.Value) bool {
				dropUnknown(entry.Message())
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range value.List().Len() {
				dropUnknown(value.List().Get(i).Message())
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			dropUnknown(value.Message())
		}
		return true
	})
}
