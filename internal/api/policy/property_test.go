package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	sandboxv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/sandbox/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/api/policy"
)

// authored fills in what a reader fills in, so that the message is one that Parse can return.
func authored(p *sandboxv1.SandboxPolicy) *sandboxv1.SandboxPolicy {
	p = policy.Canonical(p)
	p.Version = 1
	if p.GetLandlock() != nil && p.GetLandlock().GetCompatibility() == "" {
		p.Landlock.Compatibility = "best_effort"
	}
	for key, rule := range p.GetNetworkPolicies() {
		if rule.GetName() == "" {
			rule.Name = key
		}
		for _, e := range rule.GetEndpoints() {
			if len(e.GetPorts()) == 0 && e.GetPort() != 0 {
				e.Ports = []uint32{e.GetPort()}
			}
			e.Port = 0
			if len(e.GetPorts()) > 0 {
				e.Port = e.GetPorts()[0]
			}
		}
	}
	for key, m := range p.GetNetworkMiddlewares() {
		if m.GetName() == "" {
			m.Name = key
		}
		if m.GetConfig() == nil {
			m.Config = &structpb.Struct{}
		}
	}
	return p
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		text, err := policy.Format(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := policy.Parse(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if !policy.Equal(back, p) {
			t.Fatalf("the meaning has changed:\n%v\n%v\n%s", p, back, text)
		}
		if want := authored(p); !proto.Equal(back, want) {
			t.Fatalf("the message has changed:\n%v\n%v\n%s", want, back, text)
		}
		again, err := policy.Format(back)
		if err != nil || again != text {
			t.Fatalf("the text has changed (%v):\n%s\n%s", err, text, again)
		}
	})
}

func TestCanonicalIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		before := proto.CloneOf(p)
		once := policy.Canonical(p)
		if twice := policy.Canonical(once); !proto.Equal(once, twice) {
			t.Fatalf("%v\n%v", once, twice)
		}
		if policy.Hash(p) != policy.Hash(once) || !policy.Equal(p, once) || !proto.Equal(p, before) {
			t.Fatal("the canonical form is another policy, or the argument was changed")
		}
	})
}

// shuffle reorders and repeats the items of every list that stands for a set.
func shuffle(t *rapid.T, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case f.Message() != nil && f.Message().FullName() == "google.protobuf.Struct":
		case f.IsMap():
			for _, key := range sortedKeys(value.Map()) {
				shuffle(t, m.Mutable(f).Map().Mutable(key).Message())
			}
		case f.IsList():
			items := make([]protoreflect.Value, value.List().Len())
			for i := range items {
				items[i] = value.List().Get(i)
				if f.Message() != nil {
					shuffle(t, items[i].Message())
				}
			}
			items = rapid.Permutation(items).Draw(t, string(f.Name()))
			if len(items) > 0 && rapid.Bool().Draw(t, "repeat") {
				again := items[0]
				if f.Message() != nil {
					again = protoreflect.ValueOfMessage(proto.Clone(again.Message().Interface()).ProtoReflect())
				}
				items = append(items, again)
			}
			m.Clear(f)
			for _, item := range items {
				m.Mutable(f).List().Append(item)
			}
		case f.Message() != nil:
			shuffle(t, m.Mutable(f).Message())
		}
		return true
	})
}

func TestEqualUnderReordering(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		shuffled := proto.CloneOf(p)
		shuffle(t, shuffled.ProtoReflect())
		if !policy.Equal(p, p) || !policy.Equal(p, shuffled) || !policy.Equal(shuffled, p) {
			t.Fatalf("not equal:\n%v\n%v", p, shuffled)
		}
		if change := policy.Compare(p, shuffled); change.Kind != policy.Unchanged {
			t.Fatalf("%v: %v", change.Kind, change.Reasons)
		}
	})
}

// What Compare, FillStatic, CheckLive and Equal say fits together.
func TestChangesAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		current := anyPolicy().Draw(t, "current")
		next := anyPolicy().Draw(t, "next")
		switch rapid.IntRange(0, 3).Draw(t, "how near") {
		case 0: // the same fixed parts
			next.Filesystem, next.Landlock, next.Process = proto.CloneOf(current.GetFilesystem()), proto.CloneOf(current.GetLandlock()), proto.CloneOf(current.GetProcess())
		case 1: // some left out
			next.Landlock, next.Process = nil, nil
			next.Filesystem = proto.CloneOf(current.GetFilesystem())
			if next.GetFilesystem() != nil {
				next.Filesystem.ReadOnly = append(next.Filesystem.ReadOnly, "/added")
			}
		case 2: // the same network parts
			next.NetworkPolicies, next.NetworkMiddlewares = current.GetNetworkPolicies(), current.GetNetworkMiddlewares()
		}
		change := policy.Compare(current, next)
		filled := policy.FillStatic(next, current)
		if live := policy.CheckLive(current, filled); (change.Kind != policy.Replace) && live != nil {
			t.Fatalf("%v, but a gateway refuses: %v", change.Kind, live)
		}
		if unchanged := change.Kind == policy.Unchanged; unchanged != policy.Equal(current, filled) {
			t.Fatalf("%v, but Equal is %t", change.Kind, !unchanged)
		}
		if (len(change.Reasons) == 0) != (change.Kind == policy.Unchanged) {
			t.Fatalf("%v for %v", change.Kind, change.Reasons)
		}
		if again := policy.FillStatic(filled, current); !proto.Equal(again, filled) {
			t.Fatalf("filling twice differs:\n%v\n%v", filled, again)
		}
		if second := policy.Compare(current, filled); second.Kind != change.Kind {
			t.Fatalf("%v, after filling %v", change.Kind, second.Kind)
		}
		if back := policy.Compare(filled, filled); back.Kind != policy.Unchanged {
			t.Fatalf("with itself: %v", back.Reasons)
		}
	})
}

// Validate and Ambiguities take anything, and report in the same order each time.
func TestJudgingIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy().Draw(t, "policy")
		for _, judge := range []func(*sandboxv1.SandboxPolicy) error{policy.Validate, policy.Ambiguities} {
			if first, second := fmt.Sprint(judge(p)), fmt.Sprint(judge(p)); first != second {
				t.Fatalf("%s\n%s", first, second)
			}
		}
	})
}

// The same endpoints are ambiguous in whatever order their rules stand.
func TestAmbiguityIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoint := rapid.Custom(func(t *rapid.T) *sandboxv1.NetworkEndpoint {
			return &sandboxv1.NetworkEndpoint{
				Host:        rapid.SampledFrom([]string{"", "a.b.c", "*.b.c", "a.*.c", "**.c.d", "x.b.c"}).Draw(t, "host"),
				Ports:       rapid.SliceOfN(rapid.Uint32Range(1, 3), 1, 2).Draw(t, "ports"),
				Path:        rapid.SampledFrom([]string{"", "/**", "/a", "/b", "/?", "/[ab]"}).Draw(t, "path"),
				Protocol:    rapid.SampledFrom([]string{"", "tcp", "rest", "graphql"}).Draw(t, "protocol"),
				Tls:         sandboxv1.NetworkTlsMode(rapid.Int32Range(0, 1).Draw(t, "tls")),
				Enforcement: sandboxv1.NetworkEnforcementMode(rapid.Int32Range(0, 2).Draw(t, "enforcement")),
			}
		})
		endpoints := rapid.SliceOfN(endpoint, 2, 5).Draw(t, "endpoints")
		judge := func() bool {
			p := &sandboxv1.SandboxPolicy{NetworkPolicies: map[string]*sandboxv1.NetworkPolicyRule{"r": {Endpoints: endpoints}}}
			return policy.Ambiguities(p) != nil
		}
		first := judge()
		slices.Reverse(endpoints)
		if judge() != first {
			t.Fatalf("ambiguous is %t, the other way round %t: %v", first, !first, endpoints)
		}
	})
}
