package provider

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

const policyDocumentName = "openshell_policy_document"

// policyDocumentDataSource is openshell_policy_document: it turns rules with types into the text of a policy and asks no
// gateway. Its attributes are named and nested as the written form is, so one walk turns the configuration into text and
// the path of a problem into that of an attribute. The framework has the schema; [policyDocuments] does the rest.
type policyDocumentDataSource struct{}

func newPolicyDocumentDataSource() datasource.DataSource { return &policyDocumentDataSource{} }

func (d *policyDocumentDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = policyDocumentName
}

// Read is part of the framework's interface.
func (d *policyDocumentDataSource) Read(_ context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	resp.Diagnostics.AddError("The provider was not started in the right way", "Policy documents are read by the server that provider.NewServer makes.")
}

// frameworkServer is all that the framework's server can do.
type frameworkServer interface {
	tfprotov6.ProviderServerWithListResource //nolint:staticcheck // is to move into ProviderServer, has not yet
	tfprotov6.ProviderServerWithActions      //nolint:staticcheck // is to move into ProviderServer, has not yet
	tfprotov6.ProviderServerWithStateStores  //nolint:staticcheck // is to move into ProviderServer, has not yet
}

// policyDocuments is the framework's server, save that it checks and reads policy documents by itself. For every value of
// a configuration, set or not, the framework walks the schema from its root several times; a document of 250 rules has
// about 16,000 values, which took it seconds.
type policyDocuments struct{ frameworkServer }

var policyDocumentType = sync.OnceValue(func() tftypes.Object {
	var resp datasource.SchemaResponse
	(&policyDocumentDataSource{}).Schema(context.Background(), datasource.SchemaRequest{}, &resp)
	object, _ := resp.Schema.Type().TerraformType(context.Background()).(tftypes.Object)
	return object
})

// ValidateDataResourceConfig finds what is wrong before anything is read. What is not known yet is left for the read.
func (s policyDocuments) ValidateDataResourceConfig(ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	if req.TypeName != policyDocumentName {
		return s.frameworkServer.ValidateDataResourceConfig(ctx, req)
	}
	config, err := req.Config.Unmarshal(policyDocumentType())
	if err != nil || !config.IsFullyKnown() {
		return &tfprotov6.ValidateDataResourceConfigResponse{}, err
	}
	_, diags, err := policyDocument(config)
	return &tfprotov6.ValidateDataResourceConfigResponse{Diagnostics: diags}, err
}

// ReadDataSource adds the text to the configuration.
func (s policyDocuments) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	if req.TypeName != policyDocumentName {
		return s.frameworkServer.ReadDataSource(ctx, req)
	}
	config, err := req.Config.Unmarshal(policyDocumentType())
	if err != nil {
		return nil, err
	}
	text, diags, err := policyDocument(config)
	if err != nil || len(diags) > 0 {
		return &tfprotov6.ReadDataSourceResponse{Diagnostics: diags}, err
	}
	var attributes map[string]tftypes.Value
	if err := config.As(&attributes); err != nil {
		return nil, err
	}
	attributes[policyText] = tftypes.NewValue(tftypes.String, text)
	state, err := tfprotov6.NewDynamicValue(policyDocumentType(), tftypes.NewValue(policyDocumentType(), attributes))
	return &tfprotov6.ReadDataSourceResponse{State: &state}, err
}

// policyDocument writes and checks the text; problems are reported on the attributes.
func policyDocument(config tftypes.Value) (string, []*tfprotov6.Diagnostic, error) {
	text, err := writePolicy(config)
	if err != nil {
		return "", nil, err
	}
	_, err = parsePolicy(text)
	if err == nil {
		return text, nil, nil
	}
	found, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return "", nil, err
	}
	var diags []*tfprotov6.Diagnostic
	for _, problem := range found.Problems {
		at, inConfig := attributeAt(policyDocumentType(), problem.Steps())
		what := problem.Message + "."
		if problem.Path != "" {
			what = problem.Path + ": " + what
		}
		if inConfig {
			what += " config is the text of a JSON object; jsonencode() makes one."
		}
		diags = append(diags, &tfprotov6.Diagnostic{
			Severity: tfprotov6.DiagnosticSeverityError, Summary: "The policy is not valid", Detail: what, Attribute: at,
		})
	}
	return "", diags, nil
}

// attributeAt follows the steps of a path in the policy through the schema, as far as it goes: the inside of a
// middleware's config is one text here, and a pattern stands in a list whether it is written in one or not.
func attributeAt(ty tftypes.Type, steps []any) (at *tftypes.AttributePath, inConfig bool) {
	at = tftypes.NewAttributePath()
	for _, step := range steps {
		key, _ := step.(string)
		index, isIndex := step.(int)
		switch t := ty.(type) {
		case tftypes.Object:
			if ty = t.AttributeTypes[key]; ty == nil {
				return at, false
			}
			at, inConfig = at.WithAttributeName(key), key == jsonAttribute
		case tftypes.Map:
			at, ty = at.WithElementKeyString(key), t.ElementType
		case tftypes.List:
			if isIndex {
				at, ty = at.WithElementKeyInt(index), t.ElementType
			}
		default:
			return at, inConfig
		}
	}
	return at, inConfig
}
