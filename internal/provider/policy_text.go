package provider

import (
	"sync"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// maxCachedText bounds the text of the policies that are kept, in bytes.
const maxCachedText = 64 << 20

// policies keeps what was read from a text: a plan looks at each policy several times, and many sandboxes may share one.
var policies struct {
	sync.Mutex
	read map[string]readPolicy
	size int
}

type readPolicy struct {
	policy *sandboxv1.SandboxPolicy
	err    error
}

// parsePolicy reads and checks the text of a policy. The policy is shared: it must not be changed.
func parsePolicy(text string) (*sandboxv1.SandboxPolicy, error) {
	policies.Lock()
	known, ok := policies.read[text]
	policies.Unlock()
	if ok {
		return known.policy, known.err
	}
	p, err := policy.ParseAndValidate(text)
	policies.Lock()
	defer policies.Unlock()
	if policies.size += len(text); policies.read == nil || policies.size > maxCachedText {
		policies.read, policies.size = map[string]readPolicy{}, len(text)
	}
	policies.read[text] = readPolicy{p, err}
	return p, err
}
