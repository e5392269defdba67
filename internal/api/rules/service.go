package rules

import openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"

// Limits of services.
const (
	MaxExposures  = 32 // of a request for a sandbox
	MaxTargetPort = 65535
)

// ServiceName checks the name of a service; the empty one is that of the unnamed service of a sandbox.
func ServiceName(name string) string {
	if name == "" {
		return ""
	}
	return Name(name)
}

// Exposure checks what a service is exposed with.
func Exposure(service string, port uint32, mode openshellv1.ServiceAuthorizationMode) *Violation {
	if problem := ServiceName(service); problem != "" {
		return violation("name", "%s", problem)
	}
	if port < 1 || port > MaxTargetPort {
		return violation("target_port", "must be from 1 to %d", MaxTargetPort)
	}
	if _, known := openshellv1.ServiceAuthorizationMode_name[int32(mode)]; !known {
		return violation("authorization_mode", "has the unknown value %d", mode)
	}
	return nil
}

// Exposures checks the services that a new sandbox is to have, whose path is field.
func Exposures(field string, exposures []*openshellv1.SandboxServiceExposure) *Violation {
	if len(exposures) > MaxExposures {
		return violation(field, "must have at most %d entries, not %d", MaxExposures, len(exposures))
	}
	taken := map[string]bool{}
	for i, e := range exposures {
		v := Exposure(e.GetService(), e.GetTargetPort(), e.GetAuthorizationMode())
		switch {
		case v != nil && v.Field == "name":
			v.Field = "service"
		case v == nil && taken[e.GetService()]:
			v = violation("service", "is there twice")
		}
		if v != nil {
			v.Field = at(field, i) + "." + v.Field
			return v
		}
		taken[e.GetService()] = true
	}
	return nil
}
