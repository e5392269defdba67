package server

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	datamodelv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/datamodel/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/rules"
	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store/sqlite"
)

func marshalled(f *testing.F, m proto.Message) []byte {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzCreateSandbox has what the checks of a create let through stored and read back as it was; what they refuse must have a
// status that a client can be shown.
func FuzzCreateSandbox(f *testing.F) {
	config, err := structpb.NewStruct(map[string]any{simulated.Name: map[string]any{"ready_after": "1s", "exit_code": 3}})
	if err != nil {
		f.Fatal(err)
	}
	scope := &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: store.DefaultWorkspace}}
	for _, seed := range []*openshellv1.CreateSandboxRequest{
		{},
		{Spec: &openshellv1.SandboxSpec{}, WorkspaceScope: scope},
		{Name: "web", Labels: map[string]string{"a/b": "c"}, Annotations: map[string]string{"a": "b\x00c"}, RequestId: uuid.NewString(), Spec: &openshellv1.SandboxSpec{
			LogLevel: "info", Environment: map[string]string{"A": "b"}, Command: []string{"sh", "-c", "true"}, Tty: true,
			Providers: []string{"p", "p"}, RestartPolicy: openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS,
			Template: &openshellv1.SandboxTemplate{Image: "busybox", DriverConfig: config},
		}},
		{Name: "-web", Spec: &openshellv1.SandboxSpec{}},
		{Name: strings.Repeat("w", 64), Spec: &openshellv1.SandboxSpec{Environment: map[string]string{"1A": "b"}}},
		{WorkloadTemplate: "t"},
	} {
		f.Add(marshalled(f, seed))
	}
	s, err := sqlite.Open(f.Context(), sqlite.Memory)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	f.Fuzz(func(t *testing.T, wire []byte) {
		req := &openshellv1.CreateSandboxRequest{}
		if proto.Unmarshal(wire, req) != nil {
			return
		}
		if err := refusal(req); err != nil {
			wantShown(t, err)
			return
		}
		draft := fillIn(req, nil)
		if problem := rules.Name(draft.Name); problem != "" {
			t.Fatalf("the name %q %s", draft.Name, problem)
		}
		draft.Spec.Providers = nil // of which there are none
		want := store.Sandbox{ID: uuid.NewString(), Name: draft.Name, Labels: draft.Labels, Annotations: draft.Annotations, Spec: draft.Spec, Status: &openshellv1.SandboxStatus{}}
		created, err := s.CreateSandbox(t.Context(), store.DefaultWorkspace, func(time.Time) store.Sandbox { return want })
		if err != nil {
			t.Fatal(err)
		}
		defer removeRow(t, s, created.ID)
		got, err := s.SandboxByID(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ToProto(created), ToProto(got), protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
			t.Errorf("(-created +read)\n%s", diff)
		}
	})
}

// refusal is what the checks of a create say that need neither caller nor store.
func refusal(req *openshellv1.CreateSandboxRequest) error {
	if err := checkCreate(req); err != nil {
		return err
	}
	if _, err := oneWorkspace(req.GetWorkspaceScope()); err != nil {
		return err
	}
	if id := req.GetRequestId(); id != "" {
		if err := checkRequestID(id); err != nil {
			return err
		}
	}
	if name := req.GetWorkloadTemplate(); name != "" {
		return noTemplate(store.DefaultWorkspace, name)
	}
	draft := fillIn(req, nil)
	if err := addPolicy(&draft); err != nil {
		return err
	}
	err := simulated.Driver{}.Validate(draft.Spec)
	var invalid *driver.InvalidError
	if errors.As(err, &invalid) {
		return &apierr.InvalidArgument{Field: "spec." + invalid.Field, Problem: invalid.Problem}
	}
	return err
}

// wantShown holds a refusal to being the request's fault, in words.
func wantShown(t *testing.T, err error) {
	t.Helper()
	st := status.Convert(knownStatus(err))
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.FailedPrecondition:
	default:
		t.Errorf("code %v of %v", st.Code(), err)
	}
	if st.Message() == "" || !utf8.ValidString(st.Message()) {
		t.Errorf("message %q", st.Message())
	}
}

func removeRow(t *testing.T, s store.Store, id string) {
	t.Helper()
	_, err := s.ChangeSandbox(context.Background(), store.Target{ID: id}, nil, func(store.Sandbox, time.Time) (store.Change, error) {
		return store.Change{Remove: true}, nil
	})
	if err != nil {
		t.Error(err)
	}
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// FuzzPrecondition lets a precondition through only if it names an id.
func FuzzPrecondition(f *testing.F) {
	for _, seed := range []*conditionalv1.SandboxPrecondition{
		{},
		{Id: new("5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a")},
		{Id: new("5B2E6F0A-7C1D-4A53-9F0E-3D9F5F1C2B3A"), ResourceVersion: new(uint64(1<<64 - 1))},
		{Id: new("5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a"), ResourceVersion: new(uint64(0))},
		{Id: new("{5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a}")},
		{Id: new("5b2e6f0a7c1d4a539f0e3d9f5f1c2b3a")},
		{Id: new("urn:uuid:5b2e6f0a-7c1d-4a53-9f0e-3d9f5f1c2b3a")},
		{ResourceVersion: new(uint64(7))},
	} {
		f.Add(marshalled(f, seed), "web", uint64(0))
		f.Add(marshalled(f, seed), "web", uint64(3))
	}
	scope := &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: store.DefaultWorkspace}}
	f.Fuzz(func(t *testing.T, wire []byte, name string, expected uint64) {
		p := &conditionalv1.SandboxPrecondition{}
		if proto.Unmarshal(wire, p) != nil {
			return
		}
		sound := name != "" && uuidForm.MatchString(p.GetId()) && (p.ResourceVersion == nil || p.GetResourceVersion() != 0) &&
			(expected == 0 || p.GetResourceVersion() == 0)
		workspace, got, err := checkConditional(name, scope, p, expected)
		if (err == nil) != sound {
			t.Fatalf("%v and %d for %q: %v", p, expected, name, err)
		}
		if err != nil {
			wantShown(t, err)
			return
		}
		want := store.Precondition{ID: strings.ToLower(p.GetId()), ResourceVersion: max(p.GetResourceVersion(), expected)}
		if *got != want || workspace != store.DefaultWorkspace {
			t.Errorf("%+v in %q, want %+v", *got, workspace, want)
		}
	})
}

// FuzzPageToken reads no token of another list, and its own as they were.
func FuzzPageToken(f *testing.F) {
	f.Add("", int64(0), "web", "default", "id")
	f.Add("e30", int64(1), "a\"b", "", "")
	f.Add(pageToken(store.Cursor{CreatedAt: time.UnixMicro(7), Name: "n"}, bind("list")), int64(1<<62), "\u2028", "w", "i")
	f.Add(pageToken(store.Cursor{CreatedAt: time.UnixMicro(7), Name: "n"}, bind("another list")), int64(-1), "", "", "")
	f.Add("eyJiIjpudWxsfXt9", int64(-1), "<&>", "", "")
	f.Fuzz(func(t *testing.T, token string, created int64, name, workspace, id string) {
		binding := bind("list")
		if after, err := readPageToken(token, binding); err != nil {
			wantShown(t, err)
		} else if token != "" {
			if _, err := readPageToken(token, bind("another list")); err == nil {
				t.Errorf("%q is of two lists", token)
			}
			again, err := readPageToken(pageToken(*after, binding), binding)
			if diff := cmp.Diff(after, again); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		}
		if !utf8.ValidString(name + workspace + id) { // the store has none of those
			return
		}
		last := store.Cursor{CreatedAt: time.UnixMicro(created), Name: name, Workspace: workspace, ID: id}
		after, err := readPageToken(pageToken(last, binding), binding)
		if diff := cmp.Diff(&last, after); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// FuzzFingerprint tells requests apart by all but their request_id.
func FuzzFingerprint(f *testing.F) {
	f.Add("web", "default", true, "a", uint64(0), "1")
	f.Add("", "", false, "", uint64(1), "")
	f.Add("web", "default", false, "a 1 ", uint64(12), "1")
	f.Fuzz(func(t *testing.T, name, workspace string, allowMissing bool, expectedID string, version uint64, requestID string) {
		if !utf8.ValidString(name + workspace + requestID) {
			return
		}
		request := func() *openshellv1.DeleteSandboxRequest {
			return &openshellv1.DeleteSandboxRequest{
				Name: name, AllowMissing: allowMissing, RequestId: requestID,
				WorkspaceScope: &datamodelv1.WorkspaceSelector{Selection: &datamodelv1.WorkspaceSelector_Workspace{Workspace: workspace}},
			}
		}
		stamp := func(edit func(r *openshellv1.DeleteSandboxRequest), p *store.Precondition) string {
			r := request()
			edit(r)
			text, err := fingerprint(r, p)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		same := func(*openshellv1.DeleteSandboxRequest) {}
		p := &store.Precondition{ID: expectedID, ResourceVersion: version}
		first := stamp(same, p)
		if first != stamp(func(r *openshellv1.DeleteSandboxRequest) { r.RequestId += "x" }, p) {
			t.Error("the request_id is in it")
		}
		for what, other := range map[string]string{
			"name":             stamp(func(r *openshellv1.DeleteSandboxRequest) { r.Name += "x" }, p),
			"allow_missing":    stamp(func(r *openshellv1.DeleteSandboxRequest) { r.AllowMissing = !allowMissing }, p),
			"precondition":     stamp(same, nil),
			"expected id":      stamp(same, &store.Precondition{ID: expectedID + "x", ResourceVersion: version}),
			"expected version": stamp(same, &store.Precondition{ID: expectedID, ResourceVersion: version + 1}),
		} {
			if other == first {
				t.Errorf("the %s is not in it", what)
			}
		}
	})
}
