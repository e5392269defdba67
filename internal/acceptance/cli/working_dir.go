package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"
)

// Address is the provider's source address without a host, as a configuration names it.
const Address = "openshell-iac/openshell"

// RequiredProviders is the block with which a configuration names the provider.
const RequiredProviders = "terraform {\n  required_providers {\n    openshell = {\n      source = \"" + Address + "\"\n    }\n  }\n}\n"

// Options say how the commands of a working directory run.
type Options struct {
	CLI CLI
	// Provider is the path of a provider binary to use for [Address] in place of an installed one. Empty: none.
	Provider string
	// Env is added to the scrubbed environment, as KEY=value.
	Env []string
}

// WorkingDir is a root module's folder, with a command line to run in it. No `init` is needed, since the provider comes
// from a development override.
type WorkingDir struct {
	// Path is the folder with the configuration and the state.
	Path string
	cli  CLI
	env  []string
}

// New makes a working directory under root, which the caller removes.
func New(root string, o Options) (*WorkingDir, error) {
	w := &WorkingDir{Path: filepath.Join(root, "work"), cli: o.CLI}
	home := filepath.Join(root, "home")
	for _, dir := range []string{w.Path, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	config := filepath.Join(root, "cli.tfrc")
	if err := os.WriteFile(config, []byte(cliConfig(o.Provider)), 0o600); err != nil {
		return nil, err
	}
	w.env = append(environment(os.Environ(), home, config), o.Env...)
	return w, nil
}

func cliConfig(provider string) string {
	if provider == "" {
		return "disable_checkpoint = true\n"
	}
	return fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  dev_overrides {\n    %q = %q\n  }\n}\n",
		Address, filepath.Dir(provider))
}

// environment is base without what steers a command line or the provider, plus what keeps a run to itself.
func environment(base []string, home, configFile string) []string {
	env := slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"TF_", "OPENSHELL_", "CHECKPOINT_", "XDG_"} {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return key == "HOME"
	})
	return append(env,
		"HOME="+home,
		"TF_CLI_CONFIG_FILE="+configFile,
		"TF_IN_AUTOMATION=1",
		"TF_INPUT=0",
		"CHECKPOINT_DISABLE=1",
	)
}

// Write puts a file into the working directory, over one of that name.
func (w *WorkingDir) Write(name, content string) error {
	return os.WriteFile(filepath.Join(w.Path, name), []byte(content), 0o600)
}

// Plan plans and saves the plan as out, unless that is empty. [Result.Changed] tells whether it holds changes.
func (w *WorkingDir) Plan(ctx context.Context, out string, args ...string) Result {
	args = append([]string{"plan", "-json", "-detailed-exitcode"}, args...)
	if out != "" {
		args = append(args, "-out="+out)
	}
	return w.Run(ctx, args...)
}

// Apply applies the saved plan, or what the configuration asks for when plan is empty.
func (w *WorkingDir) Apply(ctx context.Context, plan string, args ...string) Result {
	args = append([]string{"apply", "-json", "-auto-approve"}, args...)
	if plan != "" {
		args = append(args, plan)
	}
	return w.Run(ctx, args...)
}

// Destroy plans and destroys everything in the state.
func (w *WorkingDir) Destroy(ctx context.Context, args ...string) Result {
	return w.Run(ctx, append([]string{"destroy", "-json", "-auto-approve"}, args...)...)
}

// Refresh writes what the provider reads into the state and changes nothing else.
func (w *WorkingDir) Refresh(ctx context.Context) Result {
	return w.Run(ctx, "apply", "-json", "-auto-approve", "-refresh-only")
}

// Import imports the object id to address. The command prints for people only, so its result has no diagnostics: see
// [Result.Text].
func (w *WorkingDir) Import(ctx context.Context, address, id string) Result {
	return w.Run(ctx, "import", "-no-color", address, id)
}

// ShowPlan returns a saved plan.
func (w *WorkingDir) ShowPlan(ctx context.Context, plan string) (*tfjson.Plan, error) {
	var p tfjson.Plan
	return &p, w.show(ctx, &p, plan)
}

// State returns the state as the command line shows it.
func (w *WorkingDir) State(ctx context.Context) (*tfjson.State, error) {
	var s tfjson.State
	return &s, w.show(ctx, &s)
}

func (w *WorkingDir) show(ctx context.Context, into json.Unmarshaler, args ...string) error {
	r := w.Run(ctx, append([]string{"show", "-json"}, args...)...)
	if err := r.Err(); err != nil {
		return err
	}
	return into.UnmarshalJSON([]byte(r.Stdout))
}

// StateFile is the path of the state, which need not exist.
func (w *WorkingDir) StateFile() string {
	return filepath.Join(w.Path, "terraform.tfstate")
}

// RawState returns the bytes of the state. Without a state the error is [os.ErrNotExist].
func (w *WorkingDir) RawState() ([]byte, error) {
	return os.ReadFile(w.StateFile())
}

// Run runs any command to its end.
func (w *WorkingDir) Run(ctx context.Context, args ...string) Result {
	p, err := w.Start(ctx, args...)
	if err != nil {
		return Result{Args: args, ExitCode: -1, failure: err}
	}
	return p.Wait()
}
