package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
)

// Limits of providers, their profiles and members of workspaces. Lengths are in bytes.
const (
	MaxProviderName = 253
	MaxProfileID    = 64
	MaxCredentials  = 32
	MaxConfig       = 64
	MaxSubject      = 255 // of an OpenID Connect sub; upstream sets no limit
)

// ProviderName checks the name of a provider. Almost anything goes.
func ProviderName(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > MaxProviderName:
		return fmt.Sprintf("must be at most %d bytes long, not %d", MaxProviderName, len(name))
	case strings.ContainsRune(name, 0):
		return "must not contain a NUL character"
	}
	return ""
}

// FileProviderName checks the name of a provider whose profile renders files, in whose paths it appears.
func FileProviderName(name string) string {
	if !consistsOf(name, lower+upper+digits+"-_") {
		return "must consist of letters, digits, - and _, since files are rendered for this type of provider"
	}
	return ""
}

// ProfileID checks the id of a provider profile, which is the type of its providers.
func ProfileID(id string) string {
	switch {
	case id == "":
		return "must not be empty"
	case len(id) > MaxProfileID:
		return fmt.Sprintf("must be at most %d bytes long, not %d", MaxProfileID, len(id))
	case !consistsOf(id, lower+digits+"-") || strings.HasPrefix(id, "-") || strings.HasSuffix(id, "-") || strings.Contains(id, "--"):
		return "must consist of lower-case letters a-z, digits and single hyphens inside"
	}
	return ""
}

// Subject checks whom a member of a workspace is.
func Subject(subject string) string {
	switch {
	case subject == "":
		return "must not be empty"
	case len(subject) > MaxSubject:
		return fmt.Sprintf("must be at most %d bytes long, not %d", MaxSubject, len(subject))
	case strings.ContainsRune(subject, 0):
		return "must not contain a NUL character"
	}
	return ""
}

// Provider checks the sizes of a provider, whose path is field. Values of credentials are not repeated.
func Provider(field string, p *datamodelv1.Provider) *Violation {
	if len(p.GetCredentialHandles()) > 0 {
		return violation(field+".credential_handles", "is the gateway's own and must not be given")
	}
	if v := bounded(field+".credentials", p.GetCredentials(), MaxCredentials); v != nil {
		return v
	}
	for _, key := range slices.Sorted(maps.Keys(p.GetCredentials())) {
		if key == "" {
			return violation(field+".credentials", "must not have an empty key")
		}
	}
	return bounded(field+".config", p.GetConfig(), MaxConfig)
}
