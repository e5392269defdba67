package auth_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Neither the gate nor its issuer's connections nor the certificate files keep a goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
