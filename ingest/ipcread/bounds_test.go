package ipcread

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// sketch is a flatbuffer that is written front to back.
type sketch []byte

// table adds a table whose fields, in the given slots, have 8 bytes each, and
// gives the place of the table and of its fields.
func (b *sketch) table(slots ...int) (at int, fields []int) {
	count := slots[len(slots)-1] + 1
	vtable := len(*b)
	at = vtable + 4 + 2*count
	*b = append(*b, make([]byte, 4+2*count+4+8*len(slots))...)
	binary.LittleEndian.PutUint16((*b)[vtable:], uint16(4+2*count))
	binary.LittleEndian.PutUint16((*b)[vtable+2:], uint16(4+8*len(slots)))
	binary.LittleEndian.PutUint32((*b)[at:], uint32(at-vtable))
	for i, slot := range slots {
		binary.LittleEndian.PutUint16((*b)[vtable+4+2*slot:], uint16(4+8*i))
		fields = append(fields, at+4+8*i)
	}
	return at, fields
}

// vector adds a vector of count references and gives its place.
func (b *sketch) vector(count int) int {
	at := len(*b)
	*b = append(binary.LittleEndian.AppendUint32(*b, uint32(count)), make([]byte, 4*count)...)
	return at
}

func (b *sketch) refer(from, to int) {
	binary.LittleEndian.PutUint32((*b)[from:], uint32(to-from))
}

// sharedMetadata is a schema message whose fields all are one field, which has
// a vector of pairs that all are one pair without text.
func sharedMetadata(fields, pairs int) []byte {
	b := make(sketch, 4)
	message, at := b.table(0, 1, 2)
	b.refer(0, message)
	b[at[0]], b[at[1]] = newest, kindSchema
	schema, ofSchema := b.table(1)
	b.refer(at[2], schema)
	list := b.vector(fields)
	b.refer(ofSchema[0], list)
	field, ofField := b.table(0, 2, 3, 5, 6)
	for i := range fields {
		b.refer(list+4+4*i, field)
	}
	b[ofField[1]] = 1 // Null
	null, _ := b.table(0)
	b.refer(ofField[2], null)
	b.refer(ofField[3], b.vector(0))
	metadata := b.vector(pairs)
	b.refer(ofField[4], metadata)
	pair, ofPair := b.table(0, 1)
	for i := range pairs {
		b.refer(metadata+4+4*i, pair)
	}
	text := b.vector(0)
	b = append(b, 0)
	for _, from := range []int{ofField[0], ofPair[0], ofPair[1]} {
		b.refer(from, text)
	}
	return b
}

// A small header cannot stand for any amount of metadata by having all fields
// share it.
func TestSharedMetadataIsBounded(t *testing.T) {
	_, err := Schema(sharedMetadata(2, 3))
	require.NoError(t, err)
	start := time.Now()
	_, err = Schema(sharedMetadata(20_000, 2_000))
	require.True(t, fault.Is(err, "MESSAGE_INVALID"), "%v", err)
	require.Less(t, time.Since(start), time.Second)
}

// Deltas add to a dictionary for as long as the stream lasts, but not without
// bound.
func TestDictionaryDeltasAreBounded(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.PrimitiveTypes.Int64}
	schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: dt}}, nil)
	const values = 1000
	var batches []arrow.RecordBatch
	builder := array.NewInt64Builder(memory.DefaultAllocator)
	indices := array.NewInt32Builder(memory.DefaultAllocator)
	for n := range 10 {
		for i := range values {
			builder.Append(int64(n*values + i))
		}
		dictionary := builder.NewInt64Array()
		if n > 0 {
			before := batches[n-1].Column(0).(*array.Dictionary).Dictionary()
			whole, err := array.Concatenate([]arrow.Array{before, dictionary}, memory.DefaultAllocator)
			require.NoError(t, err)
			dictionary = whole.(*array.Int64)
		}
		indices.Append(int32(n))
		column := array.NewDictionaryArray(dt, indices.NewInt32Array(), dictionary)
		batches = append(batches, array.NewRecordBatch(schema, []arrow.Array{column}, 1))
	}
	s := NewStream(mem, 4*8*values)
	defer s.Release()
	var failed error
	read := 0
	for _, message := range messages(t, schema, batches, ipc.WithDictionaryDeltas(true)) {
		b := body(mem, message.DataBody)
		batch, err := s.Read(message.DataHeader, b)
		b.Release()
		if failed = err; err != nil {
			break
		}
		if batch != nil {
			batch.Release()
			read++
		}
	}
	require.True(t, fault.Is(failed, "MESSAGE_TOO_LARGE"), "%v", failed)
	require.InDelta(t, 4, read, 1)
}

// Buffers that all are one place of the body, at an odd place, are not copied
// without bound.
func TestOverlappingBuffersAreBounded(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	fields, columns := make([]arrow.Field, 64), make([]arrow.Array, 64)
	for i := range fields {
		fields[i] = arrow.Field{Name: string(rune('A' + i)), Type: arrow.PrimitiveTypes.Int8}
		builder := array.NewInt8Builder(memory.DefaultAllocator)
		builder.AppendValues(make([]int8, 64), nil)
		columns[i] = builder.NewArray()
	}
	schema := arrow.NewSchema(fields, nil)
	sent := messages(t, schema, []arrow.RecordBatch{array.NewRecordBatch(schema, columns, 64)})
	m, _, _, err := message(sent[1].DataHeader)
	require.NoError(t, err)
	buffers, n := m.inner(2).vector(2, 16)
	for i := range n {
		binary.LittleEndian.PutUint64(sent[1].DataHeader[buffers+16*i:], 1)
		binary.LittleEndian.PutUint64(sent[1].DataHeader[buffers+16*i+8:], uint64(len(sent[1].DataBody)-1))
	}
	s := NewStream(mem, int64(8*len(sent[1].DataBody)))
	defer s.Release()
	_, err = s.Read(sent[0].DataHeader, nil)
	require.NoError(t, err)
	b := body(mem, sent[1].DataBody)
	defer b.Release()
	_, err = s.Read(sent[1].DataHeader, b)
	require.True(t, fault.Is(err, "MESSAGE_TOO_LARGE"), "%v", err)
}

// What a compressed message will take is known before it is decompressed.
func TestDecompressed(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewInt64Builder(memory.DefaultAllocator)
	builder.AppendValues(make([]int64, 100_000), nil)
	batches := []arrow.RecordBatch{array.NewRecordBatch(schema, []arrow.Array{builder.NewArray()}, 100_000)}
	for _, option := range []ipc.Option{ipc.WithZstd(), ipc.WithLZ4()} {
		sent := messages(t, schema, batches, option)
		require.Less(t, len(sent[1].DataBody), 10_000)
		require.InDelta(t, 800_000, Decompressed(sent[1].DataHeader, sent[1].DataBody, 1<<30), 64)
		require.Equal(t, int64(1000), Decompressed(sent[1].DataHeader, sent[1].DataBody, 1000))
		require.Zero(t, Decompressed(sent[0].DataHeader, nil, 1<<30))
		require.Zero(t, Decompressed(sent[1].DataHeader[:20], sent[1].DataBody, 1<<30))
		require.Zero(t, Decompressed(sent[1].DataHeader, sent[1].DataBody[:4], 1<<30))
	}
	sent := messages(t, schema, batches)
	require.Zero(t, Decompressed(sent[1].DataHeader, sent[1].DataBody, 1<<30))
}
