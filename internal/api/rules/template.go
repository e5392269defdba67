package rules

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// WorkloadTemplate checks a workload template, whose path is field. It returns the first violation, or nil.
func WorkloadTemplate(field string, t *openshellv1.SandboxWorkloadTemplate) *Violation {
	if problem := Name(t.GetMetadata().GetName()); problem != "" {
		return violation(field+".metadata.name", "%s", problem)
	}
	if v := Annotations(field+".metadata.annotations", t.GetMetadata().GetAnnotations()); v != nil {
		return v
	}
	at, workload := field+".spec", t.GetSpec().GetWorkload()
	switch {
	case t.GetSpec() == nil:
		return violation(at, "is required")
	case workload == nil:
		return violation(at+".workload", "is required")
	case len(workload.GetImage()) > MaxTemplateString:
		return violation(at+".workload.image", "must be at most %d bytes long", MaxTemplateString)
	}
	if v := Environment(at+".workload.environment", workload.GetEnvironment()); v != nil {
		return v
	}
	if proto.Size(limits(workload.GetResources())) > MaxTemplateStruct {
		return violation(at+".workload.resources", "must be at most %d bytes encoded", MaxTemplateStruct)
	}
	if v := gpu(at+".workload.resources.gpu", workload.GetResources().GetGpu()); v != nil {
		return v
	}
	if v := driverConfig(at+".driver_config", t.GetSpec().GetDriverConfig()); v != nil {
		return v
	}
	within := t.GetSpec().GetDesiredServiceLevel().GetStartup().GetReadyWithin()
	if within != nil && (!within.IsValid() || within.AsDuration() <= 0) {
		return violation(at+".desired_service_level.startup.ready_within", "must be a duration above zero")
	}
	return nil
}

// SpecOf is the part of a sandbox spec that a workload template decides.
func SpecOf(t *openshellv1.SandboxWorkloadTemplate) *openshellv1.SandboxSpec {
	workload := t.GetSpec().GetWorkload()
	spec := &openshellv1.SandboxSpec{
		Environment: workload.GetEnvironment(),
		Template: &openshellv1.SandboxTemplate{
			Image: workload.GetImage(), Resources: limits(workload.GetResources()), DriverConfig: t.GetSpec().GetDriverConfig(),
		},
	}
	if gpu := workload.GetResources().GetGpu(); gpu != nil {
		spec.ResourceRequirements = &openshellv1.ResourceRequirements{Gpu: gpu}
	}
	return proto.CloneOf(spec)
}

// BesideTemplate checks that a spec, whose path is field, leaves to a workload template what that decides.
func BesideTemplate(field string, spec *openshellv1.SandboxSpec) *Violation {
	const problem = "must not be given beside workload_template, which decides it"
	switch {
	case spec.GetLogLevel() != "":
		return violation(field+".log_level", "must not be given beside workload_template")
	case len(spec.GetEnvironment()) > 0:
		return violation(field+".environment", problem)
	case spec.GetTemplate() != nil:
		return violation(field+".template", problem)
	case spec.GetResourceRequirements() != nil:
		return violation(field+".resource_requirements", problem)
	}
	return nil
}

// limits are resources in the form of a sandbox spec; nil when there are none.
func limits(r *openshellv1.SandboxResources) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	if r.GetCpu() != "" {
		fields["cpu"] = structpb.NewStringValue(r.GetCpu())
	}
	if r.GetMemory() != "" {
		fields["memory"] = structpb.NewStringValue(r.GetMemory())
	}
	if len(fields) == 0 {
		return nil
	}
	return &structpb.Struct{Fields: map[string]*structpb.Value{"limits": structpb.NewStructValue(&structpb.Struct{Fields: fields})}}
}
