// Command terraform-provider-openshell is the provider's plugin process. Terraform and OpenTofu start it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/openshell-iac/terraform-provider-openshell/internal/provider"
)

// address is where registries and configurations find this provider.
const address = "registry.terraform.io/openshell-iac/openshell"

// version is set by the linker in releases.
var version = "dev"

func main() {
	debug := flag.Bool("debug", false, "wait for a command line that is started with the TF_REATTACH_PROVIDERS printed, so that a debugger can attach")
	flag.Parse()
	if !*debug {
		// A signal to the whole process group must not end a plugin in the middle of a call, or what it just made would be
		// missing in the state. The command line gets the signal too, and ends its plugins once they are done. The plugin
		// library handles interrupts itself, but only from a moment after it has said that it listens.
		signal.Ignore(syscall.SIGTERM, os.Interrupt)
	}
	var options []tf6server.ServeOpt
	if *debug {
		options = append(options, tf6server.WithManagedDebug())
	}
	if err := tf6server.Serve(address, provider.NewServer(version), options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
