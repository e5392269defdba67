package gatewaytest

import (
	"log/slog"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/auth"
)

// WithAccess says who may call, instead of everybody on this machine. The other client shows no credential.
func WithAccess(access auth.Config) Option { return func(o *options) { o.access = &access } }

// WithLogger takes the gateway's log, which is thrown away otherwise.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.logger = log } }
