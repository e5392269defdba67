package api_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	conditionalv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/conditional/v1"
	optionsv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/options/v1"
	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
)

//go:embed testdata/upstream_facts.json
var factsJSON []byte

type fieldFacts struct {
	Name        string `json:"name"`
	Number      int32  `json:"number"`
	Type        string `json:"type"`
	Cardinality string `json:"cardinality"`
	Oneof       string `json:"oneof"`
}

type messageFacts struct {
	Fields   []fieldFacts `json:"fields"`
	Reserved []int32      `json:"reserved"`
}

type methodFacts struct {
	Request         string `json:"request"`
	Response        string `json:"response"`
	ClientStreaming bool   `json:"client_streaming"`
	ServerStreaming bool   `json:"server_streaming"`
	AuthMode        string `json:"auth_mode"`
	Scope           string `json:"scope"`
	WorkspaceRole   string `json:"workspace_role"`
	GlobalRole      string `json:"global_role"`
}

type contract struct {
	Messages map[string]messageFacts     `json:"messages"`
	Enums    map[string]map[string]int32 `json:"enums"`
	Methods  map[string]methodFacts      `json:"methods"`
}

// Whatever we declare in upstream's packages must be there, whole and equal; what we leave out is our choice.
func TestContractMatchesUpstream(t *testing.T) {
	var upstream contract
	if err := json.Unmarshal(factsJSON, &upstream); err != nil {
		t.Fatal(err)
	}
	ours := ourContract()
	// The smallest set that the project cannot do without, so that an empty registry does not pass for agreement.
	for _, method := range []string{"Health", "CreateSandbox", "DeleteSandbox", "UpdateConfig"} {
		if _, ok := ours.Methods["/openshell.v1.OpenShell/"+method]; !ok {
			t.Errorf("method %s is missing", method)
		}
	}
	compare(t, "message", upstream.Messages, ours.Messages)
	compare(t, "enum", upstream.Enums, ours.Enums)
	compare(t, "method", upstream.Methods, ours.Methods)
}

func compare[F any](t *testing.T, kind string, upstream, ours map[string]F) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		want, ok := upstream[name]
		if !ok {
			t.Errorf("%s %s is not upstream's", kind, name)
			continue
		}
		if diff := cmp.Diff(want, ours[name]); diff != "" {
			t.Errorf("%s %s (-upstream +ours):\n%s", kind, name, diff)
		}
	}
}

// The conditional calls ask for what the plain calls ask for, and wrap and return upstream's own messages.
func TestConditionalCallsFollowThePlainOnes(t *testing.T) {
	plain := openshellv1.File_openshell_v1_openshell_proto.Services().ByName("OpenShell").Methods()
	calls := conditionalv1.File_openshell_conditional_v1_conditional_proto.Services().ByName("ConditionalSandboxes").Methods()
	if calls.Len() != 6 {
		t.Errorf("%d conditional calls, want 6", calls.Len())
	}
	for i := range calls.Len() {
		call := calls.Get(i)
		name := call.Name()
		if name == "UpdateSandboxConfig" {
			name = "UpdateConfig"
		}
		counterpart := plain.ByName(name)
		if counterpart == nil {
			t.Errorf("%s has no plain form", call.Name())
			continue
		}
		if call.Output() != counterpart.Output() {
			t.Errorf("%s returns %s, the plain form %s", call.Name(), call.Output().FullName(), counterpart.Output().FullName())
		}
		fields := call.Input().Fields()
		precondition, request := fields.ByNumber(1), fields.ByNumber(2)
		if precondition == nil || precondition.Message() == nil || precondition.Message().Name() != "SandboxPrecondition" {
			t.Errorf("%s: field 1 is %v, want the precondition", call.Name(), precondition)
		}
		if request == nil || request.Message() != counterpart.Input() {
			t.Errorf("%s: field 2 is %v, want %s", call.Name(), request, counterpart.Input().FullName())
		}
		got, want := authorization(call), authorization(counterpart)
		want.AuthMode = "bearer" // sandboxes themselves have no business here
		if !proto.Equal(got, want) {
			t.Errorf("%s asks for %v, the plain form for %v", call.Name(), got, want)
		}
	}
}

// ourContract describes the registered openshell.* packages in the shape of the facts file.
func ourContract() contract {
	facts := contract{Messages: map[string]messageFacts{}, Enums: map[string]map[string]int32{}, Methods: map[string]methodFacts{}}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		pkg := string(file.Package())
		if strings.HasPrefix(pkg, "openshell.") && pkg != "openshell.conditional.v1" {
			facts.addMessages(file.Messages())
			facts.addEnums(file.Enums())
			facts.addMethods(file.Services())
		}
		return true
	})
	return facts
}

func (c contract) addMessages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		message := messages.Get(i)
		if message.IsMapEntry() {
			continue
		}
		facts := messageFacts{Fields: []fieldFacts{}, Reserved: []int32{}}
		for j := range message.Fields().Len() {
			facts.Fields = append(facts.Fields, describeField(message.Fields().Get(j)))
		}
		slices.SortFunc(facts.Fields, func(a, b fieldFacts) int { return int(a.Number - b.Number) })
		for j := range message.ReservedRanges().Len() {
			span := message.ReservedRanges().Get(j)
			for number := span[0]; number < span[1]; number++ {
				facts.Reserved = append(facts.Reserved, int32(number))
			}
		}
		slices.Sort(facts.Reserved)
		c.Messages[string(message.FullName())] = facts
		c.addMessages(message.Messages())
		c.addEnums(message.Enums())
	}
}

func describeField(field protoreflect.FieldDescriptor) fieldFacts {
	facts := fieldFacts{Name: string(field.Name()), Number: int32(field.Number()), Type: typeName(field), Cardinality: "singular"}
	switch {
	case field.IsMap():
		facts.Cardinality = "map"
		facts.Type = fmt.Sprintf("map<%s,%s>", typeName(field.MapKey()), typeName(field.MapValue()))
	case field.IsList():
		facts.Cardinality = "repeated"
	case field.HasOptionalKeyword():
		facts.Cardinality = "optional"
	}
	if oneof := field.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		facts.Oneof = string(oneof.Name())
	}
	return facts
}

func typeName(field protoreflect.FieldDescriptor) string {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return string(field.Message().FullName())
	case protoreflect.EnumKind:
		return string(field.Enum().FullName())
	default:
		return field.Kind().String()
	}
}

func (c contract) addEnums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		values := map[string]int32{}
		for j := range enums.Get(i).Values().Len() {
			value := enums.Get(i).Values().Get(j)
			values[string(value.Name())] = int32(value.Number())
		}
		c.Enums[string(enums.Get(i).FullName())] = values
	}
}

func (c contract) addMethods(services protoreflect.ServiceDescriptors) {
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			method := services.Get(i).Methods().Get(j)
			rule := authorization(method)
			c.Methods[fmt.Sprintf("/%s/%s", services.Get(i).FullName(), method.Name())] = methodFacts{
				Request: string(method.Input().FullName()), Response: string(method.Output().FullName()),
				ClientStreaming: method.IsStreamingClient(), ServerStreaming: method.IsStreamingServer(),
				AuthMode: rule.GetAuthMode(), Scope: rule.GetScope(),
				WorkspaceRole: rule.GetWorkspaceRole(), GlobalRole: rule.GetGlobalRole(),
			}
		}
	}
}

// authorization is a copy of the method's rule, empty when it has none.
func authorization(method protoreflect.MethodDescriptor) *optionsv1.AuthorizationRule {
	rule, ok := proto.GetExtension(method.Options(), optionsv1.E_Authorization).(*optionsv1.AuthorizationRule)
	if !ok || rule == nil {
		return &optionsv1.AuthorizationRule{}
	}
	return proto.CloneOf(rule)
}
