package gateway_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Whatever text in a request is far too long, the answer fits into the 8 KiB of metadata that the strictest clients take:
// beyond, they would see a broken stream instead of the error. Each call is made once for each of its texts.
func TestErrorsFitTheirClients(t *testing.T) {
	g := gatewaytest.Start(t)
	g.MustCreate(t, "web")
	conn, err := grpc.NewClient(g.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithMaxHeaderListSize(8<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for _, m := range everyMethod(t) {
		t.Run(strings.TrimPrefix(m.name, "/"), func(t *testing.T) {
			for _, text := range []string{strings.Repeat("a", 20<<10), strings.Repeat("é", 10<<10)} {
				base := withoutRequestID(m.request(t).ProtoReflect())
				lengthen(base, text, 5, func(where string) {
					if err := send(t, conn, m, base.Interface(), ""); status.Code(err) == codes.Internal || status.Code(err) == codes.ResourceExhausted {
						t.Errorf("with a long %s: %v", where, err)
					}
				})
			}
		})
	}
}

// lengthen has each text of a message in turn replaced by a long one, down to so many levels, and calls do meanwhile.
func lengthen(m protoreflect.Message, text string, levels int, do func(where string)) {
	if levels == 0 {
		return
	}
	long, before := protoreflect.ValueOfString(text), proto.Clone(m.Interface())
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		deeper := func(where string) { do(name + "." + where) }
		switch {
		case f.IsMap() && f.MapKey().Kind() == protoreflect.StringKind:
			entries := m.Mutable(f).Map()
			value := entries.NewValue()
			if f.MapValue().Kind() == protoreflect.StringKind {
				value = long
			}
			entries.Set(long.MapKey(), value)
			do("key of " + name)
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			m.Mutable(f).List().Append(long)
			do("item of " + name)
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			lengthen(m.Mutable(f).List().AppendMutable().Message(), text, levels-1, deeper)
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, long)
			do(name)
		case f.Kind() == protoreflect.MessageKind && !f.IsList():
			lengthen(m.Mutable(f).Message(), text, levels-1, deeper)
		}
		proto.Reset(m.Interface())
		proto.Merge(m.Interface(), before)
	}
}

// withoutRequestID lets a request come as far as it can.
func withoutRequestID(m protoreflect.Message) protoreflect.Message {
	fields := m.Descriptor().Fields()
	if f := fields.ByName("request"); f != nil {
		withoutRequestID(m.Mutable(f).Message())
	}
	if f := fields.ByName("request_id"); f != nil {
		m.Clear(f)
	}
	return m
}
