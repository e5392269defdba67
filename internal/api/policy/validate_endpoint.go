package policy

import (
	"math"
	"net/netip"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

func validateEndpoint(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	validateHost(e, at, found)
	validatePorts(e, at, found)
	for i, entry := range e.GetAllowedIps() {
		if _, ok := parseIPs(entry); !ok {
			found.add(at.key("allowed_ips").item(i), "must be an IP address or a range such as 10.0.0.0/8, not %s", show(entry))
		}
	}
	if p := e.GetPath(); p != "" && p != "**" && !strings.HasPrefix(p, "/") {
		found.add(at.key("path"), "must start with / or be **, not %s", show(p))
	}
	validateCredentials(e, at, found)
	validateInspection(e, at, found)
}

func validateHost(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	host, tcp := e.GetHost(), isProtocol(e, protocolTCP)
	at = at.key("host")
	if strings.TrimSpace(host) == "" {
		switch {
		case tcp:
			found.add(at, "is needed with protocol tcp")
		case len(e.GetAllowedIps()) == 0:
			found.add(at, "is missing; only allowed_ips can stand in for it")
		}
		return
	}
	if problem := hostProblem(host); problem != "" {
		found.add(at, "%s, in %s", problem, show(host))
		return
	}
	if tcp {
		if problem := nameProblem(host); problem != "" {
			found.add(at, "%s with protocol tcp, not %s", problem, show(host))
		}
	}
}

func validatePorts(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	inRange := func(port uint32) bool { return port >= 1 && port <= math.MaxUint16 }
	switch {
	case len(e.GetPorts()) > 0:
		for i, port := range e.GetPorts() {
			if !inRange(port) {
				found.add(at.key("ports").item(i), "must be from 1 to 65535, not %d", port)
			}
		}
	case e.GetPort() == 0:
		found.add(at.key("port"), "is missing; write port or ports")
	case !inRange(e.GetPort()):
		found.add(at.key("port"), "must be from 1 to 65535, not %d", e.GetPort())
	}
}

// parseIPs reads an address or a range.
func parseIPs(entry string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		return prefix, true
	}
	address, err := netip.ParseAddr(entry)
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(address, address.BitLen()), true
}

func validateCredentials(e *sandboxv1.NetworkEndpoint, at *path, found *problems) {
	checkChoice(e.GetCredentialSigning(), signings, at.key("credential_signing"), found)
	if e.GetCredentialSigning() != "" {
		if e.GetSigningService() == "" {
			found.add(at.key("signing_service"), "is needed with credential_signing, such as bedrock or s3")
		}
		if e.GetRequestBodyCredentialRewrite() {
			found.add(at.key("request_body_credential_rewrite"), "cannot be combined with credential_signing")
		}
	}
	if e.GetCredentialBinding() == nil {
		return
	}
	provider := e.GetCredentialBinding().GetProvider()
	if provider == "" || strings.TrimSpace(provider) != provider {
		found.add(at.key("credential_binding").key("provider"), "must be the exact name of an attached provider, not %s", show(provider))
	}
	if strings.TrimSpace(e.GetHost()) == "" {
		found.add(at.key("credential_binding"), "needs a host on the endpoint")
	}
}
