package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// checkExpirations checks when credentials expire: each must be one of the provider's.
func checkExpirations(field string, expirations map[string]*timestamppb.Timestamp, credentials map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(expirations)) {
		at := field + "[" + name + "]"
		if _, there := credentials[name]; !there {
			return &apierr.InvalidArgument{Field: at, Problem: "names no credential of the provider"}
		}
		if !expirations[name].IsValid() {
			return &apierr.InvalidArgument{Field: at, Problem: "is no valid time"}
		}
	}
	return nil
}

// checkAgainstProfile checks that a provider has the credentials that its profile asks for, and no others. An empty value
// is none.
func checkAgainstProfile(o store.Object, name string, credentials map[string]string) error {
	profile, err := decode[openshellv1.ProviderProfile](o)
	if err != nil {
		return err
	}
	if len(profile.GetFiles()) > 0 {
		if problem := rules.FileProviderName(name); problem != "" {
			return &apierr.InvalidArgument{Field: "provider.metadata.name", Problem: problem}
		}
	}
	declared := map[string]bool{}
	for _, credential := range profile.GetCredentials() {
		keys := credentialKeys(credential)
		for _, key := range keys {
			declared[key] = true
		}
		given := slices.ContainsFunc(keys, func(key string) bool { return credentials[key] != "" })
		if credential.GetRequired() && static(credential) && !given {
			return &apierr.InvalidArgument{Field: "provider.credentials", Problem: fmt.Sprintf(
				"lacks the credential '%s' that the profile '%s' requires; give it as %s", credential.GetName(), o.Name, shortList(keys, " or "))}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(credentials)) {
		switch {
		case !declared[key]:
			return &apierr.InvalidArgument{Field: "provider.credentials[" + key + "]", Problem: fmt.Sprintf(
				"is not declared by the profile '%s'; it declares: %s", o.Name, shortList(slices.Sorted(maps.Keys(declared)), ", "))}
		case credentials[key] == "":
			return &apierr.InvalidArgument{Field: "provider.credentials[" + key + "]", Problem: "must not be empty"}
		}
	}
	return nil
}

// shortList keeps names fit for an error, however many and long they are.
func shortList(names []string, separator string) string {
	const most, longest = 10, 64
	shown := make([]string, 0, most+1)
	for _, name := range names[:min(len(names), most)] {
		if len(name) > longest {
			name = strings.ToValidUTF8(name[:longest], "") + "…"
		}
		shown = append(shown, name)
	}
	if len(names) > most {
		shown = append(shown, "…")
	}
	return strings.Join(shown, separator)
}

// credentialKeys are the keys under which a provider may have a credential: its environment variables or, without any, its
// name.
func credentialKeys(credential *openshellv1.ProviderProfileCredential) []string {
	if variables := credential.GetEnvVars(); len(variables) > 0 {
		return variables
	}
	return []string{credential.GetName()}
}

// static says that a credential is given by its user, and not made by the gateway or at the time of use.
func static(credential *openshellv1.ProviderProfileCredential) bool {
	switch credential.GetRefresh().GetStrategy() {
	case openshellv1.ProviderCredentialRefreshStrategy_PROVIDER_CREDENTIAL_REFRESH_STRATEGY_UNSPECIFIED,
		openshellv1.ProviderCredentialRefreshStrategy_PROVIDER_CREDENTIAL_REFRESH_STRATEGY_STATIC:
		return credential.GetTokenGrant() == nil
	}
	return false
}
