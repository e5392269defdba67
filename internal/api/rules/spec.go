package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// Limits of a sandbox spec. Lengths are in bytes, those of messages encoded.
const (
	MaxLogLevel       = 32
	MaxTemplateString = 1024
	MaxTemplateStruct = 65536
	MaxPolicy         = 262144
	MaxProviders      = 32
	MaxArguments      = 256
	MaxArgument       = 32 * 1024
	MaxCommand        = 256 * 1024
	MaxMessage        = 1 << 20 // of a whole request
)

// Violation is a field that breaks a rule.
type Violation struct {
	// Field is its wire path, such as spec.command[0].
	Field string
	// Problem is what is wrong with the value, without repeating it.
	Problem string
}

func violation(field, format string, args ...any) *Violation {
	return &Violation{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Spec checks a sandbox spec, whose path is field. It returns the first violation, or nil.
func Spec(field string, spec *openshellv1.SandboxSpec) *Violation {
	if len(spec.GetLogLevel()) > MaxLogLevel {
		return violation(field+".log_level", "must be at most %d bytes long", MaxLogLevel)
	}
	if v := Environment(field+".environment", spec.GetEnvironment()); v != nil {
		return v
	}
	if v := template(field+".template", spec.GetTemplate()); v != nil {
		return v
	}
	if proto.Size(spec.GetPolicy()) > MaxPolicy {
		return violation(field+".policy", "must be at most %d bytes encoded", MaxPolicy)
	}
	if len(spec.GetProviders()) > MaxProviders {
		return violation(field+".providers", "must have at most %d names", MaxProviders)
	}
	if v := gpu(field+".resource_requirements.gpu", spec.GetResourceRequirements().GetGpu()); v != nil {
		return v
	}
	if v := Command(field+".command", spec.GetCommand()); v != nil {
		return v
	}
	if _, known := openshellv1.SandboxRestartPolicy_name[int32(spec.GetRestartPolicy())]; !known {
		return violation(field+".restart_policy", "has the unknown value %d", spec.GetRestartPolicy())
	}
	return nil
}

func gpu(field string, g *openshellv1.GpuResourceRequirements) *Violation {
	if g != nil && g.Count != nil && g.GetCount() < 1 {
		return violation(field+".count", "must be at least 1")
	}
	return nil
}

// Command checks the arguments of the main process, the program first.
func Command(field string, command []string) *Violation {
	if len(command) > MaxArguments {
		return violation(field, "must have at most %d arguments, not %d", MaxArguments, len(command))
	}
	total := 0
	for i, argument := range command {
		at := at(field, i)
		switch {
		case i == 0 && argument == "":
			return violation(at, "must not be empty")
		case len(argument) > MaxArgument:
			return violation(at, "must be at most %d bytes long", MaxArgument)
		case strings.ContainsRune(argument, 0):
			return violation(at, "must not contain a NUL character")
		}
		total += len(argument)
	}
	if total > MaxCommand {
		return violation(field, "must be at most %d bytes long in all", MaxCommand)
	}
	return nil
}

// at is the path of an element.
func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

func template(field string, t *openshellv1.SandboxTemplate) *Violation {
	for _, s := range []struct{ name, value string }{
		{"image", t.GetImage()}, {"runtime_class_name", t.GetRuntimeClassName()}, {"agent_socket", t.GetAgentSocket()},
	} {
		if len(s.value) > MaxTemplateString {
			return violation(field+"."+s.name, "must be at most %d bytes long", MaxTemplateString)
		}
	}
	for _, m := range []struct {
		name   string
		values map[string]string
	}{{"labels", t.GetLabels()}, {"annotations", t.GetAnnotations()}} {
		if v := sizes(field+"."+m.name, m.values); v != nil {
			return v
		}
	}
	if v := Environment(field+".environment", t.GetEnvironment()); v != nil {
		return v
	}
	if proto.Size(t.GetResources()) > MaxTemplateStruct {
		return violation(field+".resources", "must be at most %d bytes encoded", MaxTemplateStruct)
	}
	return driverConfig(field+".driver_config", t.GetDriverConfig())
}

// reservedDriverKey would let a client name a file of the host.
const reservedDriverKey = "rootfs_tar_path"

func driverConfig(field string, config *structpb.Struct) *Violation {
	if proto.Size(config) > MaxTemplateStruct {
		return violation(field, "must be at most %d bytes encoded", MaxTemplateStruct)
	}
	for _, name := range slices.Sorted(maps.Keys(config.GetFields())) {
		if _, set := config.GetFields()[name].GetStructValue().GetFields()[reservedDriverKey]; set {
			return violation(field+"."+name+"."+reservedDriverKey, "is reserved for the gateway")
		}
	}
	return nil
}
