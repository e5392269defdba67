package server

import (
	"context"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// Health says that the process answers.
func (s *Server) Health(context.Context, *openshellv1.HealthRequest) (*openshellv1.HealthResponse, error) {
	return &openshellv1.HealthResponse{Status: openshellv1.ServiceStatus_SERVICE_STATUS_HEALTHY, Version: s.Version}, nil
}

// GetCurrentUser says who the gateway takes the caller for.
func (s *Server) GetCurrentUser(ctx context.Context, _ *openshellv1.GetCurrentUserRequest) (*openshellv1.GetCurrentUserResponse, error) {
	caller, _ := auth.FromContext(ctx)
	return &openshellv1.GetCurrentUserResponse{
		Subject: caller.Subject, DisplayName: caller.DisplayName, Roles: caller.Roles, Scopes: caller.Scopes,
		IdentityProvider: string(caller.Provider),
	}, nil
}

// GetGatewayInfo describes the gateway.
func (s *Server) GetGatewayInfo(context.Context, *openshellv1.GetGatewayInfoRequest) (*openshellv1.GetGatewayInfoResponse, error) {
	return &openshellv1.GetGatewayInfoResponse{
		Status:         openshellv1.ServiceStatus_SERVICE_STATUS_HEALTHY,
		GatewayVersion: s.Version,
		ComputeDrivers: []*openshellv1.ComputeDriverInfo{s.Driver.Info()},
	}, nil
}
