package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// Ambiguities reports endpoints that can match the same traffic but say different things about how to handle it, where
// only one answer can be: a connection has one treatment of TLS, a request one parser and one set of credentials. What
// is allowed may differ, it adds up. Upstream answers FAILED_PRECONDITION, and judges the policy with the rules of
// attached providers merged in, which may find more.
//
// An error is an [*Error]; each problem stands at the later of two endpoints.
func Ambiguities(policy *sandboxv1.SandboxPolicy) error {
	var found problems
	ambiguities(policy, &found)
	return found.err()
}

// contender is an endpoint on one port.
type contender struct {
	*sandboxv1.NetworkEndpoint
	at    *path
	order int
	host  glob
	// treatment holds what contenders must agree on. Those with the same one need not be compared.
	treatment string
}

// bucket holds the contenders whose hosts end alike, those with the same treatment together.
type bucket struct {
	groups [][]contender
	index  map[string]int
}

func (b *bucket) add(c contender) {
	i, ok := b.index[c.treatment]
	if !ok {
		i = len(b.groups)
		b.index[c.treatment] = i
		b.groups = append(b.groups, nil)
	}
	b.groups[i] = append(b.groups[i], c)
}

// ambiguities compares only endpoints that can have hosts in common, so that the time is linear for policies of
// ordinary shape: the literal labels that end a pattern end every host it matches, so of two overlapping patterns one has
// an ending that ends the other's.
func ambiguities(policy *sandboxv1.SandboxPolicy, found *problems) {
	byPort := contenders(policy)
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		byEnding := map[string]*bucket{}
		for _, c := range byPort[port] {
			ending := literalEnding(c.GetHost())
			if byEnding[ending] == nil {
				byEnding[ending] = &bucket{index: map[string]int{}}
			}
			byEnding[ending].add(c)
		}
		for _, c := range byPort[port] {
			own := true
			for ending := literalEnding(c.GetHost()); found.omitted == 0; own = false {
				if b := byEnding[ending]; b != nil {
					b.compare(c, own, port, found)
				}
				if ending == "" {
					break
				}
				_, ending, _ = strings.Cut(ending, ".")
			}
		}
	}
}

// compare reports, for each other treatment, the first contender that c conflicts with. In c's own bucket a pair is met
// from both sides, elsewhere from one.
func (b *bucket) compare(c contender, own bool, port uint32, found *problems) {
	for _, group := range b.groups {
		if group[0].treatment == c.treatment {
			continue
		}
		for _, other := range group {
			if own && other.order > c.order || !hostsOverlap(c, other) {
				continue
			}
			if differs := differences(c.NetworkEndpoint, other.NetworkEndpoint); len(differs) > 0 {
				first, second := other, c
				if other.order > c.order {
					first, second = c, other
				}
				found.add(second.at, "can match the same traffic on port %d as %s, but differs in %s; make them agree", port, first.at, enumerate(differs, "and"))
				break
			}
		}
	}
}

func contenders(policy *sandboxv1.SandboxPolicy) map[uint32][]contender {
	byPort := map[uint32][]contender{}
	order := 0
	for _, key := range slices.Sorted(maps.Keys(policy.GetNetworkPolicies())) {
		for i, e := range policy.GetNetworkPolicies()[key].GetEndpoints() {
			c := contender{
				NetworkEndpoint: e,
				at:              (*path)(nil).key("network_policies").key(key).key("endpoints").item(i),
				order:           order,
				host:            starGlob(strings.ToLower(e.GetHost()), '.'),
				treatment:       treatment(e),
			}
			order++
			for _, port := range slices.Compact(slices.Sorted(slices.Values(ports(e)))) {
				byPort[port] = append(byPort[port], c)
			}
		}
	}
	return byPort
}

// literalEnding returns the labels behind the last wildcard; all of them if there is none.
func literalEnding(host string) string {
	host = strings.ToLower(host)
	i := strings.LastIndex(host, "*")
	if i < 0 {
		return host
	}
	_, ending, _ := strings.Cut(host[i:], ".")
	return ending
}

// hostsOverlap: an endpoint without a host takes any.
func hostsOverlap(a, b contender) bool {
	return len(a.host) == 0 || len(b.host) == 0 || a.host.overlaps(b.host)
}

// trait is something that endpoints must agree on.
type trait struct {
	name  string
	value string
}

func treatment(e *sandboxv1.NetworkEndpoint) string {
	var b strings.Builder
	for _, t := range append(connectionTraits(e), requestTraits(e)...) {
		b.WriteString(t.name + "\x00" + t.value + "\x00")
	}
	return b.String() + strconv.FormatBool(judgesRequests(e)) + strconv.Itoa(specificity(e.GetPath()))
}

// differences compares what counts for the connection, and what counts for a request if both can get the same one.
func differences(a, b *sandboxv1.NetworkEndpoint) []string {
	differs := differing(connectionTraits(a), connectionTraits(b))
	// The endpoint with the more specific path wins, so only equals compete.
	if judgesRequests(a) && judgesRequests(b) && specificity(a.GetPath()) == specificity(b.GetPath()) && pathsOverlap(a.GetPath(), b.GetPath()) {
		for _, name := range differing(requestTraits(a), requestTraits(b)) {
			if !slices.Contains(differs, name) {
				differs = append(differs, name)
			}
		}
	}
	return differs
}

// differing compares traits by name; one that only one side has does not count.
func differing(a, b []trait) []string {
	var names []string
	for _, x := range a {
		i := slices.IndexFunc(b, func(y trait) bool { return y.name == x.name })
		if i >= 0 && b[i].value != x.value {
			names = append(names, x.name)
		}
	}
	return names
}

func connectionTraits(e *sandboxv1.NetworkEndpoint) []trait {
	addresses := normalIPs(e.GetAllowedIps())
	slices.Sort(addresses)
	kind := "proxied"
	if isProtocol(e, protocolTCP) {
		kind = protocolTCP
	}
	return []trait{
		{"protocol", kind},
		{"tls", strconv.FormatBool(e.GetTls() == sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP)},
		{"allowed_ips", strings.Join(slices.Compact(addresses), " ")},
	}
}

// judgesRequests: a plain destination takes no part in choosing how a request is handled.
func judgesRequests(e *sandboxv1.NetworkEndpoint) bool {
	return e.GetProtocol() != "" && !isProtocol(e, protocolTCP) || len(e.GetAllowedIps()) > 0 ||
		e.GetTls() != sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_UNSPECIFIED || e.GetCredentialBinding() != nil
}

func requestTraits(e *sandboxv1.NetworkEndpoint) []trait {
	protocol := strings.ToLower(e.GetProtocol())
	traits := []trait{
		{"protocol", protocol},
		{"enforcement", strconv.FormatBool(e.GetEnforcement() == sandboxv1.NetworkEnforcementMode_NETWORK_ENFORCEMENT_MODE_ENFORCE)},
		{"allow_encoded_slash", strconv.FormatBool(e.GetAllowEncodedSlash())},
		{"websocket_credential_rewrite", strconv.FormatBool(e.GetWebsocketCredentialRewrite())},
		{"request_body_credential_rewrite", strconv.FormatBool(e.GetRequestBodyCredentialRewrite())},
		{"credential_signing", e.GetCredentialSigning()},
		{"signing_service", e.GetSigningService()},
		{"signing_region", e.GetSigningRegion()},
		{"credential_binding.provider", e.GetCredentialBinding().GetProvider()},
	}
	switch protocol {
	case protocolWebSocket:
		traits = append(traits, trait{"its GraphQL rules", strconv.FormatBool(hasGraphQL(e))})
	case protocolGraphQL:
		traits = append(traits, trait{"graphql_max_body_bytes", fmt.Sprint(bodyBytes(e.GetGraphqlMaxBodyBytes()))})
	case protocolMCP:
		traits = append(traits,
			trait{"mcp.max_body_bytes", fmt.Sprint(bodyBytes(e.GetJsonRpcMaxBodyBytes()))},
			trait{"mcp.strict_tool_names", strconv.FormatBool(strictToolNames(e))})
	case protocolJSONRPC:
		traits = append(traits, trait{"json_rpc.max_body_bytes", fmt.Sprint(bodyBytes(e.GetJsonRpcMaxBodyBytes()))})
	}
	return traits
}

// hasGraphQL reports whether a WebSocket endpoint reads messages as GraphQL operations.
func hasGraphQL(e *sandboxv1.NetworkEndpoint) bool {
	operation := func(r request) bool {
		return r.GetOperationType() != "" || r.GetOperationName() != "" || len(r.GetFields()) > 0
	}
	return len(e.GetGraphqlPersistedQueries()) > 0 || orDefault(e.GetPersistedQueries(), persistedQueries) != persistedQueries[0] ||
		slices.ContainsFunc(e.GetRules(), func(r *sandboxv1.L7Rule) bool { return operation(r.GetAllow()) }) ||
		slices.ContainsFunc(e.GetDenyRules(), func(r *sandboxv1.L7DenyRule) bool { return operation(r) })
}

// specificity ranks the paths of endpoints that share a host: the number of characters that are no star.
func specificity(p string) int { return len([]rune(strings.ReplaceAll(p, "*", ""))) }

// anyPath are the ways to write that every path is meant.
var anyPath = []string{"", "**", "/**"}

func pathsOverlap(a, b string) bool {
	if a == b || slices.Contains(anyPath, a) || slices.Contains(anyPath, b) {
		return true
	}
	// Upstream lets "**/" stand for nothing as well.
	left, ok := parseGlob(strings.ReplaceAll(a, "**/", "**"))
	right, otherOK := parseGlob(strings.ReplaceAll(b, "**/", "**"))
	return !ok || !otherOK || left.overlaps(right)
}
