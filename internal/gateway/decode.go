package gateway

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is explained here
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// explaining is gRPC's codec for messages. What it says of a request that it cannot decode reaches the client, and the most
// likely one sends requests of another version of OpenShell.
type explaining struct{ encoding.CodecV2 }

func newCodec() explaining { return explaining{encoding.GetCodecV2("proto")} }

// Unmarshal implements [encoding.CodecV2].
func (c explaining) Unmarshal(data mem.BufferSlice, into any) error {
	err := c.CodecV2.Unmarshal(data, into)
	if m, ok := into.(proto.Message); err != nil && ok {
		return fmt.Errorf("it is no %s of OpenShell %s; clients of OpenShell 0.0 send another: %w", m.ProtoReflect().Descriptor().FullName(), APIVersion, err)
	}
	return err
}
