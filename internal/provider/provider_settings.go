package provider

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client/registration"
)

// Environment variables that stand in for arguments that are not set.
const (
	envEndpoint     = "OPENSHELL_GATEWAY_ENDPOINT"
	envGateway      = "OPENSHELL_GATEWAY"
	envWorkspace    = "OPENSHELL_WORKSPACE"
	envToken        = "OPENSHELL_TOKEN"
	envTokenFile    = "OPENSHELL_TOKEN_FILE"
	envClientSecret = "OPENSHELL_OIDC_CLIENT_SECRET"
	envInsecure     = "OPENSHELL_GATEWAY_INSECURE"
)

// settings turns a known configuration and the environment into the client's. An argument wins over its variable, and over
// the variables of those that exclude it; what a registration says comes last.
type settings struct {
	cfg   providerModel
	diags *diag.Diagnostics
	// origins tell where a value comes from that is not its argument's.
	origins map[string]origin
	// registered is what the command line knows about the gateway; nil if it was not asked.
	registered *registration.Registration
}

// origin is where a value comes from, and the argument that made it be taken from there.
type origin struct{ attribute, text string }

// report puts a setting that cannot work on the argument that it comes from.
func (s *settings) report(err error) {
	problem, ok := errors.AsType[*client.ConfigError](err)
	if !ok {
		s.diags.AddError("The provider cannot be configured", err.Error())
		return
	}
	attribute, from := problem.Attribute, s.origins[problem.Attribute]
	if from.attribute != "" {
		attribute = from.attribute
	}
	configFault(attribute, from.text, problem.Problem, problem.Remedy).asError(s.diags)
}

// text is an argument, or else its variable.
func (s *settings) text(value types.String, attribute, variable string) string {
	if !value.IsNull() {
		return value.ValueString()
	}
	return s.variable(attribute, variable)
}

func (s *settings) variable(attribute, name string) string {
	value := strings.TrimSpace(os.Getenv(name))
	if value != "" {
		s.origins[attribute] = origin{text: "its value comes from the environment variable " + name}
	}
	return value
}

func (s *settings) workspace() string {
	name := s.text(s.cfg.Workspace, "workspace", envWorkspace)
	if name == "" {
		return defaultWorkspace
	}
	if problem := rules.Name(name); problem != "" {
		s.report(&client.ConfigError{Attribute: "workspace", Problem: "the name " + problem})
	}
	return name
}

func (s *settings) clientConfig(ctx context.Context) client.Config {
	out := client.Config{Endpoint: s.endpoint()}
	if s.diags.HasError() {
		return out
	}
	out.Credentials = s.credentials(ctx)
	out.Headers = s.headers(ctx)
	out.TLS = s.tls(ctx, strings.HasPrefix(out.Endpoint, "https:"))
	out.RequestTimeout, _ = time.ParseDuration(s.cfg.RequestTimeout.ValueString()) // validated; null is 0, the default
	return out
}

// endpoint chooses the gateway, in the order of the command line: the active one last, and only when asked for.
func (s *settings) endpoint() string {
	if !s.cfg.Endpoint.IsNull() {
		return s.cfg.Endpoint.ValueString()
	}
	if !s.cfg.Gateway.IsNull() {
		return s.registeredEndpoint("gateway", s.cfg.Gateway.ValueString())
	}
	if endpoint := s.variable("endpoint", envEndpoint); endpoint != "" {
		return endpoint
	}
	if name := s.variable("gateway", envGateway); name != "" {
		return s.registeredEndpoint("gateway", name)
	}
	if s.cfg.UseActiveGateway.ValueBool() {
		return s.registeredEndpoint("use_active_gateway", "")
	}
	s.report(&client.ConfigError{
		Attribute: "endpoint", Problem: "no gateway is configured",
		Remedy: "set endpoint to the gateway's URL, such as https://gateway.example.com:17670, or gateway to the name under which the openshell command line knows it; or one of the environment variables " + envEndpoint + " and " + envGateway + "; or use_active_gateway = true for the one that the command line has selected",
	})
	return ""
}

// registeredEndpoint takes over what the command line knows about a gateway; about its active one if name is empty.
func (s *settings) registeredEndpoint(attribute, name string) string {
	store, err := registration.Locate(os.Getenv)
	if err == nil && name == "" {
		name, err = store.Active()
	}
	if err == nil {
		s.registered, err = store.Load(name)
	}
	if unusable, ok := errors.AsType[*registration.Error](err); ok {
		s.report(&client.ConfigError{Attribute: attribute, Problem: unusable.Problem, Remedy: unusable.Remedy})
		return ""
	}
	from := origin{attribute: attribute, text: "as registered in " + s.registered.File}
	if chosen := s.origins["gateway"].text; chosen != "" {
		from.text += "; " + chosen
	}
	s.origins["endpoint"], s.origins["gateway"] = from, from
	return s.registered.Endpoint
}

func (s *settings) credentials(ctx context.Context) client.Credentials {
	switch {
	case !s.cfg.Token.IsNull():
		return client.Token(s.cfg.Token.ValueString())
	case !s.cfg.TokenFile.IsNull():
		return client.TokenFile(s.cfg.TokenFile.ValueString())
	case !s.cfg.OIDC.IsNull():
		return s.clientCredentials(ctx)
	}
	token, file := s.variable("token", envToken), s.variable("token_file", envTokenFile)
	switch {
	case token != "" && file != "":
		s.report(&client.ConfigError{Attribute: "token_file", Problem: "the environment variable " + envToken + " is set, too", Remedy: "unset one of them"})
		return nil
	case token != "":
		return client.Token(token)
	case file != "":
		return client.TokenFile(file)
	case s.registered != nil && s.registered.Mode == registration.OIDC:
		return client.StoredLogin{Path: s.registered.TokenFile, Gateway: s.registered.Name}
	default:
		return nil
	}
}

func (s *settings) clientCredentials(ctx context.Context) client.Credentials {
	var m oidcModel
	s.diags.Append(s.cfg.OIDC.As(ctx, &m, basetypes.ObjectAsOptions{})...)
	c := client.OIDC{
		Issuer: m.Issuer.ValueString(), ClientID: m.ClientID.ValueString(), Audience: m.Audience.ValueString(),
		ClientSecret: s.text(m.ClientSecret, "oidc.client_secret", envClientSecret),
	}
	var scopes []types.String
	s.diags.Append(m.Scopes.ElementsAs(ctx, &scopes, false)...)
	for _, scope := range scopes {
		if scope.IsNull() {
			s.report(&client.ConfigError{Attribute: "oidc.scopes", Problem: "one of them is null", Remedy: "leave out scopes that are not asked for"})
		}
		c.Scopes = append(c.Scopes, scope.ValueString())
	}
	if r := s.registered; r != nil {
		s.fill(&c.Issuer, r.Issuer, "oidc.issuer")
		s.fill(&c.ClientID, r.ClientID, "oidc.client_id")
		s.fill(&c.Audience, r.Audience, "oidc.audience")
		if m.Scopes.IsNull() {
			c.Scopes = r.Scopes
		}
	}
	return c
}

// fill takes a value from the registration that its argument does not have.
func (s *settings) fill(value *string, registered, attribute string) {
	if *value == "" && registered != "" {
		*value, s.origins[attribute] = registered, s.origins["gateway"]
	}
}

func (s *settings) headers(ctx context.Context) map[string]string {
	if s.cfg.Headers.IsNull() {
		return nil
	}
	var given map[string]types.String
	s.diags.Append(s.cfg.Headers.ElementsAs(ctx, &given, false)...)
	out := map[string]string{}
	for name, value := range given {
		if value.IsNull() {
			s.report(&client.ConfigError{Attribute: "headers", Problem: "a value is null", Remedy: "leave out headers that have no value"})
		}
		out[name] = value.ValueString()
	}
	return out
}

func (s *settings) tls(ctx context.Context, secure bool) client.TLS {
	var m tlsModel
	if !s.cfg.TLS.IsNull() {
		s.diags.Append(s.cfg.TLS.As(ctx, &m, basetypes.ObjectAsOptions{})...)
	}
	out := client.TLS{
		CACertFile: m.CACertFile.ValueString(), CACertPEM: m.CACertPEM.ValueString(),
		ClientCertFile: m.ClientCertFile.ValueString(), ClientCertPEM: m.ClientCertPEM.ValueString(),
		ClientKeyFile: m.ClientKeyFile.ValueString(), ClientKeyPEM: m.ClientKeyPEM.ValueString(),
		InsecureSkipVerify: m.InsecureSkipVerify.ValueBool(), ServerName: m.ServerName.ValueString(),
	}
	if !secure { // a registration or a variable about TLS means nothing then
		return out
	}
	if r := s.registered; r != nil {
		if out.CACertPEM == "" {
			s.fill(&out.CACertFile, r.CACert, "tls.ca_cert_file")
		}
		if out.ClientCertPEM+out.ClientCertFile+out.ClientKeyPEM+out.ClientKeyFile == "" && r.ClientCert != "" && r.ClientKey != "" {
			s.fill(&out.ClientCertFile, r.ClientCert, "tls.client_cert_file")
			s.fill(&out.ClientKeyFile, r.ClientKey, "tls.client_key_file")
		}
	}
	if raw := os.Getenv(envInsecure); raw != "" && m.InsecureSkipVerify.IsNull() {
		insecure, err := strconv.ParseBool(raw)
		if err != nil {
			s.report(&client.ConfigError{Attribute: "tls.insecure_skip_verify", Problem: "the environment variable " + envInsecure + " is neither true nor false (nor 1 or 0)", Remedy: "correct it, unset it, or set tls.insecure_skip_verify"})
		}
		out.InsecureSkipVerify = insecure
	}
	return out
}
