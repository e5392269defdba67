package provider

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Each rule of the gateway, at its edge, is found when planning, on the attribute, and shows no secret.
func TestSandboxValidate(t *testing.T) {
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprintf("K%d", i)] = "v"
		}
		return m
	}
	numbered := func(n int) (names []string) {
		for i := range n {
			names = append(names, fmt.Sprint(i))
		}
		return names
	}
	sized := func(prefix string, size int) map[string]string {
		m := map[string]string{}
		for size > 0 {
			entry := min(size, 8000)
			key := fmt.Sprintf("%s%02d", prefix, len(m))
			m[key] = strings.Repeat("v", entry-len(key))
			size -= entry
		}
		return m
	}
	repeat := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = "a"
		}
		return out
	}
	long := func(n int) string { return strings.Repeat("x", n) }
	schema := newServer(t).sandboxType.AttributeTypes
	nested := func(attribute string, v values) values {
		return values{attribute: full(object(t, schema[attribute]), v)}
	}
	resources := func(v values) values { return nested("resources", v) }
	gpus := func(count int64) values { return nested("gpu", values{"count": number(count)}) }
	for name, tc := range map[string]struct {
		good, bad values
		attribute string
		says      string
	}{
		"name length":              {values{"name": str(long(19))}, values{"name": str(long(20))}, "name", "19"},
		"name charset":             {values{"name": str("a-1")}, values{"name": str("Web")}, "name", ""},
		"name hyphens":             {values{"name": str("1a")}, values{"name": str("a--b")}, "name", ""},
		"name empty":               {values{}, values{"name": str("")}, "name", ""},
		"workspace":                {values{"workspace": str("team-a")}, values{"workspace": str("-a")}, "workspace", ""},
		"image empty":              {values{"image": str("a")}, values{"image": str("")}, "image", "null"},
		"image length":             {values{"image": str(long(1024))}, values{"image": str(long(1025))}, "image", "1024"},
		"command count":            {values{"command": textsOf(repeat(256)...)}, values{"command": textsOf(repeat(257)...)}, "command", "256"},
		"command first":            {values{"command": textsOf("a", "")}, values{"command": textsOf("", "a")}, "command.ElementKeyInt(0)", "empty"},
		"argument length":          {values{"command": textsOf(long(32 * 1024))}, values{"command": textsOf("a", long(32*1024+1))}, "command.ElementKeyInt(1)", ""},
		"argument null":            {values{"command": textsOf("a")}, values{"command": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{str("a"), tftypes.NewValue(tftypes.String, nil)})}, "command", "null"},
		"tty":                      {values{"tty": boolean(false), "command": textsOf("a")}, values{"tty": boolean(false)}, "tty", "command"},
		"variable count":           {values{"environment": textMap(many(128))}, values{"environment": textMap(many(129))}, "environment", "128"},
		"variable name":            {values{"environment": textMap(map[string]string{"_A1": ""})}, values{"environment": textMap(map[string]string{"1A": canary})}, "environment", ""},
		"variable reserved":        {values{"environment": textMap(map[string]string{"OPENSHEL": canary})}, values{"environment": textMap(map[string]string{"OPENSHELL_X": canary})}, "environment", "OPENSHELL_"},
		"variable value":           {values{"environment": textMap(map[string]string{"A": canary})}, values{"environment": textMap(map[string]string{"A": canary + "\n"})}, `environment.ElementKeyString("A")`, "line feed"},
		"variable length":          {values{"environment": textMap(map[string]string{"A": long(8192)})}, values{"environment": textMap(map[string]string{"A": canary + long(8192)})}, `environment.ElementKeyString("A")`, "8192"},
		"variable null":            {values{}, values{"environment": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"A": tftypes.NewValue(tftypes.String, nil)})}, `environment.ElementKeyString("A")`, "null"},
		"write-only name":          {values{"environment_wo": textMap(map[string]string{"A": canary})}, values{"environment_wo": textMap(map[string]string{"OPENSHELL_A": canary})}, "environment_wo", "OPENSHELL_"},
		"write-only length":        {values{"environment_wo": textMap(map[string]string{"A": long(8192)})}, values{"environment_wo": textMap(map[string]string{"A": canary + long(8192)})}, `environment_wo.ElementKeyString("A")`, "8192"},
		"write-only null":          {values{}, values{"environment_wo": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"A": tftypes.NewValue(tftypes.String, nil)})}, `environment_wo.ElementKeyString("A")`, "null"},
		"variable given twice":     {values{"environment": textMap(many(2)), "environment_wo": textMap(map[string]string{"A": canary})}, values{"environment": textMap(many(2)), "environment_wo": textMap(map[string]string{"K1": canary})}, `environment_wo.ElementKeyString("K1")`, "Leave it out"},
		"variable count, both":     {values{"environment": textMap(many(127)), "environment_wo": textMap(map[string]string{"A": canary})}, values{"environment": textMap(many(128)), "environment_wo": textMap(map[string]string{"A": canary})}, "environment_wo", "128"},
		"variable sizes, both":     {values{"environment": textMap(sized("A", 131072)), "environment_wo": textMap(sized("B", 131072))}, values{"environment": textMap(sized("A", 131072)), "environment_wo": textMap(sized("B", 131073))}, "environment_wo", "262144"},
		"variable sizes":           {values{"environment": textMap(sized("A", 262144))}, values{"environment": textMap(sized("A", 262145))}, "environment", "262144"},
		"annotation count, marked": {values{"annotations": textMap(many(126)), "environment_wo": textMap(map[string]string{"A": canary})}, values{"annotations": textMap(many(127)), "environment_wo": textMap(map[string]string{"A": canary})}, "annotations", "126"},
		"label key":                {values{"labels": textMap(map[string]string{"example.com/a.b_c-d": ""})}, values{"labels": textMap(map[string]string{"-a": "b"})}, "labels", ""},
		"label value":              {values{"labels": textMap(map[string]string{"a": long(63)})}, values{"labels": textMap(map[string]string{"a": long(64)})}, "labels", "63"},
		"label reserved":           {values{"labels": textMap(map[string]string{"openshell-iac.org/a": "b"})}, values{"labels": textMap(map[string]string{"openshell-iac/managed-by": "b"})}, `labels.ElementKeyString("openshell-iac/managed-by")`, "reserved"},
		"annotation count":         {values{"annotations": textMap(many(127))}, values{"annotations": textMap(many(128))}, "annotations", "127"},
		"annotation length":        {values{"annotations": textMap(map[string]string{"a": long(8192)})}, values{"annotations": textMap(map[string]string{"a": long(8193)})}, `annotations.ElementKeyString("a")`, "8192"},
		"gateway annotation":       {values{}, values{"annotations": textMap(map[string]string{"internal.openshell.ai/a": "b"})}, `annotations.ElementKeyString("internal.openshell.ai/a")`, "reserved"},
		"log level":                {values{"log_level": str(long(32))}, values{"log_level": str(long(33))}, "log_level", "32"},
		"name prefix length":       {values{"name_prefix": str(long(13))}, values{"name_prefix": str(long(14))}, "name_prefix", "13"},
		"name prefix charset":      {values{"name_prefix": str("a-")}, values{"name_prefix": str("a--")}, "name_prefix", ""},
		"name prefix empty":        {values{"name_prefix": str("0")}, values{"name_prefix": str("")}, "name_prefix", ""},
		"name and prefix":          {values{"name_prefix": str("a"), "name": unknownText}, values{"name_prefix": str("a"), "name": str("a")}, "name_prefix", "Leave one of them out"},
		"cpu":                      {resources(values{"cpu": str("500m")}), resources(values{"cpu": str("half")}), "resources.cpu", "quantity"},
		"cpu zero":                 {resources(values{"cpu": str("0.001")}), resources(values{"cpu": str("0")}), "resources.cpu", "above zero"},
		"cpu length":               {resources(values{"cpu": str(strings.Repeat("9", 32))}), resources(values{"cpu": str(strings.Repeat("9", 33))}), "resources.cpu", ""},
		"memory":                   {resources(values{"memory": str("1.5Gi")}), resources(values{"memory": str("")}), "resources.memory", "512Mi"},
		"gpu count":                {gpus(1), gpus(0), "gpu.count", "between 1"},
		"gpu count, large":         {gpus(math.MaxUint32), gpus(math.MaxUint32 + 1), "gpu.count", "4294967295"},
		"runtime class":            {values{"runtime_class_name": str(long(1024))}, values{"runtime_class_name": str(long(1025))}, "runtime_class_name", "1024"},
		"runtime class empty":      {values{}, values{"runtime_class_name": str("")}, "runtime_class_name", "null"},
		"workload template":        {values{"workload_template": str(long(19))}, values{"workload_template": str(long(20))}, "workload_template", "19"},
		"provider count":           {values{"providers": textSetOf(numbered(32)...)}, values{"providers": textSetOf(numbered(33)...)}, "providers", "32"},
		"provider length":          {values{"providers": textSetOf(long(253))}, values{"providers": textSetOf("a", long(254))}, "providers", "253"},
		"provider empty":           {values{"providers": textSetOf()}, values{"providers": textSetOf("a", "")}, "providers", "empty"},
		"provider null":            {values{}, values{"providers": tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{tftypes.NewValue(tftypes.String, nil)})}, "providers", "null"},
		"policy size":              {values{"policy": str(policySized(262144))}, values{"policy": str(policySized(262145))}, "policy", "262144"},
		"restart policy":           {values{"restart_policy": str("on_failure")}, values{"restart_policy": str("sometimes")}, "restart_policy", "on_failure"},
		"driver config":            {values{"driver_config": str(`{"docker":{}}`)}, values{"driver_config": str(`{"docker": ` + canary)}, "driver_config", "byte 12"},
		"driver config list":       {values{"driver_config": str(`{}`)}, values{"driver_config": str(`["` + canary + `"]`)}, "driver_config", "object"},
		"driver config null":       {values{}, values{"driver_config": str(`null`)}, "driver_config", "null"},
		"driver config path":       {values{"driver_config": str(`{"rootfs_tar_path":1}`)}, values{"driver_config": str(`{"docker":{"rootfs_tar_path":"a"}}`)}, "driver_config", "reserved"},
		"driver config size":       {values{"driver_config": str(`{"a":"` + long(65000) + `"}`)}, values{"driver_config": str(`{"a":"` + long(65536) + `"}`)}, "driver_config", "65536"},
		"wait for":                 {values{"wait_for": str("completed")}, values{"wait_for": str("running")}, "wait_for", "completed"},
		"wait for, restarted":      {values{"wait_for": str("completed"), "restart_policy": str("on_failure")}, values{"wait_for": str("completed"), "restart_policy": str("always")}, "wait_for", "restart_policy"},
		"running":                  {values{"running": boolean(false)}, values{"running": boolean(false), "wait_for": str("completed")}, "running", "wait_for"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			if diags := s.validate(t.Context(), tc.good); len(diags) > 0 {
				t.Errorf("the good one: %s", diags)
			}
			diags := s.validate(t.Context(), tc.bad)
			if len(diags.errors()) != 1 || !diags.at(tc.attribute) || !strings.Contains(diags.String(), tc.says) {
				t.Errorf("want one error on %s that says %q, got\n%s", tc.attribute, tc.says, diags)
			}
			if strings.Contains(diags.String(), canary) {
				t.Errorf("a secret in\n%s", diags)
			}
		})
	}
}

// A workload template excludes what it decides, but nothing that may still turn out to be null.
func TestSandboxValidateTemplate(t *testing.T) {
	s := newServer(t)
	config := func(name string, value tftypes.Value) values {
		return values{"workload_template": str("small"), name: value}
	}
	for name, value := range map[string]tftypes.Value{
		"image": str("a"), "log_level": str("debug"), "driver_config": str("{}"), "environment": textMap(map[string]string{"A": canary}), "environment_wo": textMap(map[string]string{"A": canary}),
		"resources": full(object(t, s.sandboxType.AttributeTypes["resources"]), values{"cpu": str("1")}),
		"gpu":       full(object(t, s.sandboxType.AttributeTypes["gpu"]), nil), "runtime_class_name": str("gvisor"), "user_namespaces": boolean(false),
	} {
		diags := s.validate(t.Context(), config(name, value))
		if len(diags.errors()) != 1 || !diags.at(name) || !strings.Contains(diags.String(), "workload_template") {
			t.Errorf("%s: %s", name, diags)
		}
		for _, fine := range []tftypes.Value{tftypes.NewValue(value.Type(), nil), tftypes.NewValue(value.Type(), tftypes.UnknownValue)} {
			if diags := s.validate(t.Context(), config(name, fine)); len(diags) > 0 {
				t.Errorf("%s = %v: %s", name, fine, diags)
			}
		}
	}
	fine := config("environment", textMap(nil))
	fine["resources"] = full(object(t, s.sandboxType.AttributeTypes["resources"]), nil)
	fine["command"], fine["tty"], fine["restart_policy"] = textsOf("a"), boolean(false), str("always")
	if diags := s.validate(t.Context(), fine); len(diags) > 0 {
		t.Error(diags)
	}
}

// policySized is the text of a policy that has a size, encoded.
func policySized(size int) string {
	left := size - 6 // the version, and the head of the filesystem's part
	var paths []string
	for len(paths) < 64 {
		entry := left / (64 - len(paths)) // its head of three bytes included
		paths = append(paths, fmt.Sprintf("\"/%03d%s\"", len(paths), strings.Repeat("x", entry-7)))
		left -= entry
	}
	return `{"version": 1, "filesystem_policy": {"read_only": [` + strings.Join(paths, ",") + `]}}`
}

// What is small enough one by one may be too large together.
func TestSandboxValidateSize(t *testing.T) {
	s := newServer(t)
	notes := map[string]string{}
	for i := range 127 {
		notes[fmt.Sprintf("n%03d", i)] = strings.Repeat("x", 8192)
	}
	config := values{"annotations": textMap(notes)}
	if diags := s.validate(t.Context(), config); len(diags) > 0 {
		t.Errorf("127 annotations: %s", diags)
	}
	config["command"] = textsOf(strings.Repeat("x", 8192))
	expect(t, "error", s.validate(t.Context(), config).errors(), "too large", "1048576")
}

// What is not known yet is neither refused nor taken for something else.
func TestSandboxValidateUnknown(t *testing.T) {
	s := newServer(t)
	config := values{
		"tty":     boolean(false),
		"command": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{unknownText, str("a")}),
		"environment": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{
			"A": unknownText, "B": str("b"),
		}),
	}
	for name, attribute := range s.sandboxType.AttributeTypes {
		if _, set := config[name]; !set && name != "timeouts" && name != "tty" {
			switch name {
			case "id", "workspace_id", "phase", "created_time", "exit_code":
			default:
				config[name] = tftypes.NewValue(attribute, tftypes.UnknownValue)
			}
		}
	}
	if diags := s.validate(t.Context(), config); len(diags) > 0 {
		t.Error(diags)
	}
	config["command"] = tftypes.NewValue(s.sandboxType.AttributeTypes["command"], tftypes.UnknownValue)
	if diags := s.validate(t.Context(), config); len(diags) > 0 {
		t.Error(diags)
	}
}
