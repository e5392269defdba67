package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	slashpath "path"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
	"github.com/openshell-iac/terraform-provider-openshell/internal/client"
)

// A gateway's policy is never just what was written: it fills in defaults, and saves a revision of its own with the paths
// that every sandbox needs. So the state keeps the text that was written, and a record of the revision that stood for it.
// Another revision is drift only if writing the text again would change it.

// policyRecord is kept in the private state beside the policy.
type policyRecord struct {
	// Version and Hash are those of the revision that the state's policy stands for.
	Version uint32 `json:"version"`
	Hash    string `json:"hash"`
	// Imported says that the policy was taken from a gateway and nothing has been written since.
	Imported bool `json:"imported,omitempty"`
}

const policyRecordKey = "policy"

// privateState is what the framework's requests and responses offer of it.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readRecord(ctx context.Context, private privateState, diags *diag.Diagnostics) policyRecord {
	var record policyRecord
	raw, d := private.GetKey(ctx, policyRecordKey)
	diags.Append(d...)
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &record); err != nil {
			diags.AddError("The private state cannot be read", sentence(err))
		}
	}
	return record
}

func (r policyRecord) write(ctx context.Context, private privateState, diags *diag.Diagnostics) {
	raw, err := json.Marshal(r)
	if err != nil {
		diags.AddError("The private state cannot be written", sentence(err))
		return
	}
	diags.Append(private.SetKey(ctx, policyRecordKey, raw)...)
}

func recordOf(revision *openshellv1.SandboxPolicyRevision) policyRecord {
	return policyRecord{Version: revision.GetVersion(), Hash: revision.GetPolicyHash()}
}

// merged is the policy to write over a revision: what it leaves out of the parts that are fixed is taken from there, as
// are paths that only the revision has. The gateway adds such paths at the start, and none can be taken away.
func merged(next, over *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	if next.GetFilesystem() != nil {
		next = proto.CloneOf(next)
		files, known := next.GetFilesystem(), paths(next)
		files.ReadOnly = append(files.GetReadOnly(), pick(over.GetFilesystem().GetReadOnly(), known, false)...)
		files.ReadWrite = append(files.GetReadWrite(), pick(over.GetFilesystem().GetReadWrite(), known, false)...)
	}
	return policy.FillStatic(next, over)
}

// paths are those that a policy lists, whatever for.
func paths(p *sandboxv1.SandboxPolicy) map[string]bool {
	known := map[string]bool{}
	for _, list := range [][]string{p.GetFilesystem().GetReadOnly(), p.GetFilesystem().GetReadWrite()} {
		for _, p := range list {
			known[slashpath.Clean(p)] = true
		}
	}
	return known
}

// pick gives the paths that are known, or those that are not.
func pick(all []string, known map[string]bool, want bool) []string {
	var picked []string
	for _, p := range all {
		if known[slashpath.Clean(p)] == want {
			picked = append(picked, p)
		}
	}
	return picked
}

// drifted is the policy of a state whose text no longer stands for what the gateway has; nil while it does.
func drifted(ours, newest *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	switch policy.Compare(newest, merged(ours, newest)).Kind {
	case policy.Unchanged:
		return nil
	case policy.Live: // what is fixed is as we wrote it
		changed := proto.CloneOf(ours)
		changed.NetworkPolicies, changed.NetworkMiddlewares = newest.GetNetworkPolicies(), newest.GetNetworkMiddlewares()
		if files := changed.GetFilesystem(); files != nil {
			files.ReadOnly = pick(files.GetReadOnly(), paths(newest), true)
			files.ReadWrite = pick(files.GetReadWrite(), paths(newest), true)
		}
		return changed
	default:
		return newest
	}
}

// read looks at the sandbox, and at the newest revision of its policy if that is managed.
func (m sandboxModel) read(ctx context.Context, c *client.Client) (*openshellv1.SandboxPolicyRevision, *openshellv1.Sandbox, *client.Gone, error) {
	if m.Policy.IsNull() {
		sb, gone, err := c.Observe(ctx, m.ref())
		return nil, sb, gone, err
	}
	return c.ObservePolicy(ctx, m.ref(), 0)
}

// followPolicy takes the newest revision over into the state if it is not the one on record and says something else.
func (m *sandboxModel) followPolicy(ctx context.Context, newest *openshellv1.SandboxPolicyRevision, private privateState, diags *diag.Diagnostics) {
	if m.Policy.IsNull() || newest == nil {
		return
	}
	if newest.GetStatus() == openshellv1.PolicyStatus_POLICY_STATUS_FAILED {
		failed := &client.PolicyError{Ref: m.ref(), Version: newest.GetVersion(), LoadError: newest.GetLoadError()}
		report{title: "The sandbox could not load its policy", what: sentence(failed), ref: m.ref(), state: stateKept, todo: advice(failed, "read"), at: path.Root("policy")}.asWarning(diags)
	}
	record := readRecord(ctx, private, diags)
	if diags.HasError() || record.Version == newest.GetVersion() && record.Hash == newest.GetPolicyHash() {
		return
	}
	if changed := drifted(m.Policy.policy(), newest.GetPolicy()); changed != nil {
		text, err := policy.Format(changed)
		if err != nil {
			report{title: "The sandbox has a policy that this provider does not know all of", what: sentence(err), ref: m.ref(), state: stateKept,
				todo: "upgrade the provider to see the change; or have whoever wrote the policy write it anew.", at: path.Root("policy")}.asWarning(diags)
			return
		}
		m.Policy = newPolicy(text)
	}
	record.Version, record.Hash = newest.GetVersion(), newest.GetPolicyHash()
	record.write(ctx, private, diags)
}

// recordPolicy notes which revision stands for the policy of a new sandbox. Without it the next read compares by meaning.
func (m sandboxModel) recordPolicy(ctx context.Context, c *client.Client, private privateState, diags *diag.Diagnostics) {
	if m.Policy.IsNull() {
		return
	}
	if newest, _, _, err := c.ObservePolicy(ctx, m.ref(), 0); err == nil && newest != nil {
		recordOf(newest).write(ctx, private, diags)
	}
}

// importPolicy takes the newest revision over; the policy of the creation where there is none.
func (m *sandboxModel) importPolicy(ctx context.Context, c *client.Client, private privateState, diags *diag.Diagnostics) error {
	newest, sb, gone, err := c.ObservePolicy(ctx, m.ref(), 0)
	switch {
	case err != nil:
		return err
	case gone != nil:
		return &client.GoneError{Ref: m.ref(), Gone: *gone}
	}
	p := sb.GetSpec().GetPolicy()
	if newest != nil {
		p = newest.GetPolicy()
	}
	m.Policy = nullPolicy()
	if p == nil {
		return nil
	}
	text, err := policy.Format(p)
	if err != nil {
		return fmt.Errorf("its policy has what this version of the provider does not know: %w", err)
	}
	m.Policy = newPolicy(text)
	record := recordOf(newest)
	record.Imported = true
	record.write(ctx, private, diags)
	return nil
}

// setPolicy writes the planned policy over the newest revision, bound to the sandbox's id, and waits until it is loaded. That
// another revision has followed is no failure of this one: if it says something else, the next refresh shows that.
func (m sandboxModel) setPolicy(ctx context.Context, c *client.Client, state *sandboxModel, private privateState, diags *diag.Diagnostics) error {
	newest, sb, gone, err := c.ObservePolicy(ctx, m.ref(), 0)
	switch {
	case err != nil:
		return err
	case gone != nil:
		return &client.GoneError{Ref: m.ref(), Gone: *gone}
	}
	over := sb.GetSpec().GetPolicy()
	if newest != nil {
		over = newest.GetPolicy()
	}
	revision, err := c.SetPolicy(ctx, m.ref(), merged(m.Policy.policy(), over))
	if err != nil {
		return err
	}
	state.Policy = m.Policy
	recordOf(revision).write(ctx, private, diags)
	err = c.WaitForPolicy(ctx, m.ref(), revision.GetVersion())
	if superseded, ok := errors.AsType[*client.PolicyError](err); ok && superseded.Superseded {
		report{title: "The sandbox's policy has changed again", what: sentence(superseded), ref: m.ref(), state: "holds the policy as it was written; the next refresh reads the newer one.", at: path.Root("policy"),
			todo: "run terraform plan, which shows whether the newer one says something else, and find out who wrote it."}.asWarning(diags)
		return nil
	}
	return err
}
