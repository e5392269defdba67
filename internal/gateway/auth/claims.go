package auth

import "strings"

// claimAt finds a claim by its path, names joined by dots, such as realm_access.roles. A claim whose own name has dots,
// such as https://example.com/roles, is found by that name.
func claimAt(claims map[string]any, path string) any {
	if value, ok := claims[path]; ok {
		return value
	}
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return nil
	}
	inner, ok := claims[name].(map[string]any)
	if !ok {
		return nil
	}
	return claimAt(inner, rest)
}

// rolesIn reads a list of strings; anything else in it, and anything else than a list, is no role.
func rolesIn(claim any) []string {
	list, ok := claim.([]any)
	if !ok {
		return nil
	}
	var roles []string
	for _, item := range list {
		if role, ok := item.(string); ok && role != "" {
			roles = append(roles, role)
		}
	}
	return roles
}

// scopesIn reads scopes, separated by spaces in one string or as a list of strings, without those that OpenID Connect
// itself defines: they say nothing about a gateway.
func scopesIn(claim any) []string {
	var all []string
	if text, ok := claim.(string); ok {
		all = strings.Fields(text)
	} else {
		all = rolesIn(claim)
	}
	var scopes []string
	for _, scope := range all {
		switch scope {
		case "openid", "profile", "email", "offline_access":
		default:
			scopes = append(scopes, scope)
		}
	}
	return scopes
}
