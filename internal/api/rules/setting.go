package rules

import (
	"slices"
	"strings"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
)

// setting is what is known of a key: the values that it takes, if it is a text, or else that it is true or false.
type setting struct {
	key    string
	values []string
}

// settings are those that can be set, for a sandbox or the whole gateway (upstream-contract, UpdateConfig).
var settings = []setting{
	{"agent_policy_proposals_enabled", nil},
	{"ocsf_json_enabled", nil},
	{"ocsf_schema_version", []string{"", "1.1", "1.3"}},
	{"proposal_approval_mode", []string{"auto", "manual"}},
}

// PolicySetting is a key under which no setting can be made: it stands for the policy of the whole gateway.
const PolicySetting = "policy"

// SettingKeys lists the keys of all settings, sorted.
func SettingKeys() []string {
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.key
	}
	return keys
}

// SettingKey checks the key of a setting.
func SettingKey(key string) string {
	_, problem := settingOf(key)
	return problem
}

// SettingValue checks the value for a key.
func SettingValue(key string, value *sandboxv1.SettingValue) string {
	known, problem := settingOf(key)
	if problem != "" {
		return problem
	}
	text, isText := value.GetValue().(*sandboxv1.SettingValue_StringValue)
	_, isBool := value.GetValue().(*sandboxv1.SettingValue_BoolValue)
	switch {
	case known.values == nil && !isBool:
		return "must be a bool_value for " + key
	case known.values != nil && (!isText || !slices.Contains(known.values, text.StringValue)):
		return `must be a string_value for ` + key + `, one of: "` + strings.Join(known.values, `", "`) + `"`
	}
	return ""
}

func settingOf(key string) (known setting, problem string) {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, "must be one of: " + strings.Join(SettingKeys(), ", ")
	}
	return settings[i], ""
}
