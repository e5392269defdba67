package fuzz

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// anID is nobody's.
const anID = "5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a"

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// FuzzPrecondition lets a precondition through to the store only if it names an id, and as it is.
func FuzzPrecondition(f *testing.F) {
	for _, seed := range []*conditionalv1.SandboxPrecondition{
		{},
		{Id: new(anID)},
		{Id: new(strings.ToUpper(anID)), ResourceVersion: new(uint64(1<<64 - 1))},
		{Id: new(anID), ResourceVersion: new(uint64(0))},
		{Id: new("{" + anID + "}")},
		{Id: new(strings.ReplaceAll(anID, "-", ""))},
		{Id: new("urn:uuid:" + anID)},
		{ResourceVersion: new(uint64(7))},
	} {
		f.Add(wireOf(f, seed), sample, uint64(0))
		f.Add(wireOf(f, seed), "", uint64(3))
	}
	full, m := populated(f), newMemory()
	g := newGateway(f, m)
	f.Fuzz(func(t *testing.T, wire []byte, name string, expected uint64) {
		p := &conditionalv1.SandboxPrecondition{}
		if proto.Unmarshal(wire, p) != nil || !utf8.ValidString(name) {
			return
		}
		for method, req := range map[string]proto.Message{
			conditionalv1.ConditionalSandboxes_DeleteSandbox_FullMethodName: &conditionalv1.ConditionalDeleteSandboxRequest{
				Precondition: p, Request: &openshellv1.DeleteSandboxRequest{Name: name, WorkspaceScope: home},
			},
			conditionalv1.ConditionalSandboxes_DetachSandboxProvider_FullMethodName: &conditionalv1.ConditionalDetachSandboxProviderRequest{
				Precondition: p, Request: &openshellv1.DetachSandboxProviderRequest{
					Sandbox: name, Provider: sample, WorkspaceScope: home, ExpectedResourceVersion: expected,
				},
			},
		} {
			m.restore(full)
			_, err := g.call(t, method, req)
			wantShown(t, err)
			want := store.Precondition{ID: strings.ToLower(p.GetId()), ResourceVersion: p.GetResourceVersion()}
			sound := name != "" && uuidForm.MatchString(p.GetId()) && (p.ResourceVersion == nil || p.GetResourceVersion() != 0)
			if method == conditionalv1.ConditionalSandboxes_DetachSandboxProvider_FullMethodName {
				sound = sound && (expected == 0 || want.ResourceVersion == 0)
				want.ResourceVersion = max(want.ResourceVersion, expected)
			}
			if refused := status.Code(err) == codes.InvalidArgument; refused == sound || sound != (m.precondition != nil) {
				t.Fatalf("%s: %v and %d for %q: %v", method, p, expected, name, err)
			}
			if sound && *m.precondition != want {
				t.Errorf("%s: %+v, want %+v", method, *m.precondition, want)
			}
		}
	})
}

// FuzzFingerprint tells requests apart by all but their request_id.
func FuzzFingerprint(f *testing.F) {
	f.Add("web", true, []byte("a"), uint64(0), []byte("1"))
	f.Add("-", false, []byte{}, uint64(1), []byte{})
	full, m := populated(f), newMemory()
	g := newGateway(f, m)
	f.Fuzz(func(t *testing.T, name string, allowMissing bool, expectedID []byte, version uint64, requestID []byte) {
		if name == "" || !utf8.ValidString(name) {
			return
		}
		id := uuid.NewSHA1(uuid.NameSpaceOID, expectedID)
		stamp := func(edit func(*openshellv1.DeleteSandboxRequest), id uuid.UUID, version uint64) string {
			m.restore(full)
			req := &openshellv1.DeleteSandboxRequest{
				Name: name, AllowMissing: allowMissing, WorkspaceScope: home, RequestId: uuid.NewSHA1(uuid.NameSpaceURL, requestID).String(),
			}
			edit(req)
			text := id.String()
			p := &conditionalv1.SandboxPrecondition{Id: &text, ResourceVersion: &version}
			_, err := g.call(t, conditionalv1.ConditionalSandboxes_DeleteSandbox_FullMethodName, &conditionalv1.ConditionalDeleteSandboxRequest{Precondition: p, Request: req})
			wantShown(t, err)
			if m.admission == nil {
				t.Fatalf("not admitted: %v", err)
			}
			return m.admission.Fingerprint
		}
		version = max(version, 1)
		same := func(*openshellv1.DeleteSandboxRequest) {}
		first := stamp(same, id, version)
		if first != stamp(func(r *openshellv1.DeleteSandboxRequest) { r.RequestId = uuid.NewString() }, id, version) {
			t.Error("the request_id is in it")
		}
		for what, other := range map[string]string{
			"name":             stamp(func(r *openshellv1.DeleteSandboxRequest) { r.Name += "x" }, id, version),
			"allow_missing":    stamp(func(r *openshellv1.DeleteSandboxRequest) { r.AllowMissing = !allowMissing }, id, version),
			"expected id":      stamp(same, uuid.NewSHA1(uuid.NameSpaceOID, append(expectedID, 'x')), version),
			"expected version": stamp(same, id, max(version+1, 1)),
		} {
			if other == first {
				t.Errorf("the %s is not in it", what)
			}
		}
	})
}
