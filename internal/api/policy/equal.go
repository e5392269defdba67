package policy

import (
	"bytes"
	slashpath "path"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Equal reports whether two policies mean the same: documented defaults count as if they were written, lists are sets,
// paths are compared without redundant separators, hosts and protocols without regard to case. What the gateway marks
// by itself does not count. Nil equals nil only, since a sandbox without a policy gets one from its image.
func Equal(a, b *sandboxv1.SandboxPolicy) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return proto.Equal(a, b) || sameMeaning(resolved(a), resolved(b))
}

// sameMeaning compares resolved messages.
func sameMeaning(a, b proto.Message) bool {
	return bytes.Equal(encode(a.ProtoReflect(), anyOrder), encode(b.ProtoReflect(), anyOrder))
}

// resolved returns a copy with every default written out.
func resolved(policy *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	p := Canonical(policy)
	if p.GetVersion() == 0 {
		p.Version = 1
	}
	p.Filesystem = resolvedFilesystem(p.GetFilesystem())
	p.Landlock = &sandboxv1.LandlockPolicy{Compatibility: orDefault(p.GetLandlock().GetCompatibility(), compatibilities)}
	if p.GetProcess() == nil {
		p.Process = &sandboxv1.ProcessPolicy{}
	}
	for key, rule := range p.GetNetworkPolicies() {
		if rule.GetName() == "" {
			rule.Name = key
		}
		for _, endpoint := range rule.GetEndpoints() {
			resolveEndpoint(endpoint)
		}
	}
	for key, middleware := range p.GetNetworkMiddlewares() {
		resolveMiddleware(key, middleware)
	}
	return p
}

// resolvedFilesystem: a policy without the section makes the working directory writable.
func resolvedFilesystem(filesystem *sandboxv1.FilesystemPolicy) *sandboxv1.FilesystemPolicy {
	if filesystem == nil {
		return &sandboxv1.FilesystemPolicy{IncludeWorkdir: true}
	}
	clean := func(paths []string) []string {
		cleaned := make([]string, len(paths))
		for i, p := range paths {
			cleaned[i] = cleanPath(p)
		}
		return cleaned
	}
	return &sandboxv1.FilesystemPolicy{
		IncludeWorkdir: filesystem.GetIncludeWorkdir(),
		ReadOnly:       clean(filesystem.GetReadOnly()),
		ReadWrite:      clean(filesystem.GetReadWrite()),
	}
}

// cleanPath drops redundant separators. What climbs is left for Validate to refuse.
func cleanPath(p string) string {
	if climbs(p) || p == "" {
		return p
	}
	return slashpath.Clean(p)
}

func resolveEndpoint(e *sandboxv1.NetworkEndpoint) {
	e.AdvisorProposed = false
	e.Host = strings.ToLower(e.GetHost())
	e.Protocol = strings.ToLower(e.GetProtocol())
	e.Ports = ports(e)
	e.Port = 0
	e.Enforcement = enforcement(e)
	e.PersistedQueries = orDefault(e.GetPersistedQueries(), persistedQueries)
	e.GraphqlMaxBodyBytes = bodyBytes(e.GetGraphqlMaxBodyBytes())
	e.JsonRpcMaxBodyBytes = bodyBytes(e.GetJsonRpcMaxBodyBytes())
	e.AllowedIps = normalIPs(e.GetAllowedIps())
	if isProtocol(e, protocolMCP) {
		e.Mcp.StrictToolNames = new(strictToolNames(e))
		e.Mcp.AllowAllKnownMcpMethods = new(e.GetMcp().GetAllowAllKnownMcpMethods())
	}
	for _, rule := range e.GetRules() {
		if rule.GetAllow() == nil {
			rule.Allow = &sandboxv1.L7Allow{}
		}
	}
}

func resolveMiddleware(key string, m *sandboxv1.NetworkMiddlewareConfig) {
	if m.GetName() == "" {
		m.Name = key
	}
	m.OnError = orDefault(m.GetOnError(), failureModes)
	if m.GetConfig() == nil {
		m.Config = &structpb.Struct{}
	}
	for _, patterns := range [][]string{m.GetEndpoints().GetInclude(), m.GetEndpoints().GetExclude()} {
		for i, pattern := range patterns {
			patterns[i] = strings.ToLower(pattern)
		}
	}
}

// ports are an endpoint's effective ones: the list, else the single field.
func ports(e *sandboxv1.NetworkEndpoint) []uint32 {
	if len(e.GetPorts()) == 0 && e.GetPort() != 0 {
		return []uint32{e.GetPort()}
	}
	return e.GetPorts()
}

func enforcement(e *sandboxv1.NetworkEndpoint) sandboxv1.NetworkEnforcementMode {
	if e.GetEnforcement() == sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_UNSPECIFIED {
		return sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_AUDIT
	}
	return e.GetEnforcement()
}

func normalIPs(entries []string) []string {
	normal := make([]string, len(entries))
	for i, entry := range entries {
		normal[i] = strings.ToLower(strings.TrimSpace(entry))
	}
	return normal
}

func bodyBytes(limit uint32) uint32 {
	if limit == 0 {
		return defaultBodyBytes
	}
	return limit
}

func strictToolNames(e *sandboxv1.NetworkEndpoint) bool {
	return e.GetMcp() == nil || e.GetMcp().StrictToolNames == nil || e.GetMcp().GetStrictToolNames()
}

func orDefault(value string, choices []string) string {
	if value == "" {
		return choices[0]
	}
	return value
}
