package gateway_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway"
)

// A client of OpenShell 0.0 sends a name where the workspace selector is now. It is told so, and that is no alarm for the
// operator.
func TestOlderClient(t *testing.T) {
	r := run(t, gateway.Config{Store: open(t)})
	for method, field := range map[string]protowire.Number{
		openshellv1.OpenShell_ListSandboxes_FullMethodName: 4, openshellv1.OpenShell_WatchSandbox_FullMethodName: 11,
	} {
		request := &emptypb.Empty{}
		request.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), "default"))
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
