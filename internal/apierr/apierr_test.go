package apierr_test

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/google/go-cmp/cmp"

	"github.com/openshell-iac/terraform-provider-openshell/internal/apierr"
)

// Every typed error must survive the wire: status out, typed error back, code as documented.
func TestRoundTrip(t *testing.T) {
	const a, b = "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0001", "0b5c6a5e-98a5-4a44-a3a5-6d1b5a6a0002"
	for _, tc := range []struct {
		err  error
		code codes.Code
	}{
		{&apierr.InvalidArgument{Field: "spec.command[0]", Problem: "must not be empty"}, codes.InvalidArgument},
		{&apierr.VersionConflict{Current: 7}, codes.Aborted},
		{&apierr.VersionConflict{}, codes.Aborted},
		{&apierr.IdentityMismatch{Workspace: "default", Name: "web", ExpectedID: a, CurrentID: b}, codes.FailedPrecondition},
		{&apierr.OperationPending{Workspace: "default", Name: "web", ID: a}, codes.FailedPrecondition},
		{&apierr.PreconditionRequired{Method: "/openshell.conditional.v1.ConditionalSandboxes/DeleteSandbox"}, codes.FailedPrecondition},
		{&apierr.RequestReplayUnavailable{}, codes.FailedPrecondition},
		{&apierr.RequestPayloadMismatch{}, codes.FailedPrecondition},
		{&apierr.RequestOutcomeUncertain{}, codes.FailedPrecondition},
	} {
		t.Run(fmt.Sprintf("%T", tc.err), func(t *testing.T) {
			st, ok := status.FromError(tc.err)
			if !ok || st.Code() != tc.code {
				t.Fatalf("status %v (%v), want %v", st.Code(), ok, tc.code)
			}
			wire := status.FromProto(st.Proto()).Err() // what a client receives
			if diff := cmp.Diff(tc.err, apierr.From(wire)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a gateway does not say is not made up.
func TestVersionConflictSaysWhatIsKnown(t *testing.T) {
	for _, tc := range []struct {
		err  apierr.VersionConflict
		want string
	}{
		{apierr.VersionConflict{}, "the sandbox is not at the expected resource version; nothing was changed. Read it again"},
		{apierr.VersionConflict{Current: 7}, "the sandbox is not at the expected resource version but at 7; nothing was changed. Read it again"},
		{
			apierr.VersionConflict{Workspace: "default", Name: "web", ID: "some-id", Current: 7},
			"sandbox 'web' in workspace 'default' (id some-id) is not at the expected resource version but at 7; nothing was changed. Read it again",
		},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// A reason means something only under its own domain and code; anything else must stay the error it was.
func TestFromLeavesOthersAlone(t *testing.T) {
	foreign := func(code codes.Code, domain, reason string) error {
		st, err := status.New(code, "text").WithDetails(&errdetails.ErrorInfo{Domain: domain, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	for name, err := range map[string]error{
		"no status":      errors.New("plain"),
		"no details":     status.Error(codes.FailedPrecondition, "sandbox 'web' has another id"),
		"foreign domain": foreign(codes.FailedPrecondition, "example.com", apierr.ReasonIdentityMismatch),
		"other code":     foreign(codes.NotFound, apierr.DomainConditional, apierr.ReasonIdentityMismatch),
		"upstream's domain for our reason": foreign(codes.FailedPrecondition, apierr.DomainOpenShell,
			apierr.ReasonIdentityMismatch),
		"unknown reason": foreign(codes.FailedPrecondition, apierr.DomainConditional, "SOMETHING_NEW"),
	} {
		t.Run(name, func(t *testing.T) {
			if got := apierr.From(err); !errors.Is(got, err) {
				t.Errorf("From turned it into %T %v", got, got)
			}
		})
	}
	if apierr.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
}
