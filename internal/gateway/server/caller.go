package server

import (
	"context"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// caller is who makes a call: the holder of the client certificate that the TLS layer has verified, or else everybody
// (upstream-contract, health, user, gateway info).
func caller(ctx context.Context) *openshellv1.GetCurrentUserResponse {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			subject := info.State.PeerCertificates[0].Subject
			return &openshellv1.GetCurrentUserResponse{
				Subject: subject.CommonName, Roles: subject.OrganizationalUnit, IdentityProvider: "mtls",
			}
		}
	}
	return &openshellv1.GetCurrentUserResponse{
		Subject: "unauthenticated-local-dev", Roles: []string{"openshell-user", "openshell-admin"},
		Scopes: []string{"openshell:all"}, IdentityProvider: "local_dev",
	}
}
