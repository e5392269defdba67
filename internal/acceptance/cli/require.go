package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

const buildTimeout = 10 * time.Minute

// Main runs a package's tests and removes what they built. It makes terraform-plugin-testing use the command line that
// [Require] returns, unless the environment names one. A package that uses [InTest] or plugin-testing calls it from
// TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(cli.Main(m)) }
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "openshell-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		buildDir = dir
		err = pluginTestingDefault(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func pluginTestingDefault(dir string) error {
	clis, err := Find()
	if err != nil || len(clis) == 0 || os.Getenv("TF_ACC_TERRAFORM_PATH") != "" {
		return err
	}
	env, err := pluginTestingEnv(clis[0], dir)
	for key, value := range env {
		err = errors.Join(err, os.Setenv(key, value))
	}
	return err
}

// buildDir is where [Main] has the provider built.
var buildDir string

var builtProvider = sync.OnceValues(func() (string, error) {
	if buildDir == "" {
		return "", errors.New("TestMain does not call cli.Main")
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	return Build(ctx, buildDir, ".")
})

// Build builds a command of this module into dir and returns the binary's path. pkg is relative to the module's root.
func Build(ctx context.Context, dir, pkg string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	name := filepath.Base(pkg)
	if pkg == "." {
		name = "terraform-provider-openshell"
	}
	target := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return target, nil
}

// Require returns a command line, Terraform if there is one. Without any it fails in CI and skips elsewhere.
func Require(t testing.TB) CLI {
	t.Helper()
	return require(t, "terraform or tofu >= 1.11", func(CLI) bool { return true })
}

// RequireIdentity returns a command line that knows resource identity. Without one it fails in CI and skips elsewhere.
func RequireIdentity(t testing.TB) CLI {
	t.Helper()
	return require(t, "terraform or tofu >= 1.12, for resource identity", CLI.SupportsIdentity)
}

func require(t testing.TB, what string, suits func(CLI) bool) CLI {
	t.Helper()
	clis, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clis {
		if suits(c) {
			return c
		}
	}
	lack(t, what)
	return CLI{}
}

// lack ends a test that cannot run: it fails in CI and skips elsewhere.
func lack(t testing.TB, what string) {
	t.Helper()
	message := fmt.Sprintf("this test needs %s on PATH or in bin/; `make test` provides it", what)
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}

// ForEach runs the test once with each product, as a subtest named after it. Without OpenTofu that subtest fails in
// CI and skips elsewhere; without Terraform it skips, since nothing here provides that.
func ForEach(t *testing.T, test func(*testing.T, CLI)) {
	t.Helper()
	clis, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []Product{Terraform, OpenTofu} {
		t.Run(string(p), func(t *testing.T) {
			i := slices.IndexFunc(clis, func(c CLI) bool { return c.Product == p })
			switch {
			case i >= 0:
				test(t, clis[i])
			case p == OpenTofu:
				lack(t, "tofu >= 1.11")
			default:
				t.Skip("terraform >= 1.11 is not on PATH")
			}
		})
	}
}

// InTest makes a working directory with the provider of this module, which is built once a test run. env is added to the
// environment of its commands, as KEY=value.
func InTest(t testing.TB, c CLI, env ...string) *WorkingDir {
	t.Helper()
	provider, err := builtProvider()
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(t.TempDir(), Options{CLI: c, Provider: provider, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// UseForPluginTesting makes terraform-plugin-testing use c in this test. As it sets the environment, such a test cannot
// run in parallel with others.
func UseForPluginTesting(t testing.TB, c CLI) {
	t.Helper()
	env, err := pluginTestingEnv(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range env {
		t.Setenv(key, value)
	}
}

// pluginTestingEnv is what plugin-testing reads, with a configuration file of its own in dir.
func pluginTestingEnv(c CLI, dir string) (map[string]string, error) {
	config := filepath.Join(dir, "plugin-testing.tfrc")
	return map[string]string{
		"TF_ACC_TERRAFORM_PATH": c.Path,
		"TF_ACC_PROVIDER_HOST":  c.RegistryHost(),
		// OpenTofu warns about a missing file in the middle of its version output, which plugin-testing then cannot read.
		"TF_CLI_CONFIG_FILE": config,
		"CHECKPOINT_DISABLE": "1",
	}, os.WriteFile(config, []byte(cliConfig("")), 0o600)
}
