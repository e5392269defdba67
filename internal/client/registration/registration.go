// Package registration reads what the openshell command line keeps on disk about gateways: which are registered, how each is
// reached, and the token of a login. It never writes. Files, keys and their meaning are from upstream-contract 5.
package registration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// AuthMode is how a gateway is authenticated to.
type AuthMode string

// The modes that the command line knows.
const (
	MTLS          AuthMode = "mtls"
	Plaintext     AuthMode = "plaintext"
	OIDC          AuthMode = "oidc"
	CloudflareJWT AuthMode = "cloudflare_jwt"
	None          AuthMode = "none"
)

// Error is a registration that is not there or cannot be used. It never repeats a secret.
type Error struct {
	Problem string
	// Remedy is what to do.
	Remedy string
}

func (e *Error) Error() string { return e.Problem }

// Registration is one gateway as the command line knows it.
type Registration struct {
	Name string
	// File is the path it was read from.
	File string
	// Endpoint is the gateway's URL.
	Endpoint string
	Mode     AuthMode
	// CACert, ClientCert and ClientKey are paths of PEM files; empty for those that are not there.
	CACert, ClientCert, ClientKey string
	// TokenFile is the path of the stored login, which need not be there; see [ReadLogin].
	TokenFile string
	// Issuer, ClientID, Audience and Scopes are those of the logins, where they are known.
	Issuer, ClientID, Audience string
	Scopes                     []string
}

// Store is where registrations are looked for.
type Store struct {
	// user is the caller's own folder; it wins over system, which the machine's administrator fills.
	user, system string
}

// Locate finds the folders from the environment.
func Locate(getenv func(string) string) (Store, error) {
	system := "/etc/openshell"
	if dir := getenv("OPENSHELL_SYSTEM_GATEWAY_DIR"); filepath.IsAbs(dir) {
		system = dir
	}
	if dir := getenv("XDG_CONFIG_HOME"); dir != "" {
		return Store{user: filepath.Join(dir, "openshell"), system: system}, nil
	}
	if dir := getenv("APPDATA"); runtime.GOOS == "windows" && dir != "" {
		return Store{user: filepath.Join(dir, "openshell"), system: system}, nil
	}
	home := getenv("HOME")
	if home == "" {
		return Store{}, &Error{
			Problem: "the folder with the command line's registrations cannot be found: neither XDG_CONFIG_HOME nor HOME is set",
			Remedy:  "set one of them, or give the gateway's URL as endpoint",
		}
	}
	return Store{user: filepath.Join(home, ".config", "openshell"), system: system}, nil
}

// Active is the name of the gateway that is selected in the command line.
func (s Store) Active() (string, error) {
	content, path, err := s.read("active_gateway")
	name := strings.TrimSpace(string(content))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", &Error{Problem: "the command line's active gateway cannot be read: " + err.Error(), Remedy: "make the file readable, or name the gateway"}
	case err != nil, name == "":
		return "", &Error{Problem: "the command line has no active gateway (" + filepath.Join(s.user, "active_gateway") + ")", Remedy: "select one with \"openshell gateway select\", or name the gateway"}
	case !isName(name):
		return "", &Error{Problem: "the file " + path + " does not hold the name of a gateway", Remedy: "select a gateway with \"openshell gateway select\", or name the gateway"}
	}
	return name, nil
}

// Load reads the registration of a gateway.
func (s Store) Load(name string) (*Registration, error) {
	if !isName(name) {
		return nil, &Error{Problem: "the name of a gateway is a single word without slashes", Remedy: "give it as in \"openshell gateway add --name\""}
	}
	content, path, err := s.read(filepath.Join("gateways", name, "metadata.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, s.unknown(name)
	}
	if err != nil {
		return nil, &Error{Problem: fmt.Sprintf("the registration of gateway %q cannot be read: %v", name, err), Remedy: "make the file readable"}
	}
	r := &Registration{Name: name, File: path}
	if err := r.parse(content); err != nil {
		return nil, err
	}
	own := filepath.Join(s.user, "gateways", name)
	r.TokenFile = filepath.Join(own, "oidc_token.json")
	for file, path := range map[string]*string{"ca.crt": &r.CACert, "tls.crt": &r.ClientCert, "tls.key": &r.ClientKey} {
		if full := filepath.Join(own, "mtls", file); exists(full) {
			*path = full
		}
	}
	if r.Mode == MTLS && (r.CACert == "" || r.ClientCert == "" || r.ClientKey == "") {
		return nil, &Error{
			Problem: fmt.Sprintf("gateway %q is registered with auth_mode mtls, but %s does not hold all of ca.crt, tls.crt and tls.key", name, filepath.Join(own, "mtls")),
			Remedy:  "register the gateway again with \"openshell gateway add\", or give endpoint and tls",
		}
	}
	return r, nil
}

// parse takes over the metadata and checks that its parts fit each other.
func (r *Registration) parse(content []byte) error {
	fault := func(format string, a ...any) error {
		return &Error{Problem: fmt.Sprintf("the registration of gateway %q, %s, cannot be used: ", r.Name, r.File) + fmt.Sprintf(format, a...), Remedy: "register the gateway again with \"openshell gateway add\", or give endpoint and credentials here"}
	}
	var m struct {
		Endpoint string   `json:"gateway_endpoint"`
		Mode     AuthMode `json:"auth_mode"`
		Issuer   string   `json:"oidc_issuer"`
		ClientID string   `json:"oidc_client_id"`
		Audience string   `json:"oidc_audience"`
		Scopes   string   `json:"oidc_scopes"`
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return fault("it is no JSON, or its keys have other types")
	}
	plaintext := strings.HasPrefix(m.Endpoint, "http://")
	switch {
	case m.Endpoint == "":
		return fault("gateway_endpoint is missing")
	case m.Mode == "" && plaintext:
		m.Mode = Plaintext
	case m.Mode == "":
		m.Mode = MTLS
	}
	switch m.Mode {
	case CloudflareJWT:
		return &Error{
			Problem: fmt.Sprintf("gateway %q is registered with auth_mode cloudflare_jwt: it is behind Cloudflare Access, which wants a browser login and a tunnel that this provider does not have", r.Name),
			Remedy:  "have the gateway's operator offer an endpoint with OIDC or client certificates; or, if the proxy lets gRPC through with a service token, give endpoint, and the service token in headers",
		}
	case Plaintext, MTLS, OIDC, None:
	default:
		return fault("auth_mode is none of mtls, plaintext, oidc, none")
	}
	if m.Mode == Plaintext && !plaintext || m.Mode == MTLS && plaintext {
		return fault("auth_mode %s does not fit gateway_endpoint %q", m.Mode, m.Endpoint)
	}
	r.Endpoint, r.Mode = m.Endpoint, m.Mode
	r.Issuer, r.ClientID, r.Audience, r.Scopes = m.Issuer, m.ClientID, m.Audience, strings.Fields(m.Scopes)
	return nil
}

// unknown is the error for a name that is not registered, with the ones that are.
func (s Store) unknown(name string) error {
	var names []string
	for _, root := range []string{s.user, s.system} {
		found, _ := filepath.Glob(filepath.Join(root, "gateways", "*", "metadata.json")) // the pattern is good
		for _, path := range found {
			names = append(names, filepath.Base(filepath.Dir(path)))
		}
	}
	slices.Sort(names)
	known := "none is"
	if names = slices.Compact(names); len(names) > 0 {
		known = "registered are " + strings.Join(names, ", ")
	}
	return &Error{
		Problem: fmt.Sprintf("no gateway %q is registered in the command line (%s); %s", name, filepath.Join(s.user, "gateways"), known),
		Remedy:  "register it with \"openshell gateway add\", correct the name, or give the gateway's URL as endpoint",
	}
}

// read gives a file of the user, or else of the system. Only a missing file makes it look further.
func (s Store) read(name string) (content []byte, path string, err error) {
	for _, root := range []string{s.user, s.system} {
		path = filepath.Join(root, name)
		if content, err = os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return content, path, err
}

// isName tells whether a name is a single path component, so that it cannot lead out of the folder.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00") && filepath.IsLocal(name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
