package flight

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/sheaf-db/sheaf/fault"
)

// scattered is bytes as gRPC gives them: in buffers of any size, empty ones too.
func scattered(raw []byte, random *rand.Rand) mem.BufferSlice {
	var buffers mem.BufferSlice
	for len(raw) > 0 {
		n := min(random.IntN(100), len(raw))
		buffers = append(buffers, mem.SliceBuffer(raw[:n]))
		raw = raw[n:]
	}
	return buffers
}

func parsed(t *testing.T, raw []byte, seed uint64) *inbound {
	message := &inbound{limit: 1 << 20, allocator: memory.DefaultAllocator}
	require.NoError(t, newCodec().Unmarshal(scattered(raw, rand.New(rand.NewPCG(seed, 0))), message))
	return message
}

func TestInboundReadsWhatProtobufWrites(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		fill := func() []byte {
			raw := make([]byte, random.IntN(5000))
			for i := range raw {
				raw[i] = byte(random.Uint32())
			}
			return raw
		}
		sent := &flight.FlightData{DataHeader: fill(), AppMetadata: fill(), DataBody: fill(),
			FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"a", "é"}}}
		raw, err := proto.Marshal(sent)
		require.NoError(t, err)
		message := parsed(t, raw, seed)
		require.NoError(t, message.fault)
		require.True(t, proto.Equal(sent.FlightDescriptor, message.Descriptor))
		require.True(t, bytes.Equal(sent.DataHeader, message.Header))
		require.True(t, bytes.Equal(sent.AppMetadata, message.AppMetadata))
		if len(sent.DataBody) > 0 {
			require.Equal(t, sent.DataBody, message.Body.Bytes())
		}
		require.Equal(t, len(raw), message.Size)
	}
}

func TestInboundRefusesWhatIsNoMessage(t *testing.T) {
	for _, raw := range [][]byte{
		{tagHeader}, {tagHeader, 5, 1}, {0xff}, bytes.Repeat([]byte{0xff}, 11),
		{3<<3 | 1, 1, 2}, {3<<3 | 5, 1}, {3<<3 | 3}, {4<<3 | 4}, {tagDescriptor, 2, 0xff, 0xff},
		append([]byte{0xc2, 0x3e}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		message := parsed(t, raw, 1)
		require.True(t, fault.Is(message.fault, "MESSAGE_INVALID"), "%x: %v", raw, message.fault)
		message.release()
	}
}

func TestInboundAboveTheLimitIsRefusedUnread(t *testing.T) {
	message := &inbound{limit: 10, allocator: memory.DefaultAllocator}
	require.NoError(t, newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(make([]byte, 11))}, message))
	require.True(t, fault.Is(message.fault, "MESSAGE_TOO_LARGE"))
	require.ErrorContains(t, message.fault, "smaller record batches")
	require.Nil(t, message.Body)
}

// What goes out is what protobuf would have written, without a copy of large
// buffers, and the batch lives until the last of them is freed.
func TestOutboundIsAFlightData(t *testing.T) {
	allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer allocator.AssertSize(t, 0)
	builder := array.NewInt64Builder(allocator)
	for i := range int64(5000) {
		builder.Append(i)
	}
	column := builder.NewArray()
	values := column.Data().Buffers()[1].Bytes()
	builder.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{column}, 5000)
	column.Release()

	message, err := newOutbound(batch, []byte("meta"), allocator)
	require.NoError(t, err)
	buffers, err := newCodec().Marshal(message)
	require.NoError(t, err)
	shared := false
	for _, buffer := range buffers {
		shared = shared || &buffer.ReadOnlyData()[0] == &values[0]
	}
	require.True(t, shared, "the column's buffer itself goes to gRPC")

	raw := buffers.Materialize()
	require.Len(t, raw, message.size)
	var read flight.FlightData
	require.NoError(t, proto.Unmarshal(raw, &read))
	require.Equal(t, "meta", string(read.AppMetadata))
	require.Equal(t, values, read.DataBody[:len(values)])

	message.discard() // sent: does nothing
	require.NotZero(t, allocator.CurrentAlloc())
	buffers.Free()
}

func TestOutboundThatIsNotSentIsFreed(t *testing.T) {
	allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer allocator.AssertSize(t, 0)
	builder := array.NewStringBuilder(allocator)
	for range 3000 {
		builder.Append("some text")
	}
	column := builder.NewArray()
	builder.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{column}, 3000)
	column.Release()
	message, err := newOutbound(batch, nil, allocator)
	require.NoError(t, err)
	message.discard()
}

func FuzzInbound(f *testing.F) {
	raw, _ := proto.Marshal(&flight.FlightData{DataHeader: []byte("h"), DataBody: []byte("body"), FlightDescriptor: &flight.FlightDescriptor{Cmd: []byte("c")}})
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		message := parsed(t, raw, uint64(len(raw)))
		var read flight.FlightData
		// Groups, which no Flight client sends, are the one thing refused.
		group := message.fault != nil && strings.Contains(message.fault.Error(), "unknown wire type")
		if err := proto.Unmarshal(raw, &read); err == nil && message.fault != nil && !group {
			t.Fatalf("protobuf reads %x, and this says %v", raw, message.fault)
		}
		if message.fault != nil && fault.Of(message.fault) == nil {
			t.Fatal(message.fault)
		}
		message.release()
	})
}
