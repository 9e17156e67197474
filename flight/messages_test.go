package flight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// pieceServer streams prepared pieces as a DoGet.
type pieceServer struct {
	flight.BaseFlightServer
	schema *arrow.Schema
	pieces []piece
	mem    memory.Allocator
}

func (p *pieceServer) DoGet(_ *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	return pipe(stream, func(_ context.Context, emit func(*outbound) error) error {
		out := newMessages(p.schema, p.mem, emit)
		defer out.close()
		if err := out.sendSchema(); err != nil {
			return err
		}
		for _, next := range p.pieces {
			if err := out.send(next, func(_ piece, final bool) ([]byte, error) { return fmt.Append(nil, final), nil }); err != nil {
				return err
			}
		}
		return nil
	})
}

// received is one message as a client sees it.
type received struct {
	batch arrow.RecordBatch
	meta  string
}

// throughTheWire sends canonical columns of a declared schema, and gives what an
// arrow-go client with gRPC's default message limit reads.
func throughTheWire(t *testing.T, schema *arrow.Schema, pieces ...piece) []received {
	t.Helper()
	allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.ForceServerCodecV2(newCodec()))
	flight.RegisterFlightServiceServer(server, &pieceServer{schema: schema, pieces: pieces, mem: allocator})
	go func() { _ = server.Serve(listener) }()
	connection, err := grpc.NewClient("passthrough:bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	stream, err := flight.NewClientFromConn(connection, nil).DoGet(t.Context(), &flight.Ticket{})
	require.NoError(t, err)
	reader, err := flight.NewRecordReader(stream)
	require.NoError(t, err)
	require.True(t, schema.Equal(reader.Schema()), "%s", reader.Schema())
	var all []received
	for {
		batch, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		batch.Retain()
		all = append(all, received{batch, string(reader.LatestAppMetadata())})
	}
	reader.Release()
	require.NoError(t, connection.Close())
	server.GracefulStop()
	allocator.AssertSize(t, 0)
	return all
}

// canonicalOf is the canonical form of an array given as JSON.
func canonicalOf(t *testing.T, declared arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, canonical.Type(declared), strings.NewReader(text))
	require.NoError(t, err)
	normal, err := canonical.Normalize(memory.DefaultAllocator, arr)
	require.NoError(t, err)
	return normal
}

func one(name string, dt arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: name, Type: dt, Nullable: true}}, nil)
}

func numbered(from, rows int) string {
	values := make([]string, rows)
	for i := range values {
		values[i] = fmt.Sprintf(`"v%d"`, from+i)
	}
	return "[" + strings.Join(values, ",") + "]"
}

// texts are the values of a batch's first column; null is "-".
func texts(batch arrow.RecordBatch) []string {
	column := batch.Column(0)
	values := make([]string, column.Len())
	for i := range values {
		if values[i] = column.ValueStr(i); column.IsNull(i) {
			values[i] = "-"
		}
	}
	return values
}

func TestDictionariesGrowAndAreReplaced(t *testing.T) {
	declared := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	send := func(text string) piece {
		arr := canonicalOf(t, declared, text)
		return piece{columns: []arrow.Array{arr}, rows: arr.Len()}
	}
	got := throughTheWire(t, one("d", declared),
		send(`["a", null, "b", "a"]`), send(`["b", "c"]`), send(`[null, null]`), send(numbered(0, 100)), send(numbered(100, 100)), send(`["a"]`))
	dictionaryOf := func(i int) arrow.Array { return got[i].batch.Column(0).(*array.Dictionary).Dictionary() }
	require.Len(t, got, 6)
	require.Equal(t, []string{"a", "-", "b", "a"}, texts(got[0].batch))
	require.Equal(t, []string{"b", "c"}, texts(got[1].batch))
	require.Equal(t, []string{"-", "-"}, texts(got[2].batch))
	require.Equal(t, 3, dictionaryOf(2).Len(), "a union while the index type holds it")
	require.Equal(t, 103, dictionaryOf(3).Len())
	require.Equal(t, 100, dictionaryOf(4).Len(), "then a dictionary of its own")
	require.Equal(t, "v199", texts(got[4].batch)[99])
	require.Equal(t, []string{"a"}, texts(got[5].batch))
}

func TestPieceWithMoreValuesThanTheIndexTypeIsCut(t *testing.T) {
	declared := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.LargeString}
	arr := canonicalOf(t, declared, numbered(0, 1000))
	got := throughTheWire(t, one("d", declared), piece{columns: []arrow.Array{arr}, rows: 1000})
	require.Greater(t, len(got), 3)
	var all []string
	for i, message := range got {
		require.Equal(t, fmt.Sprint(i == len(got)-1), message.meta, "only the last part is the final one")
		all = append(all, texts(message.batch)...)
	}
	require.Len(t, all, 1000)
	require.Equal(t, "v0", all[0])
	require.Equal(t, "v999", all[999])
}

// Dictionaries of floats that are nearly equal are not the same dictionary.
func TestDictionariesOfFloatsAreExact(t *testing.T) {
	declared := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float64}
	list := arrow.ListOf(declared)
	a, b := canonicalOf(t, list, `[[1.0]]`), canonicalOf(t, list, `[[1.0000000001]]`)
	got := throughTheWire(t, one("l", list), piece{columns: []arrow.Array{a}, rows: 1}, piece{columns: []arrow.Array{b}, rows: 1})
	require.Equal(t, []string{"[1]"}, texts(got[0].batch))
	require.Equal(t, []string{"[1.0000000001]"}, texts(got[1].batch))
}

func TestDictionariesAtAnyDepthAndOfAnyValues(t *testing.T) {
	text := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.StringView}
	for _, test := range []struct {
		dt   arrow.DataType
		rows []string
	}{
		{arrow.ListOf(text), []string{`[["a","b"],null]`, `[["b","c"],[]]`}},
		{arrow.StructOf(arrow.Field{Name: "d", Type: text, Nullable: true}), []string{`[{"d":"a"},null]`, `[{"d":"z"}]`}},
		{arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, text), []string{`["a","a",null]`, `["b","b"]`}},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint64, ValueType: arrow.FixedWidthTypes.Boolean}, []string{`[true,null,false]`, `[false]`}},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: &arrow.Decimal128Type{Precision: 9, Scale: 2}}, []string{`["1.25",null,"1.50"]`, `["2.75","1.25"]`}},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.ListOf(arrow.PrimitiveTypes.Int8)}, []string{`[[1],null,[1]]`, `[[2,3],[1]]`}},
	} {
		var pieces []piece
		var want []string
		for _, rows := range test.rows {
			arr := canonicalOf(t, test.dt, rows)
			pieces = append(pieces, piece{columns: []arrow.Array{arr}, rows: arr.Len()})
			restored, err := canonical.Restore(memory.DefaultAllocator, arr, test.dt)
			require.NoError(t, err)
			want = append(want, fmt.Sprint(restored))
		}
		got := throughTheWire(t, one("x", test.dt), pieces...)
		require.Len(t, got, len(want), test.dt)
		for i, message := range got {
			require.NoError(t, canonical.Check(message.batch.Column(0)))
			again, err := canonical.Normalize(memory.DefaultAllocator, message.batch.Column(0))
			require.NoError(t, err)
			require.True(t, array.Equal(pieces[i].columns[0], again), "%s: %v %v", test.dt, pieces[i].columns[0], again)
		}
	}
}

func TestMessagesAreCutByBytes(t *testing.T) {
	for _, declared := range []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.StringView, arrow.BinaryTypes.LargeString} {
		builder := array.NewStringBuilder(memory.DefaultAllocator)
		rows := []int{300, 5 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 6 << 20, 7}
		for i, size := range rows {
			builder.Append(strings.Repeat(string(rune('a'+i)), size))
		}
		arr := builder.NewArray()
		t.Run(declared.String(), func(t *testing.T) {
			sizes := messageSizes(t, one("s", declared), piece{columns: []arrow.Array{arr}, rows: arr.Len()})
			total := 0
			for _, message := range sizes {
				require.True(t, message.rows == 1 || message.bytes <= limits.SentBytes, "%+v", message)
				total += message.rows
			}
			require.Equal(t, len(rows), total)
		})
	}
}

type messageSize struct{ rows, bytes int }

// messageSizes are the record messages that pieces make; the row counts come
// from the metadata function, which is called just before.
func messageSizes(t *testing.T, schema *arrow.Schema, pieces ...piece) []messageSize {
	var sizes []messageSize
	rows := 0
	out := newMessages(schema, memory.DefaultAllocator, func(m *outbound) error {
		sizes = append(sizes, messageSize{rows, m.size})
		m.discard()
		return nil
	})
	defer out.close()
	for _, p := range pieces {
		require.NoError(t, out.send(p, func(part piece, _ bool) ([]byte, error) { rows = part.rows; return nil, nil }))
	}
	return sizes
}

func TestRowsWithoutColumns(t *testing.T) {
	got := throughTheWire(t, arrow.NewSchema(nil, nil), piece{rows: 70_000}, piece{rows: 0}, piece{rows: 3})
	require.Len(t, got, 2)
	require.EqualValues(t, 70_000, got[0].batch.NumRows())
	require.EqualValues(t, 3, got[1].batch.NumRows())
}

func TestEmptyResultHasItsSchema(t *testing.T) {
	metadata := arrow.NewMetadata([]string{"k"}, []string{"v"})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
		{Name: "z", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Paris"}, Metadata: metadata},
	}, &metadata)
	require.Empty(t, throughTheWire(t, schema))
}
