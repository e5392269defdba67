// Command obtain-cli prints the path of a Terraform or OpenTofu command line, obtaining one where the machine has none.
//
// It takes the first that succeeds: terraform or tofu from PATH or from -dir; the newest Terraform release, verified
// and put into -dir; OpenTofu, built from the module -tofu-module into -dir. With -tofu Terraform does not count, and
// what is found on PATH is linked into -dir, so that -dir/tofu exists afterwards in any case.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-version"
	install "github.com/hashicorp/hc-install"
	"github.com/hashicorp/hc-install/fs"
	"github.com/hashicorp/hc-install/product"
	"github.com/hashicorp/hc-install/releases"
	"github.com/hashicorp/hc-install/src"
)

const (
	listTimeout     = 10 * time.Second
	downloadTimeout = 3 * time.Minute
	buildTimeout    = time.Hour
)

// openTofu answers `version -json` as Terraform does, so only the names differ.
var openTofu = product.Product{
	Name:       "tofu",
	BinaryName: func() string { return executable("tofu") },
	GetVersion: product.Terraform.GetVersion,
}

type obtainer struct {
	dir        string
	tofuModule string
	tofuOnly   bool
	accepted   version.Constraints
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "obtain-cli:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "bin", "folder for what is downloaded or built")
	oldest := flag.String("min", "1.11.0", "oldest acceptable version")
	tofuModule := flag.String("tofu-module", "tools/opentofu", "folder of the module that pins OpenTofu")
	tofuOnly := flag.Bool("tofu", false, "accept OpenTofu only")
	flag.Parse()

	accepted, err := version.NewConstraint(">= " + *oldest)
	if err != nil {
		return fmt.Errorf("-min %q: %w", *oldest, err)
	}
	absDir, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(absDir, 0o755); err != nil {
		return err
	}
	// OpenTofu warns about a missing configuration file in the middle of its version output.
	if err := os.Setenv("TF_CLI_CONFIG_FILE", os.DevNull); err != nil {
		return err
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := obtainer{dir: absDir, tofuModule: *tofuModule, tofuOnly: *tofuOnly, accepted: accepted}
	path, err := o.obtain(ctx)
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

func (o obtainer) obtain(ctx context.Context) (string, error) {
	if path, err := o.find(ctx); err == nil {
		return path, nil
	}
	if !o.tofuOnly {
		path, err := o.download(ctx)
		if err == nil {
			return path, nil
		}
		say("Terraform could not be downloaded (%v).", err)
	}
	return o.build(ctx)
}

func (o obtainer) find(ctx context.Context) (string, error) {
	candidates := []product.Product{product.Terraform, openTofu}
	if o.tofuOnly {
		candidates = candidates[1:]
	}
	var sources []src.Source
	for _, p := range candidates {
		sources = append(sources, &fs.Version{Product: p, Constraints: o.accepted, ExtraPaths: []string{o.dir}})
	}
	path, err := install.NewInstaller().Ensure(ctx, sources)
	if err != nil || !o.tofuOnly {
		return path, err
	}
	return o.link(path)
}

// link makes dir/tofu lead to path.
func (o obtainer) link(path string) (string, error) {
	target := filepath.Join(o.dir, openTofu.BinaryName())
	if path == target {
		return path, nil
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return target, os.Symlink(path, target)
}

func (o obtainer) download(ctx context.Context) (string, error) {
	say("No terraform or tofu %s on PATH: trying to download Terraform.", o.accepted)
	available, err := (&releases.Versions{
		Product:     product.Terraform,
		Constraints: o.accepted,
		ListTimeout: listTimeout,
		Install:     releases.InstallationOptions{Dir: o.dir, Timeout: downloadTimeout},
	}).List(ctx)
	if err != nil {
		return "", err
	}
	if len(available) == 0 {
		return "", fmt.Errorf("no release %s", o.accepted)
	}
	newest := available[len(available)-1]
	return install.NewInstaller().Ensure(ctx, []src.Source{newest})
}

func (o obtainer) build(ctx context.Context) (string, error) {
	say("Building OpenTofu from %s: some minutes the first time.", o.tofuModule)
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	target := filepath.Join(o.dir, openTofu.BinaryName())
	// OpenTofu calls itself a development build unless the linker says otherwise.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath",
		"-ldflags", "-s -w -X github.com/opentofu/opentofu/version.dev=no",
		"-o", target, "github.com/opentofu/opentofu/cmd/tofu")
	cmd.Dir = o.tofuModule
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building OpenTofu in %s: %w", o.tofuModule, err)
	}
	return target, nil
}

// say reports progress on standard error: standard output carries the path alone.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
