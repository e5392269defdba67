package policy

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

// MergeCode is the kind of answer that a gateway owes for a refused merge.
type MergeCode int

const (
	// MergeInvalid says that the operation is malformed or asks for what no policy may have; INVALID_ARGUMENT.
	MergeInvalid MergeCode = iota
	// MergeConflict says that the operation does not fit the current policy; FAILED_PRECONDITION.
	MergeConflict
	// MergeNotFound says that the endpoint an operation names is not there; NOT_FOUND.
	MergeNotFound
)

// MergeError refuses a list of operations as a whole.
type MergeError struct {
	Code MergeCode
	// Message says what is wrong and what to do, first the field path of the operation at fault, if it is one alone.
	Message string
}

func (e *MergeError) Error() string { return e.Message }

// Merged is the outcome of a merge.
type Merged struct {
	// Policy is canonical and valid.
	Policy *sandboxv1.SandboxPolicy
	// Changed is false if the operations had nothing to do.
	Changed bool
}

// Merge applies UpdateConfig's merge operations to the current policy, all of them or none, in their order. A missing
// policy is an empty one. Only network rules change. An error is a [*MergeError].
//
// The rules are upstream's (NVIDIA/OpenShell 0.1, crates/*-policy/src/merge.rs at 0b37da61). A rule grants every one of
// its programs every one of its endpoints. Adding to a rule must therefore not grant a pair that the operation did not
// declare; removing what is not there is no error. Where the two disagree about how traffic is inspected, what the current
// policy says stays.
//
// Upstream contradicts itself on a rule without programs: to its merge code it is for every program, to its documentation
// and its proxy for none. The wider reading counts here wherever a merge has to judge what is granted, since who errs on that
// side grants nothing.
//
// Stricter than upstream in two points. A field that a merge would drop without a word is refused. So is a merge of a rule
// that names programs with one that names none: it would open the endpoints to everything, or take them from everybody.
func Merge(current *sandboxv1.SandboxPolicy, operations []*openshellv1.PolicyMergeOperation) (*Merged, error) {
	if current == nil {
		current = &sandboxv1.SandboxPolicy{}
	}
	if err := Validate(current); err != nil {
		return nil, &MergeError{Code: MergeConflict, Message: "the current policy is not valid, replace it as a whole: " + err.Error()}
	}
	for i, operation := range operations {
		if err := checkOperation(operation, i); err != nil {
			return nil, err
		}
	}
	base := Canonical(current)
	m := &merger{policy: proto.CloneOf(base)}
	for i, operation := range operations {
		m.index = i
		if err := m.apply(operation); err != nil {
			return nil, err
		}
	}
	if err := newInspectionConflict(base, m.policy); err != nil {
		return nil, err
	}
	merged := Canonical(m.policy)
	for _, check := range []func(*sandboxv1.SandboxPolicy) error{Validate, Ambiguities} {
		if err := check(merged); err != nil {
			return nil, &MergeError{Code: MergeConflict, Message: "the merged policy would not be valid: " + err.Error()}
		}
	}
	return &Merged{Policy: merged, Changed: !proto.Equal(base, merged)}, nil
}

// merger changes a private copy of the policy.
type merger struct {
	policy *sandboxv1.SandboxPolicy
	index  int
}

func refuse(code MergeCode, index int, field, format string, args ...any) *MergeError {
	at := fmt.Sprintf("merge_operations[%d]", index)
	if field != "" {
		at += "." + field
	}
	return &MergeError{Code: code, Message: at + ": " + fmt.Sprintf(format, args...)}
}

func (m *merger) apply(operation *openshellv1.PolicyMergeOperation) error {
	switch op := operation.GetOperation().(type) {
	case *openshellv1.PolicyMergeOperation_AddRule:
		return m.addRule(strings.TrimSpace(op.AddRule.GetRuleName()), op.AddRule.GetRule())
	case *openshellv1.PolicyMergeOperation_RemoveEndpoint:
		m.removeEndpoint(strings.TrimSpace(op.RemoveEndpoint.GetRuleName()), strings.TrimSpace(op.RemoveEndpoint.GetHost()), op.RemoveEndpoint.GetPort())
	case *openshellv1.PolicyMergeOperation_RemoveRule:
		delete(m.policy.GetNetworkPolicies(), strings.TrimSpace(op.RemoveRule.GetRuleName()))
	case *openshellv1.PolicyMergeOperation_RemoveBinary:
		return m.removeBinary(strings.TrimSpace(op.RemoveBinary.GetRuleName()), strings.TrimSpace(op.RemoveBinary.GetBinaryPath()))
	case *openshellv1.PolicyMergeOperation_AddDenyRules:
		return m.addDenyRules(op.AddDenyRules)
	case *openshellv1.PolicyMergeOperation_AddAllowRules:
		return m.addAllowRules(op.AddAllowRules)
	}
	return nil
}

// removeEndpoint takes a port from the endpoints with the host, of one rule or of all; what is empty then goes too.
func (m *merger) removeEndpoint(ruleName, host string, port uint32) {
	for key, rule := range m.policy.GetNetworkPolicies() {
		if ruleName != "" && key != ruleName {
			continue
		}
		had := len(rule.GetEndpoints())
		rule.Endpoints = slices.DeleteFunc(rule.GetEndpoints(), func(e *sandboxv1.NetworkEndpoint) bool {
			if !strings.EqualFold(e.GetHost(), host) || !slices.Contains(ports(e), port) {
				return false
			}
			setPorts(e, slices.DeleteFunc(slices.Clone(ports(e)), func(p uint32) bool { return p == port }))
			return len(e.GetPorts()) == 0
		})
		if had > 0 && len(rule.GetEndpoints()) == 0 {
			delete(m.policy.GetNetworkPolicies(), key)
		}
	}
}

// removeBinary removes the rule with its last program: without any, it could be read as granting its endpoints to all.
func (m *merger) removeBinary(ruleName, binary string) error {
	rule, ok := m.policy.GetNetworkPolicies()[ruleName]
	if !ok {
		return nil
	}
	if len(rule.GetBinaries()) == 0 {
		return refuse(MergeConflict, m.index, "remove_binary", "rule %s names no program, so none can be taken from it; remove the rule, or replace the policy with one that lists programs", show(ruleName))
	}
	rule.Binaries = slices.DeleteFunc(rule.GetBinaries(), func(b *sandboxv1.NetworkBinary) bool { return b.GetPath() == binary })
	if len(rule.GetBinaries()) == 0 {
		delete(m.policy.GetNetworkPolicies(), ruleName)
	}
	return nil
}

// setPorts keeps both port fields, sorted and without repetition.
func setPorts(e *sandboxv1.NetworkEndpoint, all []uint32) {
	e.Ports = slices.Compact(slices.Sorted(slices.Values(all)))
	e.Port = 0
	if len(e.GetPorts()) > 0 {
		e.Port = e.GetPorts()[0]
	}
}

// appendNew appends the items that are not yet there. It keys them by their encoding, to stay linear.
func appendNew[M proto.Message](items []M, more ...M) []M {
	known := make(map[string]bool, len(items))
	key := func(item M) string { return string(encode(item.ProtoReflect(), inOrder)) }
	for _, item := range items {
		known[key(item)] = true
	}
	for _, item := range more {
		if k := key(item); !known[k] {
			known[k] = true
			items = append(items, proto.CloneOf(item))
		}
	}
	return items
}

// containsAll reports whether every wanted item is there.
func containsAll[M proto.Message](items, wanted []M) bool {
	return len(appendNew(slices.Clone(items), wanted...)) == len(items)
}
