package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const defaultWorkspace = "default"

// ValidateConfig finds arguments that exclude each other.
func (p *openshellProvider) ValidateConfig(ctx context.Context, req provider.ValidateConfigRequest, resp *provider.ValidateConfigResponse) {
	var cfg providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &cfg)...)
	if !resp.Diagnostics.HasError() {
		cfg.checkExclusive(&resp.Diagnostics)
	}
}

// Configure checks the configuration and prepares the connection; nothing is sent before a resource needs it. A value
// that is not known yet stays unknown: no default, no variable and no guess takes its place.
func (p *openshellProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var cfg providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &cfg)...)
	if resp.Diagnostics.HasError() {
		return
	}
	data := &providerData{
		unknown:                  cfg.unknown(),
		allowUnconditionalDelete: cfg.AllowUnconditionalDelete.ValueBool(),
		mismatchIsError:          cfg.OnIdentityMismatch.ValueString() == mismatchError,
	}
	resp.ResourceData, resp.DataSourceData = data, data
	s := &settings{cfg: cfg, diags: &resp.Diagnostics, origins: map[string]origin{}}
	if !cfg.Workspace.IsUnknown() {
		data.workspace = s.workspace()
	}
	cfg.checkExclusive(&resp.Diagnostics)
	if len(data.unknown) > 0 || resp.Diagnostics.HasError() {
		return
	}
	clientConfig := s.clientConfig(ctx)
	if resp.Diagnostics.HasError() {
		return
	}
	clientConfig.UserAgent = fmt.Sprintf("terraform-provider-openshell/%s terraform/%s", p.version, req.TerraformVersion)
	clientConfig.OnCall = logCall
	c, err := client.New(clientConfig)
	if err != nil {
		s.report(err)
		return
	}
	data.client = c
}

// checkExclusive refuses arguments of which only one can hold. What is not known yet may turn out to be null.
func (cfg providerModel) checkExclusive(diags *diag.Diagnostics) {
	type argument struct {
		name string
		set  bool
	}
	set := func(name string, value attr.Value) argument {
		return argument{name, !value.IsNull() && !value.IsUnknown()}
	}
	for _, group := range [][]argument{
		{set("endpoint", cfg.Endpoint), set("gateway", cfg.Gateway), {"use_active_gateway", cfg.UseActiveGateway.ValueBool()}},
		{set("token", cfg.Token), set("token_file", cfg.TokenFile), set("oidc", cfg.OIDC)},
	} {
		group = slices.DeleteFunc(group, func(a argument) bool { return !a.set })
		if len(group) > 1 {
			configFault(group[1].name, "", fmt.Sprintf("it excludes %s, which is set, too", group[0].name), "leave one of them out").asError(diags)
		}
	}
}

// unknown names the arguments without which nothing can be asked. Whether a delete may be unconditional matters in an apply
// only, when everything is known.
func (cfg providerModel) unknown() []string {
	var names []string
	for name, value := range map[string]attr.Value{
		"endpoint": cfg.Endpoint, "gateway": cfg.Gateway, "use_active_gateway": cfg.UseActiveGateway, "workspace": cfg.Workspace,
		"token": cfg.Token, "token_file": cfg.TokenFile, "oidc": cfg.OIDC, "headers": cfg.Headers, "tls": cfg.TLS,
		"request_timeout": cfg.RequestTimeout, "on_identity_mismatch": cfg.OnIdentityMismatch,
	} {
		names = append(names, unknownIn(name, value)...)
	}
	slices.Sort(names)
	return names
}

// unknownIn names what is not known of an argument: itself, or arguments in it.
func unknownIn(name string, value attr.Value) []string {
	isUnknown := func(v attr.Value) bool { return v.IsUnknown() }
	switch v := value.(type) {
	case types.Object:
		var names []string
		for child, value := range v.Attributes() {
			names = append(names, unknownIn(name+"."+child, value)...)
		}
		if len(names) > 0 {
			return names
		}
	case types.List:
		if slices.ContainsFunc(v.Elements(), isUnknown) {
			return []string{name}
		}
	case types.Map:
		if slices.ContainsFunc(slices.Collect(maps.Values(v.Elements())), isUnknown) {
			return []string{name}
		}
	}
	if value.IsUnknown() {
		return []string{name}
	}
	return nil
}

func logCall(ctx context.Context, a client.Attempt) {
	tflog.Debug(ctx, "called the gateway", map[string]any{"method": a.Method, "code": a.Code.String(), "duration_ms": a.Duration.Milliseconds()})
}

// dataFrom reads what Configure handed over; nil before Configure ran, as during validation.
func dataFrom(raw any, diags *diag.Diagnostics) *providerData {
	if raw == nil {
		return nil
	}
	data, ok := raw.(*providerData)
	if !ok {
		diags.AddError("The provider was configured with something else", fmt.Sprintf("Got %T. This is a bug of the provider; please report it.", raw))
	}
	return data
}

// connection gives the client, or an error that names what is not known yet.
func (d *providerData) connection(diags *diag.Diagnostics) *client.Client {
	if d == nil || d.client == nil {
		unknown := []string{"its configuration"}
		if d != nil && len(d.unknown) > 0 {
			unknown = d.unknown
		}
		report{
			title: "The provider's configuration is not known yet",
			what:  "The gateway must be asked now, but the provider's " + strings.Join(unknown, ", ") + " will be known only after an apply, so nothing was sent.",
			state: stateKept,
			todo:  "apply what the value comes from first (-target=ADDRESS), or plan with -refresh=false, or set the value from something that is known when planning.",
		}.asError(diags)
		return nil
	}
	return d.client
}
