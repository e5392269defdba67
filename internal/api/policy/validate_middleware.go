package policy

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

func validateMiddlewares(policy *sandboxv1.SandboxPolicy, at *path, found *problems) {
	middlewares := policy.GetNetworkMiddlewares()
	if len(middlewares) > maxMiddlewares {
		found.add(at, "lists %d middlewares; at most %d are allowed", len(middlewares), maxMiddlewares)
	}
	byOrder := map[int32]string{}
	for _, key := range slices.Sorted(maps.Keys(middlewares)) {
		m, at := middlewares[key], at.key(key)
		if key == "" {
			found.add(at, "the key must not be empty")
		}
		if first, taken := byOrder[m.GetOrder()]; taken {
			found.add(at.key("order"), "%d is already the order of %s; every middleware needs its own", m.GetOrder(), show(first))
		} else {
			byOrder[m.GetOrder()] = key
		}
		if m.GetMiddleware() == "" {
			found.add(at.key("middleware"), "must name a built-in middleware or a service registered with the gateway")
		}
		checkChoice(m.GetOnError(), failureModes, at.key("on_error"), found)
		validateJSON(structpb.NewStructValue(m.GetConfig()), at.key("config"), found)
		if selector, ok := validateSelector(m.GetEndpoints(), at.key("endpoints"), found); ok && m.GetOnError() != failureModes[1] {
			validateUninspected(policy, selector, at.key("endpoints"), found)
		}
	}
}

// validateJSON refuses numbers that JSON does not have.
func validateJSON(value *structpb.Value, at *path, found *problems) {
	switch kind := value.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			found.add(at, "is no number that JSON knows")
		}
	case *structpb.Value_StructValue:
		for _, key := range slices.Sorted(maps.Keys(kind.StructValue.GetFields())) {
			validateJSON(kind.StructValue.GetFields()[key], at.key(key), found)
		}
	case *structpb.Value_ListValue:
		for i, item := range kind.ListValue.GetValues() {
			validateJSON(item, at.item(i), found)
		}
	}
}

// validateSelector reports whether the patterns can be used.
func validateSelector(endpoints *sandboxv1.MiddlewareEndpointSelector, at *path, found *problems) (selector, bool) {
	if len(endpoints.GetInclude()) == 0 {
		found.add(at.key("include"), "must list at least one host pattern")
		return selector{}, false
	}
	if count := len(endpoints.GetInclude()) + len(endpoints.GetExclude()); count > maxSelectorPatterns {
		found.add(at, "lists %d host patterns; at most %d are allowed", count, maxSelectorPatterns)
		return selector{}, false
	}
	valid := true
	patterns := func(written []string, at *path) []hostPattern {
		parsed := make([]hostPattern, 0, len(written))
		for i, text := range written {
			pattern, problem := parseHostPattern(text)
			if problem != "" {
				found.add(at.item(i), "%s, in %s", problem, show(text))
				valid = false
			}
			parsed = append(parsed, pattern)
		}
		return parsed
	}
	s := selector{include: patterns(endpoints.GetInclude(), at.key("include")), exclude: patterns(endpoints.GetExclude(), at.key("exclude"))}
	return s, valid
}

// validateUninspected: traffic that a middleware must see cannot skip TLS inspection.
func validateUninspected(policy *sandboxv1.SandboxPolicy, s selector, at *path, found *problems) {
	for _, key := range slices.Sorted(maps.Keys(policy.GetNetworkPolicies())) {
		for i, e := range policy.GetNetworkPolicies()[key].GetEndpoints() {
			if e.GetTls() != sandboxv1.NetworkTlsMode_NETWORK_TLS_MODE_SKIP {
				continue
			}
			if pattern, problem := parseHostPattern(e.GetHost()); problem == "" && s.mayMatch(pattern) {
				endpoint := fmt.Sprintf("%s (%s)", (*path)(nil).key("network_policies").key(key).key("endpoints").item(i), show(e.GetHost()))
				found.add(at, "can match %s, which has tls: skip; exclude the host or write on_error: fail_open", endpoint)
			}
		}
	}
}
