package rules_test

import (
	"slices"
	"testing"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
)

func TestSettingKey(t *testing.T) {
	keys := []string{"agent_policy_proposals_enabled", "ocsf_json_enabled", "ocsf_schema_version", "proposal_approval_mode"}
	check(t, rules.SettingKey, keys, []string{"", "policy", "providers_v2_enabled", "OCSF_JSON_ENABLED", "ocsf_json_enabled "})
	if !slices.Equal(rules.SettingKeys(), keys) {
		t.Errorf("keys %v", rules.SettingKeys())
	}
}

func TestSettingValue(t *testing.T) {
	for key, good := range map[string][]string{"ocsf_schema_version": {"", "1.1", "1.3"}, "proposal_approval_mode": {"manual", "auto"}} {
		check(t, func(value string) string {
			return rules.SettingValue(key, &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_StringValue{StringValue: value}})
		}, good, []string{"1.2", "v1.1", "AUTO", " auto", "true"})
	}
	truth := &sandboxv1.SettingValue{Value: &sandboxv1.SettingValue_BoolValue{BoolValue: true}}
	for key, want := range map[string]bool{
		"ocsf_json_enabled": true, "agent_policy_proposals_enabled": true, "ocsf_schema_version": false, "proposal_approval_mode": false, "none": false,
	} {
		if taken := rules.SettingValue(key, truth) == ""; taken != want {
			t.Errorf("%s takes a truth value: %v", key, taken)
		}
	}
	for _, key := range rules.SettingKeys() {
		for _, value := range []*sandboxv1.SettingValue{nil, {}, {Value: &sandboxv1.SettingValue_IntValue{}}, {Value: &sandboxv1.SettingValue_BytesValue{}}} {
			if rules.SettingValue(key, value) == "" {
				t.Errorf("%s takes %v", key, value)
			}
		}
	}
}
