package provider

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

var (
	_ basetypes.StringTypable                    = policyType{}
	_ basetypes.StringValuableWithSemanticEquals = policyValue{}
	_ xattr.ValidateableAttribute                = policyValue{}
)

// policyType is the text of a sandbox policy, in YAML or JSON.
type policyType struct{ basetypes.StringType }

func (t policyType) Equal(o attr.Type) bool {
	_, ok := o.(policyType)
	return ok
}

func (policyType) String() string { return "policyType" }

func (policyType) ValueType(context.Context) attr.Value { return policyValue{} }

func (policyType) ValueFromString(_ context.Context, in basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return policyValue{in}, nil
}

func (t policyType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	value, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	text, ok := value.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("unexpected value type %T", value)
	}
	return policyValue{text}, nil
}

// policyValue is a policy's text, known or not. Two texts that mean the same are equal in meaning.
type policyValue struct{ basetypes.StringValue }

func newPolicy(text string) policyValue { return policyValue{basetypes.NewStringValue(text)} }

func nullPolicy() policyValue { return policyValue{basetypes.NewStringNull()} }

func (v policyValue) Type(context.Context) attr.Type { return policyType{} }

func (v policyValue) Equal(o attr.Value) bool {
	other, ok := o.(policyValue)
	return ok && v.StringValue.Equal(other.StringValue)
}

// StringSemanticEquals keeps a text that means the same as the new one.
func (v policyValue) StringSemanticEquals(_ context.Context, o basetypes.StringValuable) (bool, diag.Diagnostics) {
	other, ok := o.(policyValue)
	return ok && policy.Equal(v.policy(), other.policy()), nil
}

// ValidateAttribute reports every problem of form and content, with its line.
func (v policyValue) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if _, err := parsePolicy(v.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "The policy is not valid", fmt.Sprintf(
			"%s must be the text of a sandbox policy, in YAML or JSON: %v\n\nThe data source openshell_policy_document writes policies from rules with types.", req.Path, err))
	}
}

// policy is nil when the text is null, unknown, or no policy: validation reports the last. It must not be changed.
func (v policyValue) policy() *sandboxv1.SandboxPolicy {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	p, err := parsePolicy(v.ValueString())
	if err != nil { // a state may hold what a gateway has, but would not take from a user
		p, _ = policy.Parse(v.ValueString())
	}
	return p
}

// maxCachedText bounds the text of the policies that are kept, in bytes.
const maxCachedText = 64 << 20

// policies keeps what was read from a text: a plan looks at each policy several times, and many sandboxes may share one.
var policies struct {
	sync.Mutex
	read map[string]readPolicy
	size int
}

type readPolicy struct {
	policy *sandboxv1.SandboxPolicy
	err    error
}

// parsePolicy reads and checks the text of a policy. What it returns is shared, and must not be changed.
func parsePolicy(text string) (*sandboxv1.SandboxPolicy, error) {
	policies.Lock()
	known, ok := policies.read[text]
	policies.Unlock()
	if ok {
		return known.policy, known.err
	}
	p, err := policy.ParseAndValidate(text)
	policies.Lock()
	defer policies.Unlock()
	if policies.size += len(text); policies.read == nil || policies.size > maxCachedText {
		policies.read, policies.size = map[string]readPolicy{}, len(text)
	}
	policies.read[text] = readPolicy{p, err}
	return p, err
}
