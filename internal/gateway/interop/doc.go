// Package interop has clients that are not ours call the gateway: `make interop` installs OpenShell's own Python package
// and drives real gateways with it.
package interop
