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
	if !slices.Contains(SettingKeys(), key) {
		return "must be one of: " + strings.Join(SettingKeys(), ", ")
	}
	return ""
}

// SettingValue checks the value for a key that [SettingKey] has found right.
func SettingValue(key string, value *sandboxv1.SettingValue) string {
	i := slices.Index(SettingKeys(), key)
	text, isText := value.GetValue().(*sandboxv1.SettingValue_StringValue)
	_, isBool := value.GetValue().(*sandboxv1.SettingValue_BoolValue)
	switch values := settings[i].values; {
	case values == nil && !isBool:
		return "must be a bool_value for " + key
	case values != nil && (!isText || !slices.Contains(values, text.StringValue)):
		return `must be a string_value for ` + key + `, one of: "` + strings.Join(values, `", "`) + `"`
	}
	return ""
}
