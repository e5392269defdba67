package server

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// attached are providers of a sandbox with their profiles, and the rows of both.
type attached struct {
	all  []policy.Attached
	rows []store.Object
}

func (r providerReader) attached(workspace string, names []string) (attached, error) {
	var a attached
	for _, name := range names {
		provider, err := r.read(store.ProviderKey(workspace, name))
		if err != nil {
			return attached{}, err
		}
		row, err := r.object(profileKey(provider.GetProfileWorkspace(), provider.GetType()))
		if err != nil {
			return attached{}, err
		}
		profile, err := decode[openshellv1.ProviderProfile](row)
		if err != nil {
			return attached{}, err
		}
		a.all = append(a.all, policy.Attached{Name: name, Profile: profile})
		a.rows = append(a.rows, r.rows[store.ProviderKey(workspace, name)], row)
	}
	return a, nil
}

// admits refuses a policy that does not go together with what providers add to it. One for no providers has been checked by
// itself already.
func (r providerReader) admits(workspace string, names []string, base *sandboxv1.SandboxPolicy) error {
	if len(names) == 0 && boundProvider(base) == "" {
		return nil
	}
	a, err := r.attached(workspace, names)
	if err != nil {
		return err
	}
	if err := policy.Bindings(base, a.all); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	effective := policy.Compose(base, a.all)
	if err := checkEndpoints(effective); err != nil {
		return err
	}
	if err := policy.Uninspected(effective); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return nil
}

// checkReach refuses an update of a profile after which a sandbox would have a policy that does not go together with its
// providers. The profile has been written, in the transaction.
func checkReach(tx store.Tx, profile store.Object) error {
	now, err := tx.Now()
	if err != nil {
		return err
	}
	providers, err := tx.Referrers(profile)
	if err != nil {
		return err
	}
	read, seen := newProviderReader(tx.Object, now), map[string]bool{}
	for _, provider := range providers {
		sandboxes, err := tx.Referrers(store.Object{ID: provider.ID})
		if err != nil {
			return err
		}
		for _, sandbox := range sandboxes {
			if seen[sandbox.ID] {
				continue
			}
			seen[sandbox.ID] = true
			if err := read.checkSandbox(tx, sandbox.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r providerReader) checkSandbox(tx store.Tx, id string) error {
	sandbox, err := tx.Sandbox(store.Target{ID: id}, nil)
	if errors.Is(err, store.ErrNotFound) { // deleted since
		return nil
	}
	if err != nil {
		return err
	}
	base, err := basePolicy(tx.ListObjects, sandbox)
	if err != nil {
		return err
	}
	err = r.admits(sandbox.Workspace, sandbox.Spec.GetProviders(), base)
	if status.Code(err) == codes.FailedPrecondition {
		return &brokenSandboxError{sandbox: sandbox, problem: status.Convert(err).Message()}
	}
	return err
}

// brokenSandboxError is an update that a sandbox would not go together with.
type brokenSandboxError struct {
	sandbox store.Sandbox
	problem string
}

func (e *brokenSandboxError) Error() string {
	return "it would break sandbox '" + e.sandbox.Name + "' in workspace '" + e.sandbox.Workspace + "': " + e.problem
}
