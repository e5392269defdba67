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
	"strconv"

	"github.com/alecthomas/kong"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// flags have upstream's names, and so have the variables.
type flags struct {
	Config      string     `help:"Configuration file (TOML); its keys are the names of the flags." env:"OPENSHELL_GATEWAY_CONFIG" placeholder:"FILE"`
	BindAddress string     `help:"IP address to listen on." env:"OPENSHELL_BIND_ADDRESS" default:"127.0.0.1" placeholder:"IP"`
	Port        uint16     `help:"Port to listen on; 0 takes any that is free." env:"OPENSHELL_SERVER_PORT" default:"17670"`
	LogLevel    slog.Level `help:"Least level of log lines: debug, info, warn or error." env:"OPENSHELL_LOG_LEVEL" default:"info"`
	DBURL       string     `name:"db-url" help:"Database: sqlite:PATH, sqlite::memory: for one that ends with the process, or postgres://… for several gateways." env:"OPENSHELL_DB_URL" default:"${db_url}" placeholder:"URL"`

	TLSCert         string `name:"tls-cert" help:"Certificate of the gateway with its chain (PEM)." env:"OPENSHELL_TLS_CERT" placeholder:"FILE" group:"Access"`
	TLSKey          string `name:"tls-key" help:"Its key (PEM)." env:"OPENSHELL_TLS_KEY" placeholder:"FILE" group:"Access"`
	TLSClientCA     string `name:"tls-client-ca" help:"Authorities of client certificates (PEM)." env:"OPENSHELL_TLS_CLIENT_CA" placeholder:"FILE" group:"Access"`
	EnableMTLSAuth  *bool  `name:"enable-mtls-auth" help:"Take the client certificate for the caller's identity; on by default with --tls-client-ca." env:"OPENSHELL_ENABLE_MTLS_AUTH" negatable:"" group:"Access"`
	DisableTLS      bool   `name:"disable-tls" help:"Serve plaintext, on loopback addresses, to whoever connects." env:"OPENSHELL_DISABLE_TLS" group:"Access"`
	Unauthenticated bool   `name:"dangerously-allow-unauthenticated" help:"Let in everybody who can connect, from anywhere." group:"Access"`

	RequirePrecondition bool `help:"Refuse deletes, stops and starts without a precondition." group:"Conditional calls"`
	WithoutConditional  bool `help:"Behave like a stock gateway: no conditional calls, health service or reflection." group:"Conditional calls"`

	Version kong.VersionFlag `help:"Print the version."`
}

// errHelped says that the help or the version was asked for, and shown.
var errHelped = errors.New("shown")

// parse reads flags, environment and configuration file, in this order of precedence.
func parse(args []string, stdout, stderr io.Writer) (f flags, err error) {
	shown := false
	options := []kong.Option{
		kong.Name("openshell-reference-gateway"),
		kong.Description("Serves the OpenShell API over a simulated compute driver, with conditional calls."),
		kong.Vars{"version": version, "db_url": defaultDBURL()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { shown = true }),
	}
	for range 2 {
		parser, err := kong.New(&f, options...)
		if err != nil {
			return f, err
		}
		if _, err := parser.Parse(args); shown {
			return f, errHelped
		} else if err != nil {
			return f, err
		}
		if f.Config == "" {
			break
		}
		file, err := readConfig(f.Config, parser.Model)
		if err != nil {
			return f, err
		}
		options = append(options, kong.Resolvers(file)) // and once more, with what the file says
	}
	return f, nil
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
	ip := net.ParseIP(f.BindAddress)
	switch {
	case ip == nil:
		return fmt.Errorf("--bind-address: %q is no IP address", f.BindAddress)
	case f.DBURL == "":
		return errors.New("--db-url: there is no home directory to keep the database in; name a place, such as sqlite:gateway.db")
	case f.DisableTLS && (f.TLSCert != "" || f.TLSKey != "" || f.TLSClientCA != ""):
		return errors.New("--disable-tls: contradicts --tls-cert, --tls-key and --tls-client-ca")
	case f.DisableTLS && !f.Unauthenticated && !ip.IsLoopback():
		return fmt.Errorf("--disable-tls: serves plaintext to whoever connects, so --bind-address must be a loopback address and not %s; "+
			"use TLS with client certificates, or add --dangerously-allow-unauthenticated", f.BindAddress)
	case !f.DisableTLS && (f.TLSCert == "" || f.TLSKey == ""):
		return errors.New("--tls-cert and --tls-key are required, or else --disable-tls for plaintext on a loopback address")
	case f.EnableMTLSAuth != nil && *f.EnableMTLSAuth && f.TLSClientCA == "":
		return errors.New("--enable-mtls-auth: needs --tls-client-ca")
	case !f.DisableTLS && !f.mtlsAuth() && !f.Unauthenticated:
		return errors.New("nobody could call this gateway: give --tls-client-ca for client certificates, or --dangerously-allow-unauthenticated")
	}
	return nil
}

func (f flags) mtlsAuth() bool {
	return f.TLSClientCA != "" && (f.EnableMTLSAuth == nil || *f.EnableMTLSAuth)
}

// config is what the flags say, but for the store.
func (f flags) config(log *slog.Logger) (gateway.Config, error) {
	cfg := gateway.Config{
		Version:             gateway.Version(version),
		Access:              auth.Config{ClientCertificates: f.mtlsAuth()},
		RequirePrecondition: f.RequirePrecondition,
		WithoutConditional:  f.WithoutConditional,
		Logger:              log,
	}
	switch {
	case f.Unauthenticated:
		cfg.Access.Unauthenticated = auth.FromAnywhere
	case f.DisableTLS:
		cfg.Access.Unauthenticated = auth.FromLoopback
	}
	var err error
	if !f.DisableTLS {
		cfg.TLS, err = f.tls(log)
	}
	return cfg, err
}

func (f flags) tls(log *slog.Logger) (*tls.Config, error) {
	return auth.NewTLS(auth.TLSConfig{
		CertFile: f.TLSCert, KeyFile: f.TLSKey, ClientCAFile: f.TLSClientCA,
		RequireClientCert: f.TLSClientCA != "" && !f.Unauthenticated,
		Logger:            log,
	})
}

func (f flags) address() string {
	return net.JoinHostPort(f.BindAddress, strconv.Itoa(int(f.Port)))
}

func (f flags) scheme() string {
	if f.DisableTLS {
		return "http"
	}
	return "https"
}
