package acceptance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	tfjson "github.com/hashicorp/terraform-json"
)

// resource is the sandbox in the state; nil when there is none.
func (s *stage) resource() *tfjson.StateResource {
	s.t.Helper()
	return s.at(web)
}

// at is the resource with an address in the state; nil when there is none.
func (s *stage) at(address string) *tfjson.StateResource {
	s.t.Helper()
	state, err := s.State(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if state.Values == nil {
		return nil
	}
	i := slices.IndexFunc(state.Values.RootModule.Resources, func(r *tfjson.StateResource) bool { return r.Address == address })
	if i < 0 {
		return nil
	}
	return state.Values.RootModule.Resources[i]
}

// id is the sandbox's id in the state; empty when there is none.
func (s *stage) id() string {
	s.t.Helper()
	r := s.resource()
	if r == nil {
		return ""
	}
	id, _ := r.AttributeValues["id"].(string)
	return id
}

// attribute is what the state has of a resource; nil when it has none.
func (s *stage) attribute(address, name string) any {
	s.t.Helper()
	if r := s.at(address); r != nil {
		return r.AttributeValues[name]
	}
	return nil
}

// raw is the state file.
func (s *stage) raw() []byte {
	s.t.Helper()
	raw, err := s.RawState()
	if err != nil {
		s.t.Fatal(err)
	}
	return raw
}

// stateIs checks that a command left the state as it was. Terraform may still write the file again, with the paths of
// sensitive attributes in another order, and counts that.
func (s *stage) stateIs(before []byte) {
	s.t.Helper()
	after := s.raw()
	if bytes.Equal(before, after) {
		return
	}
	if diff := cmp.Diff(s.decoded(before), s.decoded(after)); diff != "" {
		s.t.Errorf("the state was changed:\n%s", diff)
	}
}

// decoded is a state without what Terraform changes by itself.
func (s *stage) decoded(raw []byte) map[string]any {
	s.t.Helper()
	var state map[string]any
	if err := json.Unmarshal(raw, &state); err != nil {
		s.t.Fatal(err)
	}
	delete(state, "serial")
	for instance := range instances(state) {
		paths, _ := instance["sensitive_attributes"].([]any)
		slices.SortFunc(paths, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	return state
}

// instances are those of all resources in a decoded state.
func instances(state map[string]any) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		resources, _ := state["resources"].([]any)
		for _, r := range resources {
			resource, _ := r.(map[string]any)
			all, _ := resource["instances"].([]any)
			for _, i := range all {
				if instance, _ := i.(map[string]any); !yield(instance) {
					return
				}
			}
		}
	}
}

// dropIdentity makes the state one that was written by a command line that knows no identity.
func (s *stage) dropIdentity() {
	s.t.Helper()
	var state map[string]any
	if err := json.Unmarshal(s.raw(), &state); err != nil {
		s.t.Fatal(err)
	}
	dropped := false
	for instance := range instances(state) {
		_, had := instance["identity"]
		dropped = dropped || had
		delete(instance, "identity")
		delete(instance, "identity_schema_version")
	}
	if dropped != s.c.SupportsIdentity() {
		s.t.Errorf("the state had an identity: %v", dropped)
	}
	out, err := json.Marshal(state)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("terraform.tfstate", string(out))
}
