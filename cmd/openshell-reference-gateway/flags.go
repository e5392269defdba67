package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// flags have upstream's names, and so have the variables.
type flags struct {
	Config      string   `help:"Configuration file (TOML); its keys are the names of the flags." env:"OPENSHELL_GATEWAY_CONFIG" placeholder:"FILE"`
	BindAddress string   `help:"IP address to listen on." env:"OPENSHELL_BIND_ADDRESS" default:"127.0.0.1"`
	Port        uint16   `help:"Port to listen on; 0 takes any that is free." env:"OPENSHELL_SERVER_PORT" default:"17670"`
	ServerSANs  []string `name:"server-san" help:"Names of the gateway. The first wildcard among them, such as *.apps.example.com, gives the domain of the URLs of services." env:"OPENSHELL_SERVER_SAN" placeholder:"NAME"`
	HealthPort  uint16   `help:"Port of /healthz and /readyz, over HTTP; 0 serves neither." env:"OPENSHELL_HEALTH_PORT" default:"0"`
	MetricsPort uint16   `help:"Port of /metrics for Prometheus, over HTTP; 0 does not serve it." env:"OPENSHELL_METRICS_PORT" default:"0"`
	LogLevel    logLevel `help:"Least level of log lines: debug, info, warn or error." env:"OPENSHELL_LOG_LEVEL" default:"info"`
	DBURL       string   `name:"db-url" help:"Database: sqlite:PATH, sqlite::memory: for one that ends with the process, or postgres://… for several gateways." env:"OPENSHELL_DB_URL" default:"${db_url}"`

	TLSCert         string `name:"tls-cert" help:"Certificate of the gateway with its chain (PEM)." env:"OPENSHELL_TLS_CERT" placeholder:"FILE" group:"Access"`
	TLSKey          string `name:"tls-key" help:"Its key (PEM)." env:"OPENSHELL_TLS_KEY" placeholder:"FILE" group:"Access"`
	TLSClientCA     string `name:"tls-client-ca" help:"Authorities of client certificates (PEM)." env:"OPENSHELL_TLS_CLIENT_CA" placeholder:"FILE" group:"Access"`
	EnableMTLSAuth  *bool  `name:"enable-mtls-auth" help:"Take the client certificate for the caller's identity; on by default with --tls-client-ca and no --oidc-issuer." env:"OPENSHELL_ENABLE_MTLS_AUTH" negatable:"" group:"Access"`
	DisableTLS      bool   `name:"disable-tls" help:"Serve plaintext: on loopback addresses to whoever connects, with --oidc-issuer on any." env:"OPENSHELL_DISABLE_TLS" group:"Access"`
	Unauthenticated bool   `name:"dangerously-allow-unauthenticated" help:"Let in everybody who can connect, from anywhere." group:"Access"`

	OIDCIssuer      string   `name:"oidc-issuer" help:"Take the bearer tokens of this OpenID Connect issuer." env:"OPENSHELL_OIDC_ISSUER" placeholder:"URL" group:"OIDC"`
	OIDCAudience    string   `name:"oidc-audience" help:"Audience (aud) that tokens must be for." env:"OPENSHELL_OIDC_AUDIENCE" default:"${oidc_audience}" group:"OIDC"`
	OIDCJWKSTTL     uint32   `name:"oidc-jwks-ttl" help:"How long the keys of the issuer are used, in seconds; in the last tenth of that they are fetched again." env:"OPENSHELL_OIDC_JWKS_TTL" default:"${oidc_jwks_ttl}" group:"OIDC"`
	OIDCJWKSOrigins []string `name:"oidc-jwks-allowed-origins" help:"Origins besides its own that the issuer may keep its keys at, such as https://keys.example.com." env:"OPENSHELL_OIDC_JWKS_ALLOWED_ORIGINS" placeholder:"URL" group:"OIDC"`
	OIDCRolesClaim  string   `name:"oidc-roles-claim" help:"Path of the roles in a token, names joined by dots." env:"OPENSHELL_OIDC_ROLES_CLAIM" default:"${oidc_roles_claim}" group:"OIDC"`
	OIDCAdminRole   string   `name:"oidc-admin-role" help:"Role of platform administrators; empty, like --oidc-user-role, lets every valid token do everything." env:"OPENSHELL_OIDC_ADMIN_ROLE" default:"${oidc_admin_role}" group:"OIDC"`
	OIDCUserRole    string   `name:"oidc-user-role" help:"Role of users, who may act in workspaces that they are members of." env:"OPENSHELL_OIDC_USER_ROLE" default:"${oidc_user_role}" group:"OIDC"`
	OIDCScopesClaim string   `name:"oidc-scopes-claim" help:"Path of the scopes in a token; empty does not ask for scopes." env:"OPENSHELL_OIDC_SCOPES_CLAIM" group:"OIDC"`

	RequirePrecondition bool `help:"Refuse deletes, stops and starts without a precondition." group:"Conditional calls"`
	WithoutConditional  bool `help:"Behave like a stock gateway: no conditional calls, health service or reflection." group:"Conditional calls"`

	Version kong.VersionFlag `help:"Print the version."`
}

// logLevel is a level whose error says which ones there are.
type logLevel struct{ slog.Level }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *logLevel) UnmarshalText(text []byte) error {
	if err := l.Level.UnmarshalText(text); err != nil {
		return fmt.Errorf("must be debug, info, warn or error, not %q", text)
	}
	return nil
}

// errHelped says that the help or the version was asked for, and shown.
var errHelped = errors.New("shown")

// parse reads flags, environment and configuration file, in this order of precedence.
func parse(args []string, stdout, stderr io.Writer) (flags, error) {
	f, app, err := parseWith(args, stdout, stderr)
	if err != nil || f.Config == "" {
		return f, err
	}
	path := f.Config
	file, err := readConfig(path, app)
	if err != nil {
		return f, err
	}
	f, _, err = parseWith(args, stdout, stderr, kong.Resolvers(file)) // once more, with what the file says
	if err != nil {                                                   // which is to blame, as flags and variables were good without it
		return f, fmt.Errorf("--config %s: %w", path, err)
	}
	return f, nil
}

func parseWith(args []string, stdout, stderr io.Writer, more ...kong.Option) (f flags, app *kong.Application, err error) {
	shown := false
	parser, err := kong.New(&f, append([]kong.Option{
		kong.Name("openshell-reference-gateway"),
		kong.Description("Serves the OpenShell API over a simulated compute driver, with conditional calls. " +
			"`openshell-reference-gateway audit` prints what was deleted, and by whom."),
		vars(),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { shown = true }),
	}, more...)...)
	if err != nil {
		return f, nil, err
	}
	_, err = parser.Parse(args)
	if shown {
		err = errHelped
	}
	return f, parser.Model, err
}

// vars are what the tags of flags refer to.
func vars() kong.Vars {
	return kong.Vars{
		"version": version, "db_url": defaultDBURL(),
		"oidc_audience": auth.DefaultAudience, "oidc_roles_claim": auth.DefaultRolesClaim,
		"oidc_admin_role": auth.DefaultAdminRole, "oidc_user_role": auth.DefaultUserRole,
		"oidc_jwks_ttl": strconv.Itoa(int(auth.DefaultJWKSTTL.Seconds())),
	}
}

// defaultDBURL is a file in the user's state directory.
func defaultDBURL() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return "sqlite:" + filepath.Join(state, "openshell-reference-gateway", "gateway.db")
}

// check refuses flags that do not go together.
func (f flags) check() error {
	for _, check := range []func() error{f.checkListeners, f.checkNames, f.checkAccess, f.checkOIDC, f.checkConditional} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (f flags) checkListeners() error {
	switch {
	case net.ParseIP(f.BindAddress) == nil:
		return fmt.Errorf("--bind-address: %q is no IP address", f.BindAddress)
	case f.DBURL == "":
		return errors.New("--db-url: names no database, and without a home directory there is none by default; name one, such as sqlite:gateway.db")
	case f.HealthPort != 0 && f.HealthPort == f.Port:
		return fmt.Errorf("--health-port: %d is the --port already", f.HealthPort)
	case f.MetricsPort != 0 && (f.MetricsPort == f.Port || f.MetricsPort == f.HealthPort):
		return fmt.Errorf("--metrics-port: %d is the --port or the --health-port already", f.MetricsPort)
	}
	return nil
}

var wildcard = regexp.MustCompile(`^\*(\.[A-Za-z0-9-]+)+$`)

func (f flags) checkNames() error {
	for _, name := range f.ServerSANs {
		if strings.HasPrefix(name, "*") && !wildcard.MatchString(name) {
			return fmt.Errorf("--server-san: %q is no wildcard such as *.apps.example.com", name)
		}
	}
	return nil
}

func (f flags) checkAccess() error {
	switch {
	case f.DisableTLS && (f.TLSCert != "" || f.TLSKey != "" || f.TLSClientCA != ""):
		return errors.New("--disable-tls: contradicts --tls-cert, --tls-key and --tls-client-ca")
	case f.DisableTLS && !f.Unauthenticated && f.OIDCIssuer == "" && !net.ParseIP(f.BindAddress).IsLoopback():
		return fmt.Errorf("--disable-tls: serves plaintext to whoever connects, so --bind-address must be a loopback address and not %s; "+
			"use TLS with client certificates, ask for tokens with --oidc-issuer, or add --dangerously-allow-unauthenticated", f.BindAddress)
	case !f.DisableTLS && (f.TLSCert == "" || f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key are required, or else --disable-tls for plaintext on a loopback address")
	case f.EnableMTLSAuth != nil && *f.EnableMTLSAuth && f.TLSClientCA == "":
		return errors.New("--enable-mtls-auth: needs --tls-client-ca")
	case !f.DisableTLS && !f.mtlsAuth() && f.OIDCIssuer == "" && !f.Unauthenticated:
		return errors.New("nobody could call this gateway: give --tls-client-ca for client certificates, --oidc-issuer for bearer tokens, or --dangerously-allow-unauthenticated")
	}
	return nil
}

func (f flags) checkOIDC() error {
	if f.OIDCIssuer == "" {
		return f.checkNoOIDC()
	}
	switch {
	case f.OIDCAudience == "":
		return errors.New("--oidc-audience: must not be empty, or tokens for other services would be taken")
	case f.OIDCJWKSTTL == 0:
		return errors.New("--oidc-jwks-ttl: must be at least 1 second, or the issuer would be asked at every call")
	case (f.OIDCAdminRole == "") != (f.OIDCUserRole == ""):
		return errors.New("--oidc-admin-role and --oidc-user-role: set both, or set both to nothing to let every valid token do everything")
	case f.OIDCAdminRole != "" && f.OIDCRolesClaim == "":
		return errors.New("--oidc-roles-claim: must not be empty, unless --oidc-admin-role and --oidc-user-role are")
	}
	return nil
}

// checkNoOIDC refuses what is said about tokens where none are taken: whoever asks for scopes, say, and has misspelt the variable
// of the issuer, must not get a gateway that lets everybody in.
func (f flags) checkNoOIDC() error {
	for _, said := range []struct {
		flag string
		is   bool
	}{
		{"--oidc-audience", f.OIDCAudience != auth.DefaultAudience},
		{"--oidc-jwks-ttl", f.OIDCJWKSTTL != uint32(auth.DefaultJWKSTTL/time.Second)},
		{"--oidc-jwks-allowed-origins", len(f.OIDCJWKSOrigins) > 0},
		{"--oidc-roles-claim", f.OIDCRolesClaim != auth.DefaultRolesClaim},
		{"--oidc-admin-role", f.OIDCAdminRole != auth.DefaultAdminRole},
		{"--oidc-user-role", f.OIDCUserRole != auth.DefaultUserRole},
		{"--oidc-scopes-claim", f.OIDCScopesClaim != ""},
	} {
		if said.is {
			return fmt.Errorf("%s: needs --oidc-issuer, without which no tokens are taken", said.flag)
		}
	}
	return nil
}

func (f flags) checkConditional() error {
	if f.RequirePrecondition && f.WithoutConditional {
		return errors.New("--require-precondition: contradicts --without-conditional; nothing could be deleted, stopped or started")
	}
	return nil
}

// mtlsAuth is whether a client certificate says who calls.
func (f flags) mtlsAuth() bool {
	if f.EnableMTLSAuth != nil {
		return *f.EnableMTLSAuth
	}
	return f.TLSClientCA != "" && f.OIDCIssuer == ""
}

// config is what the flags say, but for the store.
func (f flags) config(log *slog.Logger) (gateway.Config, error) {
	cfg := gateway.Config{
		Version:             gateway.Version(version),
		Access:              auth.Config{ClientCertificates: f.mtlsAuth(), OIDC: f.oidc()},
		ServiceDomain:       f.serviceDomain(),
		RequirePrecondition: f.RequirePrecondition,
		WithoutConditional:  f.WithoutConditional,
		Logger:              log,
	}
	switch {
	case f.Unauthenticated:
		log.Warn("--dangerously-allow-unauthenticated: whoever can connect may do everything", "bind_address", f.BindAddress)
		cfg.Access.Unauthenticated = auth.FromAnywhere
	case f.DisableTLS && f.OIDCIssuer == "":
		cfg.Access.Unauthenticated = auth.FromLoopback
	}
	if f.DisableTLS && f.OIDCIssuer != "" {
		log.Warn("bearer tokens arrive in plaintext: put a proxy that ends TLS in front of this gateway")
	}
	var err error
	if !f.DisableTLS {
		cfg.TLS, err = f.tls(log)
	}
	return cfg, err
}

// oidc is nil without an issuer.
func (f flags) oidc() *auth.OIDCConfig {
	if f.OIDCIssuer == "" {
		return nil
	}
	return &auth.OIDCConfig{
		Issuer: f.OIDCIssuer, Audience: f.OIDCAudience,
		JWKSTTL: time.Duration(f.OIDCJWKSTTL) * time.Second, JWKSOrigins: f.OIDCJWKSOrigins,
		RolesClaim: f.OIDCRolesClaim, AdminRole: f.OIDCAdminRole, UserRole: f.OIDCUserRole,
		ScopesClaim: f.OIDCScopesClaim,
		Leeway:      auth.DefaultLeeway,
	}
}

func (f flags) tls(log *slog.Logger) (*tls.Config, error) {
	cfg, err := auth.NewTLS(auth.TLSConfig{
		CertFile: f.TLSCert, KeyFile: f.TLSKey, ClientCAFile: f.TLSClientCA,
		Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key or --tls-client-ca: %w", err)
	}
	return cfg, nil
}

func (f flags) address() string {
	return net.JoinHostPort(f.BindAddress, strconv.Itoa(int(f.Port)))
}

// serviceDomain is what a wildcard stands in front of; empty without one.
func (f flags) serviceDomain() string {
	for _, name := range f.ServerSANs {
		if domain, found := strings.CutPrefix(strings.ToLower(name), "*."); found {
			return domain
		}
	}
	return ""
}

func (f flags) scheme() string {
	if f.DisableTLS {
		return "http"
	}
	return "https"
}
