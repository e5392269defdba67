package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func lookup(variable string) (string, bool) { return os.LookupEnv(variable) }

const canary = "canary-7d1e"

// tls is a value of the attribute tls.
func (s *server) tls(v values) tftypes.Value {
	return full(object(s.t, s.providerType.AttributeTypes["tls"]), v)
}

// oidc is a value of the attribute oidc.
func (s *server) oidc(v values) tftypes.Value {
	return full(object(s.t, s.providerType.AttributeTypes["oidc"]), v)
}

// register writes the registration of the gateway prod, which is the active one, and has it found in HOME.
func register(t *testing.T, metadata string) (folder string) {
	t.Helper()
	home := t.TempDir()
	for variable, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": "", "APPDATA": "", "OPENSHELL_SYSTEM_GATEWAY_DIR": home} {
		t.Setenv(variable, value)
	}
	root := filepath.Join(home, ".config", "openshell")
	folder = filepath.Join(root, "gateways", "prod")
	write(t, filepath.Join(root, "active_gateway"), "prod")
	write(t, filepath.Join(folder, "metadata.json"), metadata)
	return folder
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func privateKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// fileWith holds a content until the test ends.
func fileWith(t *testing.T, content string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "file"), content)
}

// Whatever cannot work is found when configuring, on its attribute, and no secret is shown.
func TestConfigureRefuses(t *testing.T) {
	const secure = "https://gateway.example.com:17670"
	key := privateKey(t)
	for name, tc := range map[string]struct {
		config    func(s *server) values
		env       map[string]string
		attribute string
		says      string
	}{
		"no endpoint":           {attribute: "endpoint", says: envEndpoint},
		"empty endpoint":        {config: func(*server) values { return values{"endpoint": str("")} }, attribute: "endpoint"},
		"bad endpoint":          {config: func(*server) values { return values{"endpoint": str("gateway:17670")} }, attribute: "endpoint", says: "https://"},
		"bad endpoint variable": {env: map[string]string{envEndpoint: "gateway:17670"}, attribute: "endpoint", says: envEndpoint},
		"password in endpoint":  {config: func(*server) values { return values{"endpoint": str("https://a:" + canary + "@b")} }, attribute: "endpoint"},
		"empty token":           {config: func(*server) values { return values{"endpoint": str(secure), "token": str("")} }, attribute: "token"},
		"token with line end":   {config: func(*server) values { return values{"endpoint": str(secure), "token": str(canary + "\n")} }, attribute: "token", says: "trimspace"},
		"token in plaintext": {config: func(*server) values {
			return values{"endpoint": str("http://gateway.example.com"), "token": str(canary)}
		}, attribute: "token"},
		"token variable, no TLS": {config: func(*server) values { return values{"endpoint": str("http://gateway.example.com")} }, env: map[string]string{envToken: canary}, attribute: "token", says: envToken},
		"empty token file":       {config: func(*server) values { return values{"endpoint": str(secure), "token_file": str("")} }, attribute: "token_file"},
		"token file missing":     {config: func(*server) values { return values{"endpoint": str(secure), "token_file": str("/nonexistent/token")} }, attribute: "token_file", says: "/nonexistent/token"},
		"token file no token": {config: func(s *server) values {
			return values{"endpoint": str(secure), "token_file": str(fileWith(s.t, "a "+canary))}
		}, attribute: "token_file"},
		"token file variable": {config: func(*server) values { return values{"endpoint": str(secure)} }, env: map[string]string{envTokenFile: "/nonexistent/token"}, attribute: "token_file", says: envTokenFile},
		"two variables":       {config: func(*server) values { return values{"endpoint": str(secure)} }, env: map[string]string{envTokenFile: "a", envToken: canary}, attribute: "token_file", says: envToken},
		"token and file": {config: func(*server) values {
			return values{"endpoint": str(secure), "token": str(canary), "token_file": str("a")}
		}, attribute: "token_file", says: "excludes token"},
		"token and oidc": {config: func(s *server) values {
			return values{"endpoint": str(secure), "token": str(canary), "oidc": s.oidc(values{"issuer": str(secure)})}
		}, attribute: "oidc", says: "excludes token"},
		"two gateways":     {config: func(*server) values { return values{"endpoint": str(secure), "gateway": str("prod")} }, attribute: "gateway", says: "excludes endpoint"},
		"named and active": {config: func(*server) values { return values{"gateway": str("prod"), "use_active_gateway": boolean(true)} }, attribute: "use_active_gateway", says: "excludes gateway"},
		"gateway unknown":  {config: func(*server) values { return values{"gateway": str("nope")} }, attribute: "gateway", says: "registered are prod"},
		"gateway's path":   {config: func(*server) values { return values{"gateway": str("../prod")} }, attribute: "gateway", says: "slashes"},
		"gateway variable": {env: map[string]string{envGateway: "nope"}, attribute: "gateway", says: envGateway},
		"not asked for":    {config: func(*server) values { return values{"use_active_gateway": boolean(false)} }, attribute: "endpoint", says: "use_active_gateway"},
		"not logged in":    {config: func(*server) values { return values{"gateway": str("prod")} }, attribute: "gateway", says: "openshell gateway login prod"},
		"active, no login": {config: func(*server) values { return values{"use_active_gateway": boolean(true)} }, attribute: "use_active_gateway", says: "openshell gateway login prod"},
		"no client secret": {config: func(s *server) values { return values{"gateway": str("prod"), "oidc": s.oidc(nil)} }, attribute: "oidc.client_secret", says: "client_secret"},
		"no issuer": {config: func(s *server) values {
			return values{"endpoint": str(secure), "oidc": s.oidc(values{"client_id": str("a"), "client_secret": str(canary)})}
		}, attribute: "oidc.issuer"},
		"issuer in plaintext": {config: func(s *server) values {
			return values{"endpoint": str(secure), "oidc": s.oidc(values{"issuer": str("http://issuer.example.com"), "client_id": str("a"), "client_secret": str(canary)})}
		}, attribute: "oidc.issuer"},
		"empty scope": {config: func(s *server) values {
			return values{"endpoint": str(secure), "oidc": s.oidc(values{"scopes": textsOf("")})}
		}, attribute: `oidc.scopes.ElementKeyInt(0)`},
		"null scope": {config: func(s *server) values {
			return values{"endpoint": str(secure), "oidc": s.oidc(values{"scopes": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{tftypes.NewValue(tftypes.String, nil)})})}
		}, attribute: "oidc.scopes", says: "null"},
		"oidc in plaintext": {config: func(s *server) values {
			return values{"endpoint": str("http://gateway.example.com"), "oidc": s.oidc(values{"issuer": str(secure), "client_id": str("a"), "client_secret": str(canary)})}
		}, attribute: "oidc"},
		"header in plaintext": {config: func(*server) values {
			return values{"endpoint": str("http://gateway.example.com"), "headers": textMap(map[string]string{"x-key": canary})}
		}, attribute: "headers"},
		"bad header": {config: func(*server) values {
			return values{"endpoint": str(secure), "headers": textMap(map[string]string{"x-key": canary + "\n"})}
		}, attribute: "headers", says: "x-key"},
		"null header": {config: func(*server) values {
			return values{"endpoint": str(secure), "headers": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"x-key": tftypes.NewValue(tftypes.String, nil)})}
		}, attribute: "headers", says: "null"},
		"bad workspace":          {config: func(*server) values { return values{"endpoint": str(secure), "workspace": str("Team_A")} }, attribute: "workspace"},
		"bad workspace variable": {config: func(*server) values { return values{"endpoint": str(secure)} }, env: map[string]string{envWorkspace: "Team_A"}, attribute: "workspace", says: envWorkspace},
		"bad timeout":            {config: func(*server) values { return values{"endpoint": str(secure), "request_timeout": str("30")} }, attribute: "request_timeout"},
		"no time":                {config: func(*server) values { return values{"endpoint": str(secure), "request_timeout": str("0s")} }, attribute: "request_timeout"},
		"bad mismatch":           {config: func(*server) values { return values{"endpoint": str(secure), "on_identity_mismatch": str("ignore")} }, attribute: "on_identity_mismatch"},
		"tls in plaintext": {config: func(s *server) values {
			return values{"endpoint": str("http://127.0.0.1"), "tls": s.tls(values{"insecure_skip_verify": boolean(true)})}
		}, attribute: "tls"},
		"missing CA": {config: func(s *server) values {
			return values{"endpoint": str(secure), "tls": s.tls(values{"ca_cert_file": str("/nonexistent/ca.pem")})}
		}, attribute: "tls.ca_cert_file", says: "/nonexistent/ca.pem"},
		"two CAs": {config: func(s *server) values {
			return values{"endpoint": str(secure), "tls": s.tls(values{"ca_cert_file": str("a"), "ca_cert_pem": str("b")})}
		}, attribute: "tls.ca_cert_file", says: "not both"},
		"key without certificate": {config: func(s *server) values {
			return values{"endpoint": str(secure), "tls": s.tls(values{"client_key_pem": str(key)})}
		}, attribute: "tls.client_key_pem"},
		"key that is none": {config: func(s *server) values {
			return values{"endpoint": str(secure), "tls": s.tls(values{"client_key_pem": str(canary)})}
		}, attribute: "tls.client_key_pem"},
		"empty PEM": {config: func(s *server) values {
			return values{"endpoint": str(secure), "tls": s.tls(values{"ca_cert_pem": str("")})}
		}, attribute: "tls.ca_cert_pem"},
		"bad insecure variable": {config: func(*server) values { return values{"endpoint": str(secure)} }, env: map[string]string{envInsecure: "maybe"}, attribute: "tls.insecure_skip_verify", says: envInsecure},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			register(t, `{"gateway_endpoint": "https://gateway.example.com", "auth_mode": "oidc", "oidc_issuer": "https://issuer.example.com", "oidc_client_id": "cli"}`)
			for variable, value := range tc.env {
				t.Setenv(variable, value)
			}
			var config values
			if tc.config != nil {
				config = tc.config(s)
			}
			diags := s.configure(t.Context(), config)
			if !diags.errors().at(tc.attribute) || !strings.Contains(diags.String(), "What to do: ") && !strings.Contains(diags.String(), "must") || !strings.Contains(diags.String(), tc.says) {
				t.Errorf("want an error on %s that says %q, got\n%s", tc.attribute, tc.says, diags)
			}
			if text := diags.String(); strings.Contains(text, canary) || strings.Contains(text, "PRIVATE KEY-----\nM") {
				t.Errorf("a secret in\n%s", text)
			}
		})
	}
}

// What cannot work in plaintext may come from a variable about TLS in general.
func TestConfigureInsecureVariable(t *testing.T) {
	for _, endpoint := range []string{"http://127.0.0.1:17670", "https://127.0.0.1:17670"} {
		s := newServer(t)
		t.Setenv(envInsecure, "true")
		if diags := s.configure(t.Context(), values{"endpoint": str(endpoint)}); len(diags) > 0 {
			t.Errorf("%s: %s", endpoint, diags)
		}
	}
}

// A value that is not known yet is not replaced by a variable or a default, and nothing is sent.
func TestConfigureUnknown(t *testing.T) {
	for name, config := range map[string]func(s *server) values{
		"endpoint": func(*server) values { return values{"endpoint": unknownText} },
		"gateway":  func(*server) values { return values{"gateway": unknownText} },
		"use_active_gateway": func(*server) values {
			return values{"use_active_gateway": tftypes.NewValue(tftypes.Bool, tftypes.UnknownValue)}
		},
		"workspace":  func(*server) values { return values{"workspace": unknownText} },
		"token_file": func(*server) values { return values{"token_file": unknownText} },
		"oidc": func(s *server) values {
			return values{"oidc": tftypes.NewValue(s.providerType.AttributeTypes["oidc"], tftypes.UnknownValue)}
		},
		"oidc.client_secret": func(s *server) values { return values{"oidc": s.oidc(values{"client_secret": unknownText})} },
		"oidc.scopes": func(s *server) values {
			return values{"oidc": s.oidc(values{"scopes": tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{unknownText})})}
		},
		"headers": func(*server) values {
			return values{"headers": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"x-key": unknownText})}
		},
		"token":                func(*server) values { return values{"token": unknownText} },
		"request_timeout":      func(*server) values { return values{"request_timeout": unknownText} },
		"on_identity_mismatch": func(*server) values { return values{"on_identity_mismatch": unknownText} },
		"tls": func(s *server) values {
			return values{"tls": tftypes.NewValue(s.providerType.AttributeTypes["tls"], tftypes.UnknownValue)}
		},
		"tls.ca_cert_pem": func(s *server) values {
			return values{"endpoint": str("https://127.0.0.1:1"), "tls": s.tls(values{"ca_cert_pem": unknownText})}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			t.Setenv(envEndpoint, "http://127.0.0.1:1") // nobody is there: a call would take seconds and fail otherwise
			t.Setenv(envWorkspace, "variable")
			t.Setenv(envToken, canary)
			if diags := s.configure(t.Context(), config(s)); len(diags) > 0 {
				t.Fatal(diags)
			}
			_, planned := s.plan(t.Context(), nil, values{"name": str("web")})
			if known := planned["workspace"].IsKnown(); known == (name == "workspace") {
				t.Errorf("planned workspace %v", planned["workspace"])
			}
			_, diags := s.refresh(t.Context(), values{"id": str("0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001"), "name": str("web"), "workspace": str("default")})
			if errors := diags.errors(); len(errors) != 1 || !strings.Contains(errors.String(), "provider's "+name+" will be known only after an apply") {
				t.Errorf("refresh: %s", diags)
			}
		})
	}
}
