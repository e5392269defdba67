package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Severities of a diagnostic.
const (
	Error   = "error"
	Warning = "warning"
)

// devOverrideSummary is the warning that every run with a development override carries, in both products.
const devOverrideSummary = "Provider development overrides are in effect"

// Result is what a command that has ended leaves.
type Result struct {
	Args []string
	// ExitCode is -1 when the command was ended by a signal or did not start.
	ExitCode       int
	Stdout, Stderr string
	// Diagnostics are those of the command's -json output, without the warning about development overrides.
	Diagnostics []Diagnostic
	// CPU is the processor time of the command and of the providers it started.
	CPU time.Duration

	failure error
}

// Diagnostic is an error or a warning of a command.
type Diagnostic struct {
	Severity string
	Summary  string
	Detail   string
	// Address is the resource instance concerned. Empty: none.
	Address string
	// Attribute is the argument of the configuration line that the command points at. Empty: it points at none.
	Attribute string
}

// String is the diagnostic in one paragraph.
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s [%s %s]: %s: %s", d.Severity, d.Address, d.Attribute, d.Summary, d.Detail)
}

func newResult(args []string, exitCode int, stdout, stderr string, err error) Result {
	r := Result{Args: args, ExitCode: exitCode, Stdout: stdout, Stderr: stderr, Diagnostics: parseDiagnostics(stdout)}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		r.failure = err
	}
	return r
}

// Changed reports whether a plan holds changes.
func (r Result) Changed() bool {
	return r.ExitCode == 2 && slices.Contains(r.Args, "-detailed-exitcode")
}

// Err is nil when the command succeeded, and tells what it reported otherwise. A plan with changes is a success.
func (r Result) Err() error {
	if r.failure == nil && (r.ExitCode == 0 || r.Changed()) {
		return nil
	}
	return fmt.Errorf("%s: %w", strings.Join(r.Args, " "), r.failureOrOutput())
}

func (r Result) failureOrOutput() error {
	report := strings.TrimSpace(r.Stderr)
	for _, d := range r.Errors() {
		report += "\n" + d.String()
	}
	if r.failure != nil {
		return fmt.Errorf("%w\n%s", r.failure, report)
	}
	return fmt.Errorf("exit code %d\n%s", r.ExitCode, report)
}

// Errors are the diagnostics of that severity.
func (r Result) Errors() []Diagnostic { return r.withSeverity(Error) }

// Warnings are the diagnostics of that severity.
func (r Result) Warnings() []Diagnostic { return r.withSeverity(Warning) }

func (r Result) withSeverity(severity string) []Diagnostic {
	return slices.DeleteFunc(slices.Clone(r.Diagnostics), func(d Diagnostic) bool { return d.Severity != severity })
}

// frame matches the box that commands draw around diagnostics for people.
var frame = regexp.MustCompile(`(?m)^[╷│╵] ?`)

// Text is what the command printed for people on both streams in one line, without frames and line breaks, so that
// wrapped text can be searched.
func (r Result) Text() string {
	return strings.Join(strings.Fields(frame.ReplaceAllString(r.Stdout+"\n"+r.Stderr, "")), " ")
}

// wireDiagnostic is a diagnostic in the machine-readable output, format 1.x.
type wireDiagnostic struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Address  string `json:"address"`
	Snippet  *struct {
		Code string `json:"code"`
	} `json:"snippet"`
}

// parseDiagnostics reads both forms of machine-readable output: one message a line, and one document.
func parseDiagnostics(stdout string) []Diagnostic {
	var wire []wireDiagnostic
	var document struct {
		Diagnostics []wireDiagnostic `json:"diagnostics"`
	}
	if json.Unmarshal([]byte(stdout), &document) == nil {
		wire = document.Diagnostics
	}
	for line := range strings.Lines(stdout) {
		var message struct {
			Type       string          `json:"type"`
			Diagnostic *wireDiagnostic `json:"diagnostic"`
		}
		if json.Unmarshal([]byte(line), &message) == nil && message.Type == "diagnostic" && message.Diagnostic != nil {
			wire = append(wire, *message.Diagnostic)
		}
	}
	var diagnostics []Diagnostic
	for _, d := range wire {
		if d.Summary == devOverrideSummary {
			continue
		}
		diagnostics = append(diagnostics, Diagnostic{
			Severity: d.Severity, Summary: d.Summary, Detail: d.Detail, Address: d.Address, Attribute: d.attribute(),
		})
	}
	return diagnostics
}

var argument = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*)\s*=[^=]`)

// attribute takes the argument's name from the snippet: the output has no attribute path.
func (d wireDiagnostic) attribute() string {
	if d.Snippet == nil {
		return ""
	}
	if match := argument.FindStringSubmatch(d.Snippet.Code); match != nil {
		return match[1]
	}
	return ""
}
