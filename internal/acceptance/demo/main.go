// Command demo shows the project's promise from nothing, in front of whoever runs it: terraform destroy removes exactly
// the sandbox Terraform made.
//
// It builds the provider and the gateway, and tells one story twice: Terraform makes a sandbox and saves a plan that
// destroys it, a second client replaces the sandbox under the same name, and the saved plan is applied. In front of a
// gateway with the conditional calls the stranger lives and Terraform is done; in front of one without them destroy
// refuses and keeps its state. It ends with an error when any of that does not hold, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
)

const timeout = 15 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "\nThe demo was interrupted before its end.")
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	clis, err := cli.Find()
	if err != nil {
		return err
	}
	if len(clis) == 0 {
		return errors.New("neither terraform nor tofu >= 1.11 is on PATH or in bin/; `make demo` obtains one")
	}
	root, err := os.MkdirTemp("", "openshell-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()

	n := &narrator{out: os.Stdout}
	n.title("terraform destroy removes exactly the sandbox Terraform made")
	n.step("Build the provider and the gateway from this checkout")
	provider, err := cli.Build(ctx, root, ".")
	if err != nil {
		return err
	}
	gateway, err := cli.Build(ctx, root, "./cmd/openshell-reference-gateway")
	if err != nil {
		return err
	}
	n.fact("The command line is %s. It uses the provider just built; no registry is asked.", clis[0])

	for _, c := range []chapter{
		{
			title: "A gateway that compares the id in the transaction that deletes",
			check: destroysNothingForeign,
		},
		{
			title: "The same story in front of a stock gateway, which can delete by name only",
			flags: []string{"--without-conditional"},
			check: refuses,
		},
	} {
		dir, err := os.MkdirTemp(root, "chapter-")
		if err != nil {
			return err
		}
		s := stage{narrator: n, dir: dir, gatewayBinary: gateway, cli: clis[0]}
		s.workingDir, err = cli.New(filepath.Join(dir, "terraform"), cli.Options{CLI: clis[0], Provider: provider})
		if err != nil {
			return err
		}
		if err := s.tell(ctx, c); err != nil {
			return err
		}
	}
	n.title("Every promise held")
	return nil
}
