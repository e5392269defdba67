package provider

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

const registered = `{"gateway_endpoint": "https://registered", "auth_mode": "oidc", "oidc_issuer": "https://issuer", "oidc_client_id": "cli", "oidc_audience": "aud", "oidc_scopes": "a b"}`

func resolve(t *testing.T, cfg providerModel) client.Config {
	t.Helper()
	var diags diag.Diagnostics
	out := (&settings{cfg: cfg, diags: &diags, origins: map[string]origin{}}).clientConfig(t.Context())
	if diags.HasError() {
		t.Fatal(diags)
	}
	return out
}

// The order in which a gateway is chosen: an argument, the variables, and the active one only when asked for.
func TestChoiceOfTheGateway(t *testing.T) {
	attribute := types.StringValue
	for name, tc := range map[string]struct {
		cfg               providerModel
		endpoint, gateway string
		want              string
	}{
		"endpoint":                    {cfg: providerModel{Endpoint: attribute("http://a")}, endpoint: "http://b", gateway: "none", want: "http://a"},
		"gateway":                     {cfg: providerModel{Gateway: attribute("prod")}, endpoint: "http://b", gateway: "none", want: "https://registered"},
		"endpoint variable":           {endpoint: " http://b\n", gateway: "none", want: "http://b"},
		"gateway variable":            {gateway: "prod", want: "https://registered"},
		"active":                      {cfg: providerModel{UseActiveGateway: types.BoolValue(true)}, want: "https://registered"},
		"active, but endpoint is set": {cfg: providerModel{UseActiveGateway: types.BoolValue(true)}, endpoint: "http://b", want: "http://b"},
	} {
		t.Run(name, func(t *testing.T) {
			newServer(t)
			write(t, filepath.Join(register(t, registered), "oidc_token.json"), `{"access_token": "x"}`)
			t.Setenv(envEndpoint, tc.endpoint)
			t.Setenv(envGateway, tc.gateway)
			if got := resolve(t, tc.cfg); got.Endpoint != tc.want {
				t.Errorf("%s, want %s", got.Endpoint, tc.want)
			}
		})
	}
}

// The same for credentials: an argument, the variables, and what is registered for the gateway.
func TestChoiceOfTheCredentials(t *testing.T) {
	newServer(t)
	folder := register(t, registered)
	stored := client.StoredLogin{Path: filepath.Join(folder, "oidc_token.json"), Gateway: "prod"}
	prod, secure := types.StringValue("prod"), types.StringValue("https://a")
	program := func(issuer, secret string) types.Object {
		value := func(text string) types.String {
			if text == "" {
				return types.StringNull()
			}
			return types.StringValue(text)
		}
		return types.ObjectValueMust(
			map[string]attr.Type{"issuer": types.StringType, "client_id": types.StringType, "client_secret": types.StringType, "audience": types.StringType, "scopes": types.ListType{ElemType: types.StringType}},
			map[string]attr.Value{"issuer": value(issuer), "client_id": types.StringNull(), "client_secret": value(secret), "audience": types.StringNull(), "scopes": types.ListNull(types.StringType)},
		)
	}
	for name, tc := range map[string]struct {
		cfg  providerModel
		env  map[string]string
		want client.Credentials
	}{
		"none":                    {cfg: providerModel{Endpoint: secure}},
		"token":                   {cfg: providerModel{Endpoint: secure, Token: types.StringValue("t")}, env: map[string]string{envTokenFile: "f"}, want: client.Token("t")},
		"token file":              {cfg: providerModel{Endpoint: secure, TokenFile: types.StringValue("f")}, env: map[string]string{envToken: "t"}, want: client.TokenFile("f")},
		"token variable":          {cfg: providerModel{Gateway: prod}, env: map[string]string{envToken: "t\n"}, want: client.Token("t")},
		"token file variable":     {cfg: providerModel{Gateway: prod}, env: map[string]string{envTokenFile: "f"}, want: client.TokenFile("f")},
		"login":                   {cfg: providerModel{Gateway: prod}, want: stored},
		"no login for an URL":     {cfg: providerModel{Endpoint: types.StringValue("https://registered")}},
		"program":                 {cfg: providerModel{Endpoint: secure, OIDC: program("https://i", "")}, env: map[string]string{envClientSecret: "s", envToken: "t"}, want: client.OIDC{Issuer: "https://i", ClientSecret: "s"}},
		"program of the gateway":  {cfg: providerModel{Gateway: prod, OIDC: program("", "s")}, want: client.OIDC{Issuer: "https://issuer", ClientID: "cli", ClientSecret: "s", Audience: "aud", Scopes: []string{"a", "b"}}},
		"the secret is no reason": {cfg: providerModel{Gateway: prod}, env: map[string]string{envClientSecret: "s"}, want: stored},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range tc.env {
				t.Setenv(variable, value)
			}
			if got := resolve(t, tc.cfg).Credentials; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%#v, want %#v", got, tc.want)
			}
		})
	}
}

// What is registered about TLS is used where the configuration says nothing, and not at all in plaintext.
func TestTLSOfARegistration(t *testing.T) {
	newServer(t)
	folder := register(t, registered)
	path := func(file string) string { return filepath.Join(folder, "mtls", file) }
	for _, file := range []string{"ca.crt", "tls.crt", "tls.key"} {
		write(t, path(file), "PEM")
	}
	tls := func(set map[string]attr.Value) types.Object {
		attributeTypes, values := map[string]attr.Type{}, map[string]attr.Value{}
		for _, name := range []string{"ca_cert_file", "ca_cert_pem", "client_cert_file", "client_cert_pem", "client_key_file", "client_key_pem", "server_name"} {
			attributeTypes[name], values[name] = types.StringType, types.StringNull()
		}
		attributeTypes["insecure_skip_verify"], values["insecure_skip_verify"] = types.BoolType, types.BoolNull()
		for name, value := range set {
			values[name] = value
		}
		return types.ObjectValueMust(attributeTypes, values)
	}
	everything := client.TLS{CACertFile: path("ca.crt"), ClientCertFile: path("tls.crt"), ClientKeyFile: path("tls.key")}
	skipped, ownCA, ownKey := everything, everything, everything
	skipped.InsecureSkipVerify, skipped.ServerName = true, "x"
	ownCA.CACertFile, ownCA.CACertPEM = "", "PEM"
	ownKey.ClientCertFile, ownKey.ClientKeyFile = "c", "k"
	for name, tc := range map[string]struct {
		tls      types.Object
		insecure string
		want     client.TLS
	}{
		"registered":      {types.Object{}, "", everything},
		"skipped":         {tls(map[string]attr.Value{"insecure_skip_verify": types.BoolValue(true), "server_name": types.StringValue("x")}), "false", skipped},
		"verified anyway": {tls(map[string]attr.Value{"insecure_skip_verify": types.BoolValue(false)}), "true", everything},
		"own authority":   {tls(map[string]attr.Value{"ca_cert_pem": types.StringValue("PEM")}), "", ownCA},
		"own certificate": {tls(map[string]attr.Value{"client_cert_file": types.StringValue("c"), "client_key_file": types.StringValue("k")}), "", ownKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envInsecure, tc.insecure)
			if got := resolve(t, providerModel{Gateway: types.StringValue("prod"), TLS: tc.tls}).TLS; got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
	register(t, `{"gateway_endpoint": "http://127.0.0.1"}`)
	t.Setenv(envInsecure, "true")
	if got := resolve(t, providerModel{Gateway: types.StringValue("prod")}).TLS; got != (client.TLS{}) {
		t.Errorf("%+v", got)
	}
}
