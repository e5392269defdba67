package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

const (
	address = "openshell_sandbox.web"
	name    = "web"
	plan    = "destroy.tfplan"
)

// chapter is the story in front of one kind of gateway.
type chapter struct {
	title string
	flags []string
	check func(*stage, outcome) error
}

// stage is where a chapter plays.
type stage struct {
	*narrator
	dir           string
	gatewayBinary string
	cli           cli.CLI
	workingDir    *cli.WorkingDir
}

// command shows a command of the command line.
func (s *stage) command(args string) { s.typed(string(s.cli.Product) + " " + args) }

// outcome is what the saved destroy plan led to.
type outcome struct {
	result       cli.Result
	ours         string // id of the sandbox that Terraform made
	stateAfter   string // id in the state; empty: none
	before, then *openshellv1.Sandbox
}

func (s *stage) tell(ctx context.Context, c chapter) (err error) {
	s.title(c.title)
	s.step("Start the gateway on a new SQLite file")
	g, err := startGateway(ctx, s.gatewayBinary, s.dir, c.flags...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	s.typed(strings.Join(append([]string{"openshell-reference-gateway", "--disable-tls"}, c.flags...), " "))
	s.fact("It listens at %s.", g.endpoint)
	other := secondClient{api: g.api()}

	o := outcome{}
	if o.ours, err = s.make(ctx, g.endpoint); err != nil {
		return err
	}
	if o.before, err = s.replace(ctx, other, o.ours); err != nil {
		return err
	}

	s.step("Apply the destroy plan that was saved before all that")
	s.command("apply " + plan)
	o.result = s.workingDir.Apply(ctx, plan)
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, d := range o.result.Diagnostics {
		s.diagnostic(d)
	}
	s.fact("Exit code %d.", o.result.ExitCode)
	if o.then, err = other.get(ctx, name); err != nil {
		return err
	}
	if o.stateAfter, err = s.idInState(ctx); err != nil {
		return err
	}
	if err := c.check(s, o); err != nil {
		return fmt.Errorf("a promise is broken: %w", err)
	}
	return nil
}

// make applies the quickstart and saves a plan that destroys it.
func (s *stage) make(ctx context.Context, endpoint string) (id string, err error) {
	s.step("Terraform makes the sandbox " + name)
	config, err := os.ReadFile(filepath.Join("examples", "quickstart", "main.tf"))
	if err != nil {
		return "", fmt.Errorf("run the demo in the repository's root: %w", err)
	}
	if err := s.workingDir.Write("main.tf", string(config)); err != nil {
		return "", err
	}
	if err := s.workingDir.Write("terraform.tfvars", fmt.Sprintf("endpoint = %q\n", endpoint)); err != nil {
		return "", err
	}
	s.command("apply    # examples/quickstart")
	if err := s.workingDir.Apply(ctx, "").Err(); err != nil {
		return "", err
	}
	if id, err = s.idInState(ctx); err != nil {
		return "", err
	}
	s.fact("The state holds the id %s.", id)

	s.step("Save a plan that destroys it, to be applied later")
	s.command("plan -destroy -out=" + plan)
	return id, s.workingDir.Plan(ctx, plan, "-destroy").Err()
}

// replace has the second client put another sandbox under the name.
func (s *stage) replace(ctx context.Context, other secondClient, ours string) (*openshellv1.Sandbox, error) {
	s.step("Behind Terraform's back a second client deletes " + name + " and creates a new " + name)
	if err := other.remove(ctx, name); err != nil {
		return nil, err
	}
	stranger, err := other.create(ctx, name)
	if err != nil {
		return nil, err
	}
	id := stranger.GetMetadata().GetId()
	if id == ours {
		return nil, fmt.Errorf("the gateway gave the new sandbox the id of the old one, %s", id)
	}
	s.fact("The same name now means another sandbox: id %s.", id)
	return stranger, nil
}

// idInState is the id of the quickstart's sandbox, empty when the state does not hold it.
func (s *stage) idInState(ctx context.Context) (string, error) {
	state, err := s.workingDir.State(ctx)
	if err != nil || state.Values == nil {
		return "", err
	}
	for _, r := range state.Values.RootModule.Resources {
		if id, ok := r.AttributeValues["id"].(string); ok && r.Address == address {
			return id, nil
		}
	}
	return "", nil
}

// destroysNothingForeign is the promise of a gateway with the conditional calls.
func destroysNothingForeign(s *stage, o outcome) error {
	if err := o.strangerLives(); err != nil {
		return err
	}
	s.proves("The stranger lives, and nothing of it changed: id, creation time and version are as before.")
	if o.result.ExitCode != 0 {
		return fmt.Errorf("the apply failed: %w", o.result.Err())
	}
	if o.stateAfter != "" {
		return fmt.Errorf("the state still holds the id %s", o.stateAfter)
	}
	s.proves("Terraform is done: its own sandbox was gone already, and the state is empty.")
	stranger := o.before.GetMetadata().GetId()
	if !slices.ContainsFunc(o.result.Warnings(), func(d cli.Diagnostic) bool {
		return strings.Contains(d.Detail, o.ours) && strings.Contains(d.Detail, stranger)
	}) {
		return fmt.Errorf("no warning names both ids, %s and %s", o.ours, stranger)
	}
	s.proves("It did not happen in silence: a warning names both ids.")
	return nil
}

// refuses is the promise in front of a gateway without the conditional calls.
func refuses(s *stage, o outcome) error {
	if err := o.strangerLives(); err != nil {
		return err
	}
	s.proves("The stranger lives, and nothing of it changed.")
	if o.result.ExitCode != 1 || len(o.result.Errors()) == 0 {
		return fmt.Errorf("the apply ended with exit code %d and the diagnostics %v; want 1 and an error",
			o.result.ExitCode, o.result.Diagnostics)
	}
	s.proves("Destroy refused: it cannot be sure what a delete by name would hit.")
	if o.stateAfter != o.ours {
		return fmt.Errorf("the state holds the id %q; want %s", o.stateAfter, o.ours)
	}
	s.proves("The state is kept, so nothing is forgotten.")
	return nil
}

func (o outcome) strangerLives() error {
	switch {
	case o.then == nil:
		return fmt.Errorf("the stranger %s was deleted", o.before.GetMetadata().GetId())
	case !proto.Equal(o.before, o.then):
		return fmt.Errorf("the stranger changed: it was\n%v\nand is\n%v", o.before, o.then)
	}
	return nil
}
