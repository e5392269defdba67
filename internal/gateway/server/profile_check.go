package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

// Severities of diagnostics (upstream-contract, pseudo enums).
const (
	severityError   = "error"
	severityWarning = "warning"
)

// diagnostics collects what is wrong with profiles.
type diagnostics struct {
	all       []*openshellv1.ProviderProfileDiagnostic
	source    string
	profileID string
}

// about says which profile the following is about.
func (d *diagnostics) about(item *openshellv1.ProviderProfileImportItem) {
	d.source, d.profileID = item.GetSource(), item.GetProfile().GetId()
}

func (d *diagnostics) add(field, severity, format string, args ...any) {
	d.all = append(d.all, &openshellv1.ProviderProfileDiagnostic{
		Source: d.source, ProfileId: d.profileID, Field: field, Message: fmt.Sprintf(format, args...), Severity: severity,
	})
}

// refuse says whether anything is an error.
func (d *diagnostics) refuse() bool {
	return slices.ContainsFunc(d.all, func(one *openshellv1.ProviderProfileDiagnostic) bool { return one.GetSeverity() == severityError })
}

// checkProfiles checks the profiles of one import, each for itself and all together.
func checkProfiles(items []*openshellv1.ProviderProfileImportItem) diagnostics {
	var found diagnostics
	if len(items) == 0 {
		found.add("profiles", severityError, "at least one provider profile is required")
	}
	seen := map[string]bool{}
	for _, item := range items {
		one := checkProfile(item)
		if id := item.GetProfile().GetId(); id != "" && seen[id] {
			one.add("id", severityError, "'%s' appears more than once", id)
		}
		seen[item.GetProfile().GetId()] = true
		found.all = append(found.all, one.all...)
	}
	return found
}

// checkProfile checks one profile.
func checkProfile(item *openshellv1.ProviderProfileImportItem) diagnostics {
	var found diagnostics
	found.about(item)
	profile := item.GetProfile()
	if profile == nil {
		found.add("profile", severityError, "is required")
		return found
	}
	if problem := rules.ProfileID(profile.GetId()); problem != "" {
		found.add("id", severityError, "%s", problem)
	}
	if _, known := openshellv1.ProviderProfileCategory_name[int32(profile.GetCategory())]; !known {
		found.add("category", severityError, "has the unknown value %d", profile.GetCategory())
	}
	if v := rules.Annotations("annotations", profile.GetAnnotations()); v != nil {
		found.add(v.Field, severityError, "%s", v.Problem)
	}
	checkProfileCredentials(profile, &found)
	checkDiscovery(profile, &found)
	checkFiles(profile, &found)
	checkProfileEndpoints(profile, &found)
	return found
}

func checkProfileCredentials(profile *openshellv1.ProviderProfile, found *diagnostics) {
	names, variables := map[string]bool{}, map[string]bool{}
	for i, credential := range profile.GetCredentials() {
		at := fmt.Sprintf("credentials[%d]", i)
		switch name := credential.GetName(); {
		case strings.TrimSpace(name) == "":
			found.add(at+".name", severityError, "is required")
		case names[name]:
			found.add(at+".name", severityError, "'%s' appears more than once", name)
		}
		names[credential.GetName()] = true
		for n, variable := range credential.GetEnvVars() {
			field := fmt.Sprintf("%s.env_vars[%d]", at, n)
			if problem := rules.EnvironmentKey(variable); problem != "" {
				found.add(field, severityError, "%s", problem)
			} else if variables[variable] {
				found.add(field, severityError, "'%s' appears more than once", variable)
			}
			variables[variable] = true
		}
		checkAuthStyle(credential, at, found)
		checkRenewal(credential, at, found)
	}
}

// checkAuthStyle checks what each way to send a credential needs.
func checkAuthStyle(credential *openshellv1.ProviderProfileCredential, at string, found *diagnostics) {
	const placeholder = "{credential}"
	switch style := strings.ToLower(strings.TrimSpace(credential.GetAuthStyle())); style {
	case "", "basic":
	case "bearer", "header":
		if strings.TrimSpace(credential.GetHeaderName()) == "" {
			found.add(at+".header_name", severityError, "is required with auth_style %s", style)
		}
	case "query":
		if strings.TrimSpace(credential.GetQueryParam()) == "" {
			found.add(at+".query_param", severityError, "is required with auth_style query")
		}
	case "path":
		if n := strings.Count(credential.GetPathTemplate(), placeholder); n != 1 {
			found.add(at+".path_template", severityError, "must contain %s once with auth_style path, not %d times", placeholder, n)
		}
	default:
		found.add(at+".auth_style", severityError, "must be basic, bearer, header, path or query, not %q", credential.GetAuthStyle())
	}
}

// checkRenewal checks how a credential is renewed or exchanged.
func checkRenewal(credential *openshellv1.ProviderProfileCredential, at string, found *diagnostics) {
	if refresh := credential.GetRefresh(); refresh != nil {
		strategy := refresh.GetStrategy()
		if _, known := openshellv1.ProviderCredentialRefreshStrategy_name[int32(strategy)]; !known || strategy == 0 {
			found.add(at+".refresh.strategy", severityError, "is required and must be a known strategy")
		}
		checkTime(refresh.GetRefreshBefore(), at+".refresh.refresh_before", found)
		checkTime(refresh.GetMaxLifetime(), at+".refresh.max_lifetime", found)
		seen := map[string]bool{}
		for n, material := range refresh.GetMaterial() {
			if name := material.GetName(); strings.TrimSpace(name) == "" || seen[name] {
				found.add(fmt.Sprintf("%s.refresh.material[%d].name", at, n), severityError, "is required and must be unique")
			}
			seen[material.GetName()] = true
		}
	}
	if grant := credential.GetTokenGrant(); grant != nil {
		if strings.TrimSpace(grant.GetTokenEndpoint()) == "" {
			found.add(at+".token_grant.token_endpoint", severityError, "is required")
		}
		if _, known := openshellv1.ProviderCredentialTokenGrantType_name[int32(grant.GetGrantType())]; !known {
			found.add(at+".token_grant.grant_type", severityError, "has the unknown value %d", grant.GetGrantType())
		}
		checkTime(grant.GetCacheTtl(), at+".token_grant.cache_ttl", found)
	}
}

// checkTime checks how long something may take or last.
func checkTime(d *durationpb.Duration, at string, found *diagnostics) {
	if d != nil && (!d.IsValid() || d.AsDuration() < 0) {
		found.add(at, severityError, "must be a duration that is not negative")
	}
}

// checkDiscovery checks that only credentials are looked for that there are.
func checkDiscovery(profile *openshellv1.ProviderProfile, found *diagnostics) {
	seen := map[string]bool{}
	for i, name := range profile.GetDiscovery().GetCredentials() {
		known := slices.ContainsFunc(profile.GetCredentials(), func(c *openshellv1.ProviderProfileCredential) bool { return c.GetName() == name })
		if !known || seen[name] {
			found.add(fmt.Sprintf("discovery.credentials[%d]", i), severityError, "must name a credential of this profile, once, and not %q", name)
		}
		seen[name] = true
	}
}

func checkFiles(profile *openshellv1.ProviderProfile, found *diagnostics) {
	for i, file := range profile.GetFiles() {
		if strings.TrimSpace(file.GetPath()) == "" {
			found.add(fmt.Sprintf("files[%d].path", i), severityError, "is required")
		}
		if file.GetEnvVar() != "" {
			if problem := rules.EnvironmentKey(file.GetEnvVar()); problem != "" {
				found.add(fmt.Sprintf("files[%d].env_var", i), severityError, "%s", problem)
			}
		}
	}
}

// checkProfileEndpoints holds the endpoints to the rules of policies, which they become a part of.
func checkProfileEndpoints(profile *openshellv1.ProviderProfile, found *diagnostics) {
	for i, endpoint := range profile.GetEndpoints() {
		if endpoint.GetCredentialBinding() != nil {
			found.add(fmt.Sprintf("endpoints[%d].credential_binding", i), severityError, "names a provider, so it can only be in the policy of a sandbox")
		}
	}
	const rule = "profile"
	err := policy.Validate(&sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{
		rule: {Endpoints: profile.GetEndpoints(), Binaries: profile.GetBinaries()},
	}})
	var invalid *policy.Error
	if !errors.As(err, &invalid) {
		return
	}
	for _, problem := range invalid.Problems {
		found.add(strings.TrimPrefix(problem.Path, "network_policies."+rule+"."), severityError, "%s", problem.Message)
	}
}
