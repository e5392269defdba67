// Package cli drives a real Terraform or OpenTofu command line, for what plugin-testing cannot see: warnings, exit codes,
// signals, saved plans and the bytes of the state.
//
// [Find] looks for the command lines of this machine, [New] makes a working directory in which one of them runs with a
// locally built provider, and the methods of [WorkingDir] are its commands. Nothing of the caller's environment or
// configuration reaches a run. Tests start at [Require] and [InTest].
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/hashicorp/go-version"
)

// Product is the kind of a command line.
type Product string

// The products, by the names of their binaries.
const (
	Terraform Product = "terraform"
	OpenTofu  Product = "tofu"
)

// Environment variables that name the binaries to use. They win over PATH and over bin/ of the module.
const (
	EnvTerraform = "OPENSHELL_TEST_TERRAFORM"
	EnvOpenTofu  = "OPENSHELL_TEST_TOFU"
)

var (
	oldest      = version.Must(version.NewVersion("1.11.0"))
	identity    = version.Must(version.NewVersion("1.12.0"))
	versionLine = regexp.MustCompile(`(?m)^(Terraform|OpenTofu) v(\S+)$`)
)

const probeTimeout = 30 * time.Second

// CLI is one command line of this machine.
type CLI struct {
	Path    string
	Product Product
	Version *version.Version
}

// String names the command line for people.
func (c CLI) String() string {
	return fmt.Sprintf("%s %s (%s)", c.Product, c.Version, c.Path)
}

// SupportsIdentity reports whether the command line stores resource identity and imports by it.
func (c CLI) SupportsIdentity() bool {
	return c.Version.GreaterThanOrEqual(identity)
}

// RegistryHost is the registry that provider addresses without a host belong to.
func (c CLI) RegistryHost() string {
	if c.Product == OpenTofu {
		return "registry.opentofu.org"
	}
	return "registry.terraform.io"
}

var found = sync.OnceValues(func() ([]CLI, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	return find(ctx, os.Getenv)
})

// Find returns at most one command line of each product, Terraform first: the binary that the environment variable
// names, else the newest of PATH and of bin/ in the module's root. Versions before 1.11 do not count. It fails when a
// binary that the environment names cannot be used, not when there is none.
func Find() ([]CLI, error) {
	return found()
}

func find(ctx context.Context, getenv func(string) string) ([]CLI, error) {
	var clis []CLI
	for _, p := range []struct {
		product Product
		env     string
	}{{Terraform, EnvTerraform}, {OpenTofu, EnvOpenTofu}} {
		if path := getenv(p.env); path != "" {
			c, err := probe(ctx, path)
			if err == nil && c.Product != p.product {
				err = fmt.Errorf("it is %s", c)
			}
			if err != nil {
				return nil, fmt.Errorf("%s=%s cannot be used as %s: %w", p.env, path, p.product, err)
			}
			clis = append(clis, c)
			continue
		}
		if c, ok := newest(ctx, p.product); ok {
			clis = append(clis, c)
		}
	}
	return clis, nil
}

func newest(ctx context.Context, p Product) (best CLI, ok bool) {
	var candidates []string
	if path, err := exec.LookPath(string(p)); err == nil {
		candidates = append(candidates, path)
	}
	if root, err := moduleRoot(); err == nil {
		candidates = append(candidates, filepath.Join(root, "bin", string(p)))
	}
	for _, path := range candidates {
		c, err := probe(ctx, path)
		if err != nil || c.Product != p {
			continue
		}
		if !ok || c.Version.GreaterThan(best.Version) {
			best, ok = c, true
		}
	}
	return best, ok
}

// probe asks a binary what it is.
func probe(ctx context.Context, path string) (CLI, error) {
	cmd := exec.CommandContext(ctx, path, "version")
	cmd.Env = environment(os.Environ(), os.TempDir(), os.DevNull)
	out, err := cmd.Output()
	if err != nil {
		return CLI{}, fmt.Errorf("running %s version: %w", path, err)
	}
	match := versionLine.FindSubmatch(out)
	if match == nil {
		return CLI{}, fmt.Errorf("%s version printed neither Terraform's nor OpenTofu's version", path)
	}
	v, err := version.NewVersion(string(match[2]))
	if err != nil {
		return CLI{}, fmt.Errorf("%s version: %w", path, err)
	}
	if v.LessThan(oldest) {
		return CLI{}, fmt.Errorf("%s has version %s, at least %s is needed", path, v, oldest)
	}
	c := CLI{Path: path, Product: Terraform, Version: v}
	if string(match[1]) == "OpenTofu" {
		c.Product = OpenTofu
	}
	return c, nil
}

// moduleRoot is the folder of the nearest go.mod at or above the current one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod at or above the current folder")
		}
		dir = parent
	}
}
