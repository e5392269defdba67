package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// Environment variables that stand in for attributes that are not set.
const (
	envEndpoint  = "OPENSHELL_GATEWAY_ENDPOINT"
	envWorkspace = "OPENSHELL_WORKSPACE"
	envToken     = "OPENSHELL_TOKEN"
	envInsecure  = "OPENSHELL_GATEWAY_INSECURE"

	defaultWorkspace = "default"
)

// Configure checks the configuration and prepares the connection; nothing is sent before a resource needs it. A value
// that is not known yet stays unknown: no default, no variable and no guess takes its place.
func (p *openshellProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var cfg providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &cfg)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s := &settings{}
	data := &providerData{
		unknown:                  unknownSettings(cfg),
		allowUnconditionalDelete: cfg.AllowUnconditionalDelete.ValueBool(),
		mismatchIsError:          cfg.OnIdentityMismatch.ValueString() == mismatchError,
	}
	resp.ResourceData, resp.DataSourceData = data, data
	if !cfg.Workspace.IsUnknown() {
		data.workspace = s.text(cfg.Workspace, "workspace", envWorkspace)
		if data.workspace == "" {
			data.workspace = defaultWorkspace
		}
		if problem := rules.Name(data.workspace); problem != "" {
			s.report(&resp.Diagnostics, &client.ConfigError{Attribute: "workspace", Problem: "the name " + problem})
		}
	}
	if len(data.unknown) > 0 || resp.Diagnostics.HasError() {
		return
	}
	clientConfig := s.clientConfig(ctx, cfg, &resp.Diagnostics)
	clientConfig.UserAgent = fmt.Sprintf("terraform-provider-openshell/%s terraform/%s", p.version, req.TerraformVersion)
	clientConfig.OnCall = logCall
	if resp.Diagnostics.HasError() {
		return
	}
	c, err := client.New(clientConfig)
	if err != nil {
		s.report(&resp.Diagnostics, err)
		return
	}
	data.client = c
}

// unknownSettings names the attributes without which nothing can be asked. Whether a delete may be unconditional matters
// in an apply only, when everything is known.
func unknownSettings(cfg providerModel) []string {
	var unknown []string
	for name, value := range map[string]interface{ IsUnknown() bool }{
		"endpoint": cfg.Endpoint, "workspace": cfg.Workspace, "token": cfg.Token, "tls": cfg.TLS,
		"request_timeout": cfg.RequestTimeout, "on_identity_mismatch": cfg.OnIdentityMismatch,
	} {
		if value.IsUnknown() {
			unknown = append(unknown, name)
		}
	}
	for name, value := range cfg.TLS.Attributes() {
		if value.IsUnknown() {
			unknown = append(unknown, "tls."+name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// settings resolves attributes against environment variables and remembers which came from where.
type settings struct {
	fromEnv map[string]string
}

func (s *settings) text(value types.String, attribute, variable string) string {
	if !value.IsNull() {
		return value.ValueString()
	}
	text := strings.TrimSpace(os.Getenv(variable))
	if text != "" {
		if s.fromEnv == nil {
			s.fromEnv = map[string]string{}
		}
		s.fromEnv[attribute] = variable
	}
	return text
}

func (s *settings) clientConfig(ctx context.Context, cfg providerModel, diags *diag.Diagnostics) client.Config {
	out := client.Config{
		Endpoint: s.text(cfg.Endpoint, "endpoint", envEndpoint),
		Token:    s.text(cfg.Token, "token", envToken),
	}
	if out.Endpoint == "" {
		diags.AddAttributeError(path.Root("endpoint"), "No gateway is configured",
			"Set endpoint in the provider's configuration, or the environment variable "+envEndpoint+", to the URL of the gateway, such as https://gateway.example.com:17670.")
	}
	out.RequestTimeout, _ = time.ParseDuration(cfg.RequestTimeout.ValueString()) // validated; null is 0, the default
	if !cfg.TLS.IsNull() {
		var t tlsModel
		diags.Append(cfg.TLS.As(ctx, &t, basetypes.ObjectAsOptions{})...)
		out.TLS = client.TLS{
			CACertFile: t.CACertFile.ValueString(), CACertPEM: t.CACertPEM.ValueString(),
			ClientCertFile: t.ClientCertFile.ValueString(), ClientCertPEM: t.ClientCertPEM.ValueString(),
			ClientKeyFile: t.ClientKeyFile.ValueString(), ClientKeyPEM: t.ClientKeyPEM.ValueString(),
			InsecureSkipVerify: t.InsecureSkipVerify.ValueBool(), ServerName: t.ServerName.ValueString(),
		}
		if !t.InsecureSkipVerify.IsNull() {
			return out
		}
	}
	// The variable is about TLS in general; a plaintext endpoint has nothing to skip.
	if raw := os.Getenv(envInsecure); raw != "" && strings.HasPrefix(out.Endpoint, "https:") {
		insecure, err := strconv.ParseBool(raw)
		if err != nil {
			diags.AddAttributeError(path.Root("tls").AtName("insecure_skip_verify"), "The environment variable "+envInsecure+" cannot be used",
				"It must be true or false (or 1 or 0). Correct it, unset it, or set tls.insecure_skip_verify in the provider's configuration.")
		}
		out.TLS.InsecureSkipVerify = insecure
	}
	return out
}

// report turns a setting that cannot work into an error on its attribute.
func (s *settings) report(diags *diag.Diagnostics, err error) {
	problem, ok := errors.AsType[*client.ConfigError](err)
	if !ok {
		diags.AddError("The provider cannot be configured", err.Error())
		return
	}
	at := path.Empty()
	for _, step := range strings.Split(problem.Attribute, ".") {
		at = at.AtName(step)
	}
	source := ""
	if variable, ok := s.fromEnv[problem.Attribute]; ok {
		source = " (its value comes from the environment variable " + variable + ")"
	}
	diags.AddAttributeError(at, "The provider's "+problem.Attribute+" cannot be used", fmt.Sprintf("%s%s: %s.", problem.Attribute, source, problem.Problem))
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
		diags.AddError("The provider's configuration is not known yet",
			"The gateway must be asked now, but the provider's "+strings.Join(unknown, ", ")+" will be known only after an apply, so nothing was sent and the state is kept.\n\n"+
				"What to do: apply what the value comes from first (-target=ADDRESS), or plan with -refresh=false, or set the value from something that is known when planning.")
		return nil
	}
	return d.client
}
