package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
)

// encoded is a message of these bytes, whatever they are.
func encoded(wire []byte) *emptypb.Empty {
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(wire)
	return m
}

// A request that cannot be decoded does nothing, even if all but its last byte can, and only who may make the call is told
// what is wrong with it.
func TestUndecodableRequests(t *testing.T) {
	g, conn, callers, web := startForEveryCaller(t)
	for _, m := range everyMethod(t) {
		t.Run(strings.TrimPrefix(m.name, "/"), func(t *testing.T) {
			request, err := proto.Marshal(withoutRequestID(m.request(t).ProtoReflect()).Interface())
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range callers {
				want, _ := expected(m, c, false)
				if want == codes.Unimplemented && !m.descriptor.IsStreamingClient() { // it would come as far as to the method
					want = codes.Internal
				}
				err := send(t, conn, m, encoded(append(slices.Clone(request), 7)), c.token)
				explained := strings.Contains(status.Convert(err).Message(), "it is no "+string(m.descriptor.Input().FullName()))
				if status.Code(err) != want || explained != (want == codes.Internal) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
		})
	}
	if s, ok := g.GetByID(t, web.GetMetadata().GetId()); !ok || s.GetMetadata().GetName() != "web" {
		t.Errorf("after all that: %v", s)
	}
}

// A client of OpenShell 0.0 sends a name where the workspace selector is now. It is told so, and that is no alarm for the
// operator.
func TestOlderClient(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	for method, field := range map[string]protowire.Number{
		openshellv1.OpenShell_ListSandboxes_FullMethodName: 4, openshellv1.OpenShell_WatchSandbox_FullMethodName: 11,
	} {
		request := encoded(protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), "default"))
		err := r.conn.Invoke(call(t), method, request, &emptypb.Empty{})
		if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "clients of OpenShell 0.0 send another") {
			t.Errorf("%s: %v", method, err)
		}
	}
	r.Shutdown(call(t)) // a call is logged after its answer
	if log := r.log.String(); !strings.Contains(log, `"outcome":"INTERNAL"`) || strings.Contains(log, `"level":"ERROR"`) {
		t.Error(log)
	}
}
