package registration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const canary = "canary-51c0"

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// folders are a user's and a system's, found through the environment.
func folders(t *testing.T) (s Store, user, system string) {
	t.Helper()
	home := t.TempDir()
	user, system = filepath.Join(home, ".config", "openshell"), t.TempDir()
	s, err := Locate(func(name string) string {
		return map[string]string{"HOME": home, "OPENSHELL_SYSTEM_GATEWAY_DIR": system}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, user, system
}

func metadata(t *testing.T, root, name, content string) {
	t.Helper()
	write(t, filepath.Join(root, "gateways", name, "metadata.json"), content)
}

func TestLocate(t *testing.T) {
	for name, tc := range map[string]struct {
		env  map[string]string
		want Store
	}{
		"home":            {map[string]string{"HOME": "/home/ann"}, Store{"/home/ann/.config/openshell", "/etc/openshell"}},
		"XDG":             {map[string]string{"HOME": "/home/ann", "XDG_CONFIG_HOME": "/cfg"}, Store{"/cfg/openshell", "/etc/openshell"}},
		"system":          {map[string]string{"HOME": "/h", "OPENSHELL_SYSTEM_GATEWAY_DIR": "/opt/gateways"}, Store{"/h/.config/openshell", "/opt/gateways"}},
		"relative system": {map[string]string{"HOME": "/h", "OPENSHELL_SYSTEM_GATEWAY_DIR": "gateways"}, Store{"/h/.config/openshell", "/etc/openshell"}},
	} {
		got, err := Locate(func(variable string) string { return tc.env[variable] })
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Locate(func(string) string { return "" }); err == nil {
		t.Error("found without a home")
	}
}

func TestLoad(t *testing.T) {
	s, user, system := folders(t)
	for name, tc := range map[string]struct {
		metadata string
		files    []string
		want     Registration
	}{
		"plain":     {`{"gateway_endpoint": "http://127.0.0.1:17670", "is_remote": false, "gateway_port": 0, "name": "x", "unknown": [1]}`, nil, Registration{Endpoint: "http://127.0.0.1:17670", Mode: Plaintext}},
		"mtls":      {`{"gateway_endpoint": "https://a:1"}`, []string{"ca.crt", "tls.crt", "tls.key"}, Registration{Endpoint: "https://a:1", Mode: MTLS}},
		"none":      {`{"gateway_endpoint": "https://a:1", "auth_mode": "none"}`, nil, Registration{Endpoint: "https://a:1", Mode: None}},
		"dots.in.a": {`{"gateway_endpoint": "https://a:1", "auth_mode": "oidc"}`, []string{"ca.crt"}, Registration{Endpoint: "https://a:1", Mode: OIDC}},
		"oidc": {
			`{"gateway_endpoint": "https://a:1", "auth_mode": "oidc", "oidc_issuer": "https://i", "oidc_client_id": "c", "oidc_audience": "d", "oidc_scopes": "e f"}`,
			[]string{"ca.crt", "tls.crt", "tls.key"},
			Registration{Endpoint: "https://a:1", Mode: OIDC, Issuer: "https://i", ClientID: "c", Audience: "d", Scopes: []string{"e", "f"}},
		},
	} {
		dir := filepath.Join(user, "gateways", name)
		metadata(t, user, name, tc.metadata)
		tc.want.Name, tc.want.File, tc.want.TokenFile = name, filepath.Join(dir, "metadata.json"), filepath.Join(dir, "oidc_token.json")
		for _, file := range tc.files {
			path := filepath.Join(dir, "mtls", file)
			write(t, path, "PEM")
			*map[string]*string{"ca.crt": &tc.want.CACert, "tls.crt": &tc.want.ClientCert, "tls.key": &tc.want.ClientKey}[file] = path
		}
		got, err := s.Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.Scopes) == 0 {
			got.Scopes = nil
		}
		if !reflect.DeepEqual(*got, tc.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, *got, tc.want)
		}
	}

	// The user's registration wins; the system's is found without one; its secrets would not be.
	metadata(t, system, "plain", `{"gateway_endpoint": "http://system"}`)
	metadata(t, system, "shared", `{"gateway_endpoint": "https://system", "auth_mode": "oidc"}`)
	write(t, filepath.Join(system, "gateways", "shared", "mtls", "ca.crt"), "PEM")
	if got, err := s.Load("plain"); err != nil || got.Endpoint != "http://127.0.0.1:17670" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err := s.Load("shared")
	if err != nil || got.Endpoint != "https://system" || got.CACert != "" || !strings.HasPrefix(got.TokenFile, user) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever cannot be used is an error that says what to do; nothing leads out of the folder, and none shows a file's content.
func TestLoadRefuses(t *testing.T) {
	s, user, system := folders(t)
	metadata(t, user, "damaged", `{"gateway_endpoint": "`+canary)
	metadata(t, system, "damaged", `{"gateway_endpoint": "http://system"}`)
	metadata(t, user, "no-endpoint", `{"name": "no-endpoint"}`)
	metadata(t, user, "other-mode", `{"gateway_endpoint": "https://a", "auth_mode": "`+canary+`"}`)
	metadata(t, user, "edge", `{"gateway_endpoint": "https://a", "auth_mode": "cloudflare_jwt"}`)
	metadata(t, user, "no-certificates", `{"gateway_endpoint": "https://a"}`)
	metadata(t, user, "plain-mtls", `{"gateway_endpoint": "http://a", "auth_mode": "mtls"}`)
	metadata(t, user, "secure-plaintext", `{"gateway_endpoint": "https://a", "auth_mode": "plaintext"}`)
	write(t, filepath.Join(user, "metadata.json"), `{"gateway_endpoint": "http://outside"}`)
	for name, says := range map[string]string{
		"missing": "registered are damaged, edge,", "damaged": "no JSON", "no-endpoint": "gateway_endpoint is missing",
		"other-mode": "none of mtls", "edge": "cloudflare_jwt", "no-certificates": "tls.key", "plain-mtls": "does not fit",
		"secure-plaintext": "does not fit", "..": "single word", ".": "single word", "": "single word", "a/b": "single word", "../..": "single word", `a\b`: "single word",
	} {
		got, err := s.Load(name)
		var refusal *Error
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Problem, says) || refusal.Remedy == "" || strings.Contains(refusal.Problem+refusal.Remedy, canary) {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
}

func TestActive(t *testing.T) {
	s, user, system := folders(t)
	if _, err := s.Active(); err == nil {
		t.Error("active without a file")
	}
	write(t, filepath.Join(system, "active_gateway"), "shared\n")
	if got, err := s.Active(); got != "shared" || err != nil {
		t.Error(got, err)
	}
	for content, want := range map[string]string{" own \n": "own", "../x": "", "\n": ""} {
		write(t, filepath.Join(user, "active_gateway"), content)
		if got, err := s.Active(); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
}

func TestReadLogin(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oidc_token.json")
	unix := func(d time.Duration) string { return fmt.Sprintf(`"expires_at": %d`, time.Now().Add(d).Unix()) }
	for content, says := range map[string]string{
		`{"access_token": "` + canary + `", ` + unix(time.Hour) + `}`:                                             "",
		`{"access_token": "` + canary + `"}`:                                                                      "",
		`{"access_token": "` + canary + `", "expires_at": null}`:                                                  "",
		`{"access_token": "` + canary + `", "expiry": "` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`:  "",
		`{"access_token": "` + canary + `", "expiry": "0001-01-01T00:00:00Z"}`:                                    "",
		`{"access_token": "` + canary + `", ` + unix(20*time.Second) + `}`:                                        "expired",
		`{"access_token": "` + canary + `", ` + unix(-time.Hour) + `}`:                                            "expired",
		`{"access_token": "` + canary + `", "expiry": "` + time.Now().Add(-time.Hour).Format(time.RFC3339) + `"}`: "expired",
		`{"access_token": "", "refresh_token": "` + canary + `"}`:                                                 "no access_token",
		`{"access_token": ["` + canary + `"]}`:                                                                    "damaged",
		canary:                                                                                                    "damaged",
	} {
		write(t, path, content)
		token, err := ReadLogin(path, "prod")
		if says == "" {
			if token != canary || err != nil {
				t.Errorf("%s: %v", content, err)
			}
			continue
		}
		var refusal *Error
		if !errors.As(err, &refusal) || token != "" || !strings.Contains(refusal.Problem, says) || !strings.Contains(refusal.Remedy, "openshell gateway login prod") || strings.Contains(refusal.Problem, canary) {
			t.Errorf("%s: %q, %v", content, token, err)
		}
	}
	if _, err := ReadLogin(path+".missing", "prod"); err == nil || !strings.Contains(err.Error(), "no login") {
		t.Error(err)
	}
}
