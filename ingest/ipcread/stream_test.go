package ipcread

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// sink collects the messages that a Flight writer sends.
type sink struct{ sent []*flight.FlightData }

func (s *sink) Send(data *flight.FlightData) error {
	s.sent = append(s.sent, &flight.FlightData{
		DataHeader: append([]byte(nil), data.DataHeader...), DataBody: append([]byte(nil), data.DataBody...),
	})
	return nil
}

// messages is what a Flight client sends for the batches.
func messages(t testing.TB, schema *arrow.Schema, batches []arrow.RecordBatch, options ...ipc.Option) []*flight.FlightData {
	t.Helper()
	s := &sink{}
	w := flight.NewRecordWriter(s, append(options, ipc.WithSchema(schema))...)
	for _, batch := range batches {
		require.NoError(t, w.Write(batch))
	}
	require.NoError(t, w.Close())
	return s.sent
}

func body(mem memory.Allocator, data []byte) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize(len(data))
	copy(b.Bytes(), data)
	return b
}

// readAll reads messages and gives each batch to check.
func readAll(t testing.TB, mem memory.Allocator, sent []*flight.FlightData, check func(i int, batch arrow.RecordBatch)) {
	t.Helper()
	s := NewStream(mem, 1<<30)
	defer s.Release()
	n := 0
	for _, message := range sent {
		b := body(mem, message.DataBody)
		batch, err := s.Read(message.DataHeader, b)
		b.Release()
		require.NoError(t, err)
		if batch != nil {
			check(n, batch)
			batch.Release()
			n++
		}
	}
}

// columnTexts hold values of every type that travels, as array.FromJSON reads them.
var columnTexts = []struct {
	dt   arrow.DataType
	json string
}{
	{arrow.Null, `[null, null, null]`},
	{arrow.FixedWidthTypes.Boolean, `[true, null, false]`},
	{arrow.PrimitiveTypes.Int8, `[1, null, -128]`},
	{arrow.PrimitiveTypes.Uint64, `[1, null, 18446744073709551615]`},
	{arrow.PrimitiveTypes.Float64, `[1.5, null, -0.0]`},
	{arrow.FixedWidthTypes.Float16, `[1.5, null, 2]`},
	{arrow.BinaryTypes.String, `["a", null, "ccc"]`},
	{arrow.BinaryTypes.LargeString, `["a", null, "ccc"]`},
	{arrow.BinaryTypes.StringView, `["a", null, "a text longer than twelve bytes"]`},
	{arrow.BinaryTypes.Binary, `["YQ==", null, "Y2Nj"]`},
	{arrow.BinaryTypes.LargeBinary, `["YQ==", null, "Y2Nj"]`},
	{&arrow.FixedSizeBinaryType{ByteWidth: 3}, `["YWJj", null, "Y2Nj"]`},
	{arrow.FixedWidthTypes.Date32, `[1, null, -3]`},
	{arrow.FixedWidthTypes.Timestamp_us, `["2020-01-01 00:00:00Z", null, "1969-12-31 23:59:59.5Z"]`},
	{&arrow.Decimal128Type{Precision: 38, Scale: 10}, `["1.5", null, "-2.25"]`},
	{&arrow.Decimal256Type{Precision: 60, Scale: 10}, `["1.5", null, "-2.25"]`},
	{arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1, null], null, []]`},
	{arrow.LargeListOf(arrow.BinaryTypes.String), `[["x", null], null, []]`},
	{arrow.ListViewOf(arrow.PrimitiveTypes.Int32), `[[1, null], null, []]`},
	{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1, null], null, [3, 4]]`},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "a", "value": 1}], null, []]`},
	{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}), `[{"x": 1, "y": ["q"]}, null, {"x": null, "y": null}]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a", null, "a"]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint16, ValueType: arrow.PrimitiveTypes.Int64}, `[7, null, 9]`},
	{arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}), `[["a", null], null, ["b"]]`},
	{arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), `["a", "a", null]`},
}

func everyType(t testing.TB, mem memory.Allocator) (*arrow.Schema, arrow.RecordBatch) {
	t.Helper()
	var fields []arrow.Field
	var columns []arrow.Array
	for i, c := range columnTexts {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: c.dt, Nullable: true})
		column, _, err := array.FromJSON(mem, c.dt, strings.NewReader(c.json))
		require.NoError(t, err, "%s", c.dt)
		defer column.Release()
		columns = append(columns, column)
	}
	// arrow-go has no builder for these, but pandas sends them.
	large := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.LargeString}
	indices, _, err := array.FromJSON(mem, large.IndexType, strings.NewReader("[1, null, 0]"))
	require.NoError(t, err)
	defer indices.Release()
	values, _, err := array.FromJSON(mem, large.ValueType, strings.NewReader(`["a", "b"]`))
	require.NoError(t, err)
	defer values.Release()
	column := array.NewDictionaryArray(large, indices, values)
	defer column.Release()
	fields = append(fields, arrow.Field{Name: "large", Type: large, Nullable: true})
	columns = append(columns, column)
	metadata := arrow.MetadataFrom(map[string]string{"who": "a test"})
	schema := arrow.NewSchema(fields, &metadata)
	return schema, array.NewRecordBatch(schema, columns, 3)
}

// sameValues compares two arrays by their canonical values.
func sameValues(t testing.TB, mem memory.Allocator, want, got arrow.Array) {
	t.Helper()
	a, err := canonical.Normalize(mem, want)
	require.NoError(t, err)
	defer a.Release()
	b, err := canonical.Normalize(mem, got)
	require.NoError(t, err)
	defer b.Release()
	require.True(t, array.Equal(a, b), "want %s\n got %s", a, b)
}

func TestEveryTypeComesBack(t *testing.T) {
	for name, options := range map[string][]ipc.Option{
		"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			schema, batch := everyType(t, mem)
			defer batch.Release()
			sameBatches(t, mem, schema, []arrow.RecordBatch{batch, batch}, options...)
		})
	}
}

func sameBatches(t *testing.T, mem memory.Allocator, schema *arrow.Schema, want []arrow.RecordBatch, options ...ipc.Option) {
	t.Helper()
	n := 0
	readAll(t, mem, messages(t, schema, want, options...), func(i int, got arrow.RecordBatch) {
		require.Equal(t, want[i].NumRows(), got.NumRows())
		for c := range schema.NumFields() {
			sameValues(t, mem, want[i].Column(c), got.Column(c))
		}
		n++
	})
	require.Equal(t, len(want), n)
}

func TestSlicesAndBatchesWithoutRows(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	all, batch := everyType(t, mem)
	defer batch.Release()
	var fields []arrow.Field
	var columns []arrow.Array
	for i, field := range all.Fields() {
		// arrow-go cannot write slices of these.
		if id := field.Type.ID(); id != arrow.LIST_VIEW && id != arrow.RUN_END_ENCODED {
			fields, columns = append(fields, field), append(columns, batch.Column(i))
		}
	}
	schema := arrow.NewSchema(fields, nil)
	whole := array.NewRecordBatch(schema, columns, 3)
	defer whole.Release()
	half := whole.NewSlice(1, 3)
	defer half.Release()
	none := whole.NewSlice(3, 3)
	defer none.Release()
	sameBatches(t, mem, schema, []arrow.RecordBatch{none, whole, half, none})
}

func TestSchemaIsWhatWasSent(t *testing.T) {
	schema, batch := everyType(t, memory.DefaultAllocator)
	defer batch.Release()
	sent := messages(t, schema, nil)
	got, err := Schema(sent[0].DataHeader)
	require.NoError(t, err)
	require.True(t, schema.Equal(got), "want %s\n got %s", schema, got)
	require.Equal(t, schema.Metadata().ToMap(), got.Metadata().ToMap())
}

func TestSerializedSchema(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	serialized := flight.SerializeSchema(schema, memory.DefaultAllocator)
	got, err := SerializedSchema(serialized)
	require.NoError(t, err)
	require.True(t, schema.Equal(got))
	for n := range len(serialized) {
		if _, err := SerializedSchema(serialized[:n]); err != nil {
			require.NotNil(t, fault.Of(err), "cut to %d bytes: %v", n, err)
		}
	}
}

func TestDictionaryReplacedAndGrown(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: dt, Nullable: true}}, nil)
	var batches []arrow.RecordBatch
	for _, text := range []string{`["a", "b", null, "a"]`, `["x", null, "y"]`, `["x", "y", "z", null]`} {
		column, _, err := array.FromJSON(mem, dt, strings.NewReader(text))
		require.NoError(t, err)
		batches = append(batches, array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len())))
		column.Release()
	}
	for name, options := range map[string][]ipc.Option{"replaced": nil, "delta": {ipc.WithDictionaryDeltas(true)}} {
		t.Run(name, func(t *testing.T) {
			readAll(t, mem, messages(t, schema, batches, options...), func(i int, got arrow.RecordBatch) {
				sameValues(t, mem, batches[i].Column(0), got.Column(0))
			})
		})
	}
	for _, batch := range batches {
		batch.Release()
	}
}

// Any byte of a message changed, or the message cut at any place, gives a
// *fault.Error or a batch; never a panic, never much memory.
func TestDamagedMessages(t *testing.T) {
	schema, batch := everyType(t, memory.DefaultAllocator)
	defer batch.Release()
	for name, options := range map[string][]ipc.Option{"plain": nil, "lz4": {ipc.WithLZ4()}, "zstd": {ipc.WithZstd()}} {
		sent := messages(t, schema, []arrow.RecordBatch{batch}, options...)
		rng := rand.New(rand.NewPCG(1, 2))
		t.Run(name, func(t *testing.T) {
			for range 1000 {
				s := NewStream(memory.DefaultAllocator, 1<<20)
				victim := rng.IntN(len(sent))
				for i, message := range sent {
					header, body := message.DataHeader, message.DataBody
					if i == victim {
						header, body = damaged(rng, header), damaged(rng, body)
					}
					got, err := s.Read(header, memory.NewBufferBytes(body))
					if err != nil {
						require.NotNil(t, fault.Of(err), "%v", err)
						break
					}
					if got != nil {
						normalizeAll(t, got)
						got.Release()
					}
				}
				s.Release()
			}
		})
	}
}

func damaged(rng *rand.Rand, data []byte) []byte {
	out := append([]byte(nil), data...)
	if len(out) == 0 {
		return out
	}
	switch rng.IntN(3) {
	case 0:
		return out[:rng.IntN(len(out))]
	case 1:
		for range 1 + rng.IntN(8) {
			out[rng.IntN(len(out))] = byte(rng.Uint32())
		}
	}
	return out
}

func normalizeAll(t testing.TB, batch arrow.RecordBatch) {
	for _, column := range batch.Columns() {
		if plain, err := canonical.Normalize(memory.DefaultAllocator, column); err == nil {
			if plain.Len() < 1000 { // a column of nulls may have any length
				_ = plain.String()
			}
			plain.Release()
		}
	}
}

func TestCutOffMessagesSayWhat(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: arrow.PrimitiveTypes.Int64}}, nil)
	column, _, err := array.FromJSON(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, strings.NewReader("[1,2,3,4,5,6,7,8]"))
	require.NoError(t, err)
	batch := array.NewRecordBatch(schema, []arrow.Array{column}, 8)
	sent := messages(t, schema, []arrow.RecordBatch{batch})
	read := func(header, body []byte) error {
		s := NewStream(memory.DefaultAllocator, 1<<20)
		defer s.Release()
		if _, err := s.Read(sent[0].DataHeader, nil); err != nil {
			return err
		}
		_, err := s.Read(header, memory.NewBufferBytes(body))
		return err
	}
	require.NoError(t, read(sent[1].DataHeader, sent[1].DataBody))
	require.ErrorContains(t, read(sent[1].DataHeader, sent[1].DataBody[:10]), "cut off")
	require.ErrorContains(t, read(sent[1].DataHeader[:4], sent[1].DataBody), "[MESSAGE_INVALID]")
	require.ErrorContains(t, read(nil, nil), "[MESSAGE_INVALID]")
	require.ErrorContains(t, read(sent[0].DataHeader, nil), "second schema")
}

// A few bytes that announce gigantic vectors or point back to themselves ask for
// no memory: arrow-go's own reader would end the process.
func TestHeadersThatAnnounceTooMuch(t *testing.T) {
	schema, batch := everyType(t, memory.DefaultAllocator)
	defer batch.Release()
	for _, message := range messages(t, schema, []arrow.RecordBatch{batch}) {
		for at := 0; at+4 <= len(message.DataHeader); at += 4 {
			for _, value := range []uint32{0x7FFFFFFF, 0xFFFFFFFF, 1 << 20, 0} {
				header := append([]byte(nil), message.DataHeader...)
				binary.LittleEndian.PutUint32(header[at:], value)
				if _, err := Schema(header); err != nil {
					require.NotNil(t, fault.Of(err), "%v", err)
				}
				s := NewStream(memory.DefaultAllocator, 1<<20)
				_, err := s.Read(messages(t, schema, nil)[0].DataHeader, nil)
				require.NoError(t, err)
				got, err := s.Read(header, memory.NewBufferBytes(message.DataBody))
				if err != nil {
					require.NotNil(t, fault.Of(err), "%v", err)
				} else if got != nil {
					got.Release()
				}
				s.Release()
			}
		}
	}
}

func TestSchemasNestedTooDeep(t *testing.T) {
	dt := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 200 {
		dt = arrow.ListOf(dt)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "deep", Type: dt}}, nil)
	_, err := Schema(messages(t, schema, nil)[0].DataHeader)
	require.NotNil(t, fault.Of(err), "%v", err)
}

func FuzzRead(f *testing.F) {
	schema, batch := everyType(f, memory.DefaultAllocator)
	for _, options := range [][]ipc.Option{nil, {ipc.WithLZ4()}, {ipc.WithZstd()}} {
		for _, message := range messages(f, schema, []arrow.RecordBatch{batch}, options...) {
			f.Add(message.DataHeader, message.DataBody)
		}
	}
	first := messages(f, schema, nil)[0].DataHeader
	f.Fuzz(func(t *testing.T, header, body []byte) {
		_, _ = Schema(header)
		s := NewStream(memory.DefaultAllocator, 1<<20)
		defer s.Release()
		if _, err := s.Read(first, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Read(header, memory.NewBufferBytes(body)); err != nil {
			if fault.Of(err) == nil {
				t.Fatal(err)
			}
		} else if got != nil {
			normalizeAll(t, got)
			got.Release()
		}
	})
}

// Batches of another schema than the stream's are refused, also where what the
// columns need is there.
func TestBatchesOfAnotherSchemaAreRefused(t *testing.T) {
	one := func(dt arrow.DataType, json string) (*arrow.Schema, []*flight.FlightData) {
		schema := arrow.NewSchema([]arrow.Field{{Name: "v", Type: dt}}, nil)
		column, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(json))
		require.NoError(t, err)
		return schema, messages(t, schema, []arrow.RecordBatch{array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))})
	}
	_, numbers := one(arrow.PrimitiveTypes.Int64, "[1]")
	_, texts := one(arrow.BinaryTypes.String, `["abcdefgh"]`)
	_, structs := one(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64}), `[{"a":1}]`)
	for _, other := range [][]*flight.FlightData{texts, structs} {
		s := NewStream(memory.DefaultAllocator, 1<<20)
		_, err := s.Read(numbers[0].DataHeader, nil)
		require.NoError(t, err)
		_, err = s.Read(other[1].DataHeader, memory.NewBufferBytes(other[1].DataBody))
		require.ErrorContains(t, err, "[MESSAGE_INVALID]")
		s.Release()
	}
}
