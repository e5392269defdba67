package simulated

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
)

// Defaults, long enough for everything to be asynchronous and short enough to wait for.
const (
	defaultReadyAfter  = 50 * time.Millisecond
	defaultDeleteAfter = 50 * time.Millisecond
)

// Config steers one sandbox. Durations are texts such as "1.5s".
type Config struct {
	CreateTakes time.Duration  // create_takes: how long the create call blocks
	CreateError string         // create_error: the create call refuses with this text
	ReadyAfter  *time.Duration // ready_after: from the answer of create or start to ready; 50ms when absent
	NeverReady  bool           // never_ready: it stays in provisioning
	ExitAfter   *time.Duration // exit_after: from ready to the end of the main process; absent: it never ends
	ExitCode    int32          // exit_code: what the main process then ends with; needs exit_after
	DeleteAfter *time.Duration // delete_after: from the delete call to gone, "0s" within the call; 50ms when absent
	DeleteError string         // delete_error: the delete is refused with this text, after delete_after if that is set
}

func (c Config) readyAfter() time.Duration {
	if c.ReadyAfter != nil {
		return *c.ReadyAfter
	}
	return defaultReadyAfter
}

func (c Config) deleteAfter() time.Duration {
	switch {
	case c.DeleteAfter != nil:
		return *c.DeleteAfter
	case c.DeleteError != "":
		return 0
	}
	return defaultDeleteAfter
}

const configField = "template.driver_config"

// parse reads the block of this driver. Blocks of others are theirs.
func parse(spec *openshellv1.SandboxSpec) (Config, error) {
	var c Config
	value, ok := spec.GetTemplate().GetDriverConfig().GetFields()[Name]
	if !ok {
		return c, nil
	}
	block, ok := value.GetKind().(*structpb.Value_StructValue)
	if !ok {
		return c, &driver.InvalidError{Field: configField + "." + Name, Problem: "must be an object"}
	}
	read := map[string]func(*structpb.Value) string{
		"create_takes": func(v *structpb.Value) string { return duration(v, &c.CreateTakes) },
		"create_error": func(v *structpb.Value) string { return text(v, &c.CreateError) },
		"ready_after":  func(v *structpb.Value) string { c.ReadyAfter = new(time.Duration); return duration(v, c.ReadyAfter) },
		"never_ready":  func(v *structpb.Value) string { return boolean(v, &c.NeverReady) },
		"exit_after":   func(v *structpb.Value) string { c.ExitAfter = new(time.Duration); return duration(v, c.ExitAfter) },
		"exit_code":    func(v *structpb.Value) string { return exitCode(v, &c.ExitCode) },
		"delete_after": func(v *structpb.Value) string { c.DeleteAfter = new(time.Duration); return duration(v, c.DeleteAfter) },
		"delete_error": func(v *structpb.Value) string { return text(v, &c.DeleteError) },
	}
	fields := block.StructValue.GetFields()
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field := configField + "." + Name + "." + key
		set, known := read[key]
		if !known {
			keys := strings.Join(slices.Sorted(maps.Keys(read)), ", ")
			return c, &driver.InvalidError{Field: field, Problem: "unknown key; the keys are " + keys}
		}
		if problem := set(fields[key]); problem != "" {
			return c, &driver.InvalidError{Field: field, Problem: problem}
		}
	}
	if _, set := fields["exit_code"]; set && c.ExitAfter == nil {
		return c, &driver.InvalidError{Field: configField + "." + Name + ".exit_code", Problem: "needs exit_after"}
	}
	return c, nil
}

func duration(v *structpb.Value, to *time.Duration) string {
	d, err := time.ParseDuration(v.GetStringValue())
	if err != nil || d < 0 {
		return `must be a duration as text, such as "1.5s", and not negative`
	}
	*to = d
	return ""
}

func text(v *structpb.Value, to *string) string {
	*to = v.GetStringValue()
	if *to == "" {
		return "must be a text that is not empty"
	}
	return ""
}

func boolean(v *structpb.Value, to *bool) string {
	b, ok := v.GetKind().(*structpb.Value_BoolValue)
	if !ok {
		return "must be true or false"
	}
	*to = b.BoolValue
	return ""
}

func exitCode(v *structpb.Value, to *int32) string {
	n, ok := v.GetKind().(*structpb.Value_NumberValue)
	if !ok || n.NumberValue != math.Trunc(n.NumberValue) || n.NumberValue < 0 || n.NumberValue > 255 {
		return "must be a whole number from 0 to 255"
	}
	*to = int32(n.NumberValue)
	return ""
}
