package flight

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// codec is the gRPC codec of this package's servers. FlightData, nearly all of
// what travels, passes without copies (outbound) or with one (inbound); every
// other message is left to gRPC's own protobuf codec.
type codec struct{ proto encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (codec) Name() string { return proto.Name }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if message, ok := v.(*outbound); ok {
		return message.take(), nil
	}
	return c.proto.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if message, ok := v.(*inbound); ok {
		// Never an error from here: gRPC would answer it before the handler
		// could say what is durable. receive reports message.fault.
		message.parse(data)
		return nil
	}
	return c.proto.Unmarshal(data, v)
}
