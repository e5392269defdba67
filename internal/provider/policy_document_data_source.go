package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

var _ datasource.DataSourceWithValidateConfig = (*policyDocumentDataSource)(nil)

// policyDocumentDataSource is openshell_policy_document: it turns rules with types into the text of a policy and asks no
// gateway. Its attributes are named and nested as the written form is, so one walk turns the configuration into text and
// the path of a problem into that of an attribute.
type policyDocumentDataSource struct{}

func newPolicyDocumentDataSource() datasource.DataSource { return &policyDocumentDataSource{} }

func (d *policyDocumentDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_policy_document"
}

// ValidateConfig finds what is wrong before anything is read. What is not known yet is left for the read.
func (d *policyDocumentDataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	if req.Config.Raw.IsFullyKnown() {
		policyDocument(ctx, req.Config, &resp.Diagnostics)
	}
}

func (d *policyDocumentDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	text := policyDocument(ctx, req.Config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.State.Raw = req.Config.Raw
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(policyText), text)...)
}

// policyDocument writes and checks the text; problems are reported on the attributes.
func policyDocument(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) string {
	text, err := writePolicy(config.Raw)
	if err != nil {
		diags.AddError("The policy cannot be written", sentence(err))
		return ""
	}
	_, err = parsePolicy(text)
	problems, isPolicy := errors.AsType[*policy.Error](err)
	if err != nil && !isPolicy {
		diags.AddError("The policy is not valid", sentence(err))
		return ""
	}
	if !isPolicy {
		return text
	}
	for _, problem := range problems.Problems {
		at := attributeAt(config.Schema.Type().TerraformType(ctx), problem.Steps())
		what := problem.Message
		if problem.Path != "" {
			what = problem.Path + ": " + what
		}
		diags.AddAttributeError(at, "The policy is not valid", what+".")
	}
	return ""
}

// attributeAt follows the steps of a path in the policy through the schema, as far as it goes: the inside of a
// middleware's config is one text here, and a pattern stands in a list whether it is written in one or not.
func attributeAt(ty tftypes.Type, steps []any) path.Path {
	at := path.Empty()
	for _, step := range steps {
		key, _ := step.(string)
		index, isIndex := step.(int)
		switch t := ty.(type) {
		case tftypes.Object:
			if ty = t.AttributeTypes[key]; ty == nil {
				return at
			}
			at = at.AtName(key)
		case tftypes.Map:
			at, ty = at.AtMapKey(key), t.ElementType
		case tftypes.List:
			if isIndex {
				at, ty = at.AtListIndex(index), t.ElementType
			}
		default:
			return at
		}
	}
	return at
}
