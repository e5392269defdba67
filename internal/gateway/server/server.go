// Package server answers the calls of the OpenShell API and of the conditional service: it checks requests, hands them to
// the lifecycle or the store, and turns what comes back into replies and statuses.
package server

import (
	"net/netip"
	"sync/atomic"

	"google.golang.org/grpc"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/changes"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/lifecycle"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Config is what a server is made of.
type Config struct {
	Store     store.Store
	Driver    driver.Driver
	Lifecycle *lifecycle.Manager
	// Changes are those that this process makes through Store.
	Changes *changes.Changes
	// Version is what Health reports.
	Version string
	// RequirePrecondition refuses the plain forms of delete, stop and start.
	RequirePrecondition bool
	// TLS says that it is served over TLS.
	TLS bool
	// ServiceDomain is the domain of the URLs of services; without one they have none.
	ServiceDomain string
	// Watches is how many watches may be under way at the same time.
	Watches int
}

// Server implements the OpenShell service. Calls it does not have are UNIMPLEMENTED.
type Server struct {
	openshellv1.UnimplementedOpenShellServer
	Config
	address netip.AddrPort // where clients reach it
	watches atomic.Int64   // under way
}

// New makes a server.
func New(cfg Config) *Server { return &Server{Config: cfg} }

// Register puts the OpenShell service on a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { openshellv1.RegisterOpenShellServer(r, s) }

// RegisterConditional puts the conditional service on a gRPC server.
func (s *Server) RegisterConditional(r grpc.ServiceRegistrar) {
	conditionalv1.RegisterConditionalSandboxesServer(r, &conditionalServer{server: s})
}
