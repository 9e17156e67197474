package flight

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// highWater remembers how much memory was in use at most.
type highWater struct {
	memory.Allocator
	used, most atomic.Int64
}

func (h *highWater) add(n int) {
	used := h.used.Add(int64(n))
	for most := h.most.Load(); used > most && !h.most.CompareAndSwap(most, used); most = h.most.Load() {
	}
}

func (h *highWater) Allocate(size int) []byte {
	h.add(size)
	return h.Allocator.Allocate(size)
}

func (h *highWater) Reallocate(size int, b []byte) []byte {
	h.add(size - len(b))
	return h.Allocator.Reallocate(size, b)
}

func (h *highWater) Free(b []byte) {
	h.add(-len(b))
	h.Allocator.Free(b)
}

// A few bytes of compressed body stand for megabytes: messages are queued,
// admitted and grouped by what they become.
func TestCompressedMessagesCountDecompressed(t *testing.T) {
	allocator := &highWater{Allocator: memory.NewGoAllocator()}
	w := newWorld(t, Options{Receiving: 64 << 20, Reading: 16 << 20, Allocator: allocator})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "v", Type: &arrow.FixedSizeBinaryType{ByteWidth: 8 << 20}},
	}, nil)
	keys := array.NewInt64Builder(memory.DefaultAllocator)
	keys.Append(1)
	large := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 8 << 20})
	large.Append(make([]byte, 8<<20))
	batch := array.NewRecordBatch(schema, []arrow.Array{keys.NewArray(), large.NewArray()}, 1)
	var sent captured
	writer := flight.NewRecordWriter(&sent, ipc.WithSchema(schema), ipc.WithZstd())
	writer.SetFlightDescriptor(command(`{"table":"t","sharding_key":["k"],"slices":1}`))
	require.NoError(t, writer.Write(batch))
	require.NoError(t, writer.Close())
	put := w.doPut()
	put.send(sent[0])
	const messages = 60
	for range messages {
		put.send(sent[1])
	}
	said, err := put.finish()
	require.NoError(t, err)
	require.Equal(t, uint64(messages), said[len(said)-1].Batches)
	require.Less(t, allocator.most.Load(), int64(256<<20), "of %d MiB sent", messages*8)
}

// The header of a message has a part for each nested field, too.
func TestWideStructsKeepToTheLimit(t *testing.T) {
	const width, rows = 30_000, 200
	fields, children := make([]arrow.Field, width), make([]arrow.Array, width)
	builder := array.NewInt8Builder(memory.DefaultAllocator)
	builder.AppendValues(make([]int8, rows), nil)
	child := builder.NewArray()
	for i := range fields {
		fields[i], children[i] = arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int8, Nullable: true}, child
	}
	column, err := array.NewStructArrayWithFields(children, fields)
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{{Name: "wide", Type: column.DataType()}}, nil)
	got := 0
	out := newMessages(schema, memory.DefaultAllocator, func(message *outbound) error {
		got++
		require.LessOrEqual(t, message.size, limits.SentBytes)
		message.discard()
		return nil
	})
	defer out.close()
	require.NoError(t, out.send(piece{columns: []arrow.Array{column}, rows: rows}, noMetadata))
	require.Greater(t, got, 1)
}

func TestSelectIsRecognized(t *testing.T) {
	for _, text := range []string{"SELECT 1", "select*from t", "Select\n* from t", " select(1)", `SELECT"a" FROM t`, "select"} {
		_, err := parseQuery([]byte(text))
		require.Equal(t, strings.TrimSpace(text) != "select", fault.Is(err, "NOT_IMPLEMENTED"), "%q: %v", text, err)
	}
	for _, text := range []string{"selection of", "select_ 1", "selecté"} {
		_, err := parseQuery([]byte(text))
		require.True(t, fault.Is(err, "TICKET_INVALID"), "%q: %v", text, err)
	}
}
