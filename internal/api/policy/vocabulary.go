package policy

import (
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// word is the written form of an enum's value. The zero value is written by leaving the key out.
type word[E ~int32] struct {
	text  string
	value E
}

// Upstream also knows terminate and passthrough for tls, which it refuses; so they are no words here.
var (
	tlsWords         = []word[sandboxv1.NetworkTlsMode]{{"skip", sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP}}
	enforcementWords = []word[sandboxv1.NetworkEnforcementMode]{
		{"enforce", sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_ENFORCE},
		{"audit", sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_AUDIT},
	}
	accessWords = []word[sandboxv1.NetworkAccessPreset]{
		{"read-only", sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_READ_ONLY},
		{"read-write", sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_READ_WRITE},
		{"full", sandboxv1.NetworkAccessPreset_NETWORK_ACCESS_PRESET_FULL},
	}
)

// Protocols of an endpoint. Upstream compares them without regard to case.
const (
	protocolTCP       = "tcp"
	protocolREST      = "rest"
	protocolWebSocket = "websocket"
	protocolGraphQL   = "graphql"
	protocolSQL       = "sql"
	protocolJSONRPC   = "json-rpc"
	protocolMCP       = "mcp"
)

// Strings that act as enums on the wire; the first of each list is the default.
var (
	compatibilities  = []string{"best_effort", "hard_requirement"}
	failureModes     = []string{"fail_closed", "fail_open"}
	persistedQueries = []string{"deny", "allow_registered"}
	signings         = []string{"sigv4", "sigv4:body", "sigv4:no_body"}
	operationTypes   = []string{"query", "mutation", "subscription"}
	inspected        = []string{protocolREST, protocolWebSocket, protocolGraphQL, protocolSQL, protocolJSONRPC, protocolMCP}
	// mcpVersions are the protocol revisions an endpoint can allow, in order of publication.
	mcpVersions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}
)

const (
	defaultMCPVersion = "2025-11-25"
	// defaultBodyBytes is what 0 means in graphql_max_body_bytes and json_rpc_max_body_bytes.
	defaultBodyBytes = 65536
	// sandboxIdentity is the one name run_as_user and run_as_group take.
	sandboxIdentity = "sandbox"
	// providerRulePrefix starts the keys of rules that a gateway adds for providers.
	providerRulePrefix = "_provider_"
)

func isProtocol(endpoint *sandboxv1.NetworkEndpoint, protocol string) bool {
	return strings.EqualFold(endpoint.GetProtocol(), protocol)
}

func isProviderRule(key string) bool { return strings.HasPrefix(key, providerRulePrefix) }

// wordFor is the written form of a value: empty for zero, not ok for a number without a word.
func wordFor[E ~int32](words []word[E], value E) (text string, ok bool) {
	for _, w := range words {
		if w.value == value {
			return w.text, true
		}
	}
	return "", value == 0
}

// oneOf lists choices in a sentence.
func oneOf(choices []string) string { return enumerate(choices, "or") }

func enumerate(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " " + conjunction + " " + words[last]
}

func texts[E ~int32](words []word[E]) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = w.text
	}
	return all
}
