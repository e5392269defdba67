package provider

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	frameworkprovider "github.com/hashicorp/terraform-plugin-framework/provider"
)

// These helpers speak the plugin protocol to the provider as a command line does, without one: for failures and corner
// cases, of which there are many.

// values are the attributes of an object that are not null.
type values map[string]tftypes.Value

func str(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func boolean(b bool) tftypes.Value { return tftypes.NewValue(tftypes.Bool, b) }

func number(n int64) tftypes.Value { return tftypes.NewValue(tftypes.Number, n) }

var unknownText = tftypes.NewValue(tftypes.String, tftypes.UnknownValue)

func textMap(m map[string]string) tftypes.Value {
	elements := map[string]tftypes.Value{}
	for key, value := range m {
		elements[key] = str(value)
	}
	return tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, elements)
}

func textsOf(values ...string) tftypes.Value {
	elements := make([]tftypes.Value, 0, len(values))
	for _, value := range values {
		elements = append(elements, str(value))
	}
	return tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, elements)
}

// server is a provider process.
type server struct {
	tfprotov6.ProviderServer
	t            *testing.T
	providerType tftypes.Object
	sandboxType  tftypes.Object
	identityType tftypes.Object
}

func object(t *testing.T, ty tftypes.Type) tftypes.Object {
	t.Helper()
	o, ok := ty.(tftypes.Object)
	if !ok {
		t.Fatalf("%v is no object", ty)
	}
	return o
}

func newServer(t *testing.T) *server {
	t.Helper()
	for _, variable := range []string{envEndpoint, envGateway, envWorkspace, envToken, envTokenFile, envClientSecret, envInsecure} {
		if _, ok := lookup(variable); ok {
			t.Setenv(variable, "")
		}
	}
	ctx := t.Context()
	s := &server{t: t, ProviderServer: NewServer("test")()}
	var p frameworkprovider.SchemaResponse
	(&openshellProvider{}).Schema(ctx, frameworkprovider.SchemaRequest{}, &p)
	var r resource.SchemaResponse
	(&sandboxResource{}).Schema(ctx, resource.SchemaRequest{}, &r)
	var i resource.IdentitySchemaResponse
	(&sandboxResource{}).IdentitySchema(ctx, resource.IdentitySchemaRequest{}, &i)
	s.providerType = object(t, p.Schema.Type().TerraformType(ctx))
	s.sandboxType = object(t, r.Schema.Type().TerraformType(ctx))
	s.identityType = object(t, i.IdentitySchema.Type().TerraformType(ctx))
	return s
}

// full is a whole object, with null for what v does not have.
func full(ty tftypes.Object, v values) tftypes.Value {
	all := maps.Clone(map[string]tftypes.Value(v))
	if all == nil {
		all = values{}
	}
	for name, attribute := range ty.AttributeTypes {
		if _, set := all[name]; !set {
			all[name] = tftypes.NewValue(attribute, nil)
		}
	}
	return tftypes.NewValue(ty, all)
}

func (s *server) dynamic(ty tftypes.Type, v tftypes.Value) *tfprotov6.DynamicValue {
	s.t.Helper()
	d, err := tfprotov6.NewDynamicValue(ty, v)
	if err != nil {
		s.t.Fatal(err)
	}
	return &d
}

func (s *server) decode(ty tftypes.Object, d *tfprotov6.DynamicValue) values {
	s.t.Helper()
	if d == nil {
		return nil
	}
	v, err := d.Unmarshal(ty)
	if err != nil {
		s.t.Fatal(err)
	}
	if v.IsNull() {
		return nil
	}
	var attributes map[string]tftypes.Value
	if err := v.As(&attributes); err != nil {
		s.t.Fatal(err)
	}
	return attributes
}

// text is an attribute as text; "" when null.
func (v values) text(name string) string {
	var s *string
	if err := v[name].As(&s); err != nil || s == nil {
		return ""
	}
	return *s
}

type diagnostics []*tfprotov6.Diagnostic

func (d diagnostics) with(severity tfprotov6.DiagnosticSeverity) diagnostics {
	return slices.DeleteFunc(slices.Clone(d), func(d *tfprotov6.Diagnostic) bool { return d.Severity != severity })
}

func (d diagnostics) errors() diagnostics   { return d.with(tfprotov6.DiagnosticSeverityError) }
func (d diagnostics) warnings() diagnostics { return d.with(tfprotov6.DiagnosticSeverityWarning) }

// String is everything a person can read.
func (d diagnostics) String() string {
	var out strings.Builder
	for _, one := range d {
		out.WriteString(one.Severity.String() + " " + one.Attribute.String() + ": " + one.Summary + "\n" + one.Detail + "\n\n")
	}
	return out.String()
}

// at tells whether a message stands on the attribute, such as tls.ca_cert_file.
func (d diagnostics) at(attribute string) bool {
	return slices.ContainsFunc(d, func(one *tfprotov6.Diagnostic) bool { return plainPath(one.Attribute.String()) == plainPath(attribute) })
}

func plainPath(steps string) string {
	return strings.NewReplacer(`AttributeName("`, "", `")`, "").Replace(steps)
}

func (s *server) configure(ctx context.Context, v values) diagnostics {
	s.t.Helper()
	config := s.dynamic(s.providerType, full(s.providerType, v))
	validated, err := s.ValidateProviderConfig(ctx, &tfprotov6.ValidateProviderConfigRequest{Config: config})
	if err != nil {
		s.t.Fatal(err)
	}
	if diags := diagnostics(validated.Diagnostics); len(diags.errors()) > 0 {
		return diags
	}
	configured, err := s.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: config, TerraformVersion: "1.11.4"})
	if err != nil {
		s.t.Fatal(err)
	}
	return configured.Diagnostics
}

func (s *server) validate(ctx context.Context, v values) diagnostics {
	s.t.Helper()
	reply, err := s.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{
		TypeName: "openshell_sandbox", Config: s.dynamic(s.sandboxType, full(s.sandboxType, v)),
		ClientCapabilities: &tfprotov6.ValidateResourceConfigClientCapabilities{WriteOnlyAttributesAllowed: true},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.Diagnostics
}

// plan returns the planned state and the paths that force a replacement.
func (s *server) plan(ctx context.Context, prior, config values) (*tfprotov6.PlanResourceChangeResponse, values) {
	s.t.Helper()
	priorValue := tftypes.NewValue(s.sandboxType, nil)
	proposed := maps.Clone(map[string]tftypes.Value(config))
	delete(proposed, "environment_wo")
	if prior != nil {
		priorValue = full(s.sandboxType, prior)
	}
	for _, computed := range []string{"id", "workspace_id", "name", "workspace", "image", "tty", "restart_policy", "wait_for", "phase", "created_time", "exit_code"} {
		if _, set := proposed[computed]; set {
			continue
		}
		if proposed[computed] = tftypes.NewValue(s.sandboxType.AttributeTypes[computed], tftypes.UnknownValue); prior != nil {
			proposed[computed] = prior[computed]
		}
	}
	reply, err := s.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: "openshell_sandbox", PriorState: s.dynamic(s.sandboxType, priorValue),
		ProposedNewState: s.dynamic(s.sandboxType, full(s.sandboxType, proposed)),
		Config:           s.dynamic(s.sandboxType, full(s.sandboxType, config)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply, s.decode(s.sandboxType, reply.PlannedState)
}

// change plans and applies, from nothing or from a prior state.
func (s *server) change(ctx context.Context, prior, config values) (values, diagnostics) {
	s.t.Helper()
	planned, _ := s.plan(ctx, prior, config)
	if diags := diagnostics(planned.Diagnostics); len(diags.errors()) > 0 {
		return prior, diags
	}
	priorValue := tftypes.NewValue(s.sandboxType, nil)
	if prior != nil {
		priorValue = full(s.sandboxType, prior)
	}
	reply, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "openshell_sandbox", PriorState: s.dynamic(s.sandboxType, priorValue), PlannedState: planned.PlannedState,
		Config: s.dynamic(s.sandboxType, full(s.sandboxType, config)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.decode(s.sandboxType, reply.NewState), reply.Diagnostics
}

// destroy returns the state that is left; nil for none.
func (s *server) destroy(ctx context.Context, prior values) (values, diagnostics) {
	s.t.Helper()
	none := s.dynamic(s.sandboxType, tftypes.NewValue(s.sandboxType, nil))
	reply, err := s.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "openshell_sandbox", PriorState: s.dynamic(s.sandboxType, full(s.sandboxType, prior)), PlannedState: none, Config: none,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.decode(s.sandboxType, reply.NewState), reply.Diagnostics
}

// refresh returns the state as read; nil for none.
func (s *server) refresh(ctx context.Context, prior values) (values, diagnostics) {
	s.t.Helper()
	reply, err := s.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: "openshell_sandbox", CurrentState: s.dynamic(s.sandboxType, full(s.sandboxType, prior)),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.decode(s.sandboxType, reply.NewState), reply.Diagnostics
}

// importState imports by id, or by identity if there is one.
func (s *server) importState(ctx context.Context, id string, identity values) (values, diagnostics) {
	s.t.Helper()
	request := &tfprotov6.ImportResourceStateRequest{TypeName: "openshell_sandbox", ID: id}
	if identity != nil {
		request.Identity = &tfprotov6.ResourceIdentityData{IdentityData: s.dynamic(s.identityType, full(s.identityType, identity))}
	}
	reply, err := s.ImportResourceState(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(reply.ImportedResources) != 1 {
		return nil, reply.Diagnostics
	}
	if got := s.decode(s.identityType, reply.ImportedResources[0].Identity.IdentityData); got.text("id") == "" || got.text("name") == "" || got.text("workspace") == "" {
		s.t.Errorf("identity %v", got)
	}
	return s.decode(s.sandboxType, reply.ImportedResources[0].State), reply.Diagnostics
}
