package flight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
)

func TestReads(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", `[{"k":"a","s":2,"v":20},{"k":"a","s":1,"v":null},{"k":"b","s":1,"v":5}]`)
	for _, test := range []struct {
		query string
		rows  []string
	}{
		{`{"table":"t","order":"asc"}`, []string{"a 1 (null)", "a 2 20", "b 1 5"}},
		{`{"table":"t","order":"desc"}`, []string{"b 1 5", "a 2 20", "a 1 (null)"}},
		{`{"table":"t","order":"asc","columns":["v","k"]}`, []string{"(null) a", "20 a", "5 b"}},
		{`{"table":"t","order":"asc","columns":["_sheaf_commit","s"],"where":[["k","=","a"]]}`, []string{"1 1", "1 2"}},
		{`{"table":"t","columns":["k"],"where":[["v",">",5]]}`, []string{"a"}},
		{`{"table":"t","columns":[]}`, []string{"", "", ""}},
		{`{"table":"t","columns":[],"limit":2}`, []string{"", ""}},
		{`{"table":"t","columns":[],"where":[["v","is null"]]}`, []string{""}},
		{`{"table":"t","limit":0}`, []string{}},
		{`{"table":"t","where":[["k","=","z"]]}`, []string{}},
		{`{"table":"t","where":[["k","in",[]]]}`, []string{}},
		{`{"table":"t","order":"asc","after":["a",1]}`, []string{"a 2 20", "b 1 5"}},
		{`{"table":"t","order":"desc","after":["a",2]}`, []string{"a 1 (null)"}},
		{`{"table":"t","keys":[["b",1],["a"],["z"],["a",2],["b",1],["a",2]]}`, []string{"b 1 5", "a 1 (null)", "a 2 20", "a 2 20", "b 1 5", "a 2 20"}},
		{`{"table":"t","keys":["a","z","b",["a"],["b",1],["a",2]]}`, []string{"a 1 (null)", "a 2 20", "b 1 5", "a 1 (null)", "a 2 20", "b 1 5", "a 2 20"}},
		{`{"table":"t","keys":["a"],"columns":["v"],"where":[["s",">",1]]}`, []string{"20"}},
		{`{"table":"t","keys":[["a",1],["b",1]],"columns":[]}`, []string{"", ""}},
		{`{"table":"t","slices":[]}`, []string{}},
	} {
		require.Equal(t, test.rows, w.rows(test.query), test.query)
	}
	require.Len(t, w.rows("t"), 3)
	require.Len(t, w.rows("main.t"), 3)
}

func TestScansShareTheMemory(t *testing.T) {
	for streams, want := range map[int64][2]int{1: {1 << 20, 0}, 10: {1 << 20, 0}, 11: {1 << 20, 1}, 100: {335544, 1}, 1000: {64 << 10, 1}} {
		target, parallel := share(512<<20, streams)
		require.Equal(t, want, [2]int{target, parallel}, streams)
	}
}

func TestSlicesAreDisjointAndComplete(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(40, 3))
	var all []string
	for slice := range 16 {
		all = append(all, w.rows(fmt.Sprintf(`{"table":"t","slices":[%d]}`, slice))...)
	}
	whole := w.rows("t")
	slices.Sort(all)
	slices.Sort(whole)
	require.Equal(t, whole, all)
	_, err := w.get([]byte(`{"table":"t","slices":[16]}`))
	fails(t, err, codes.InvalidArgument, "SLICE_RANGE")
}

// pages follows "after" to its end.
func (w *world) pages(query string, limit int) (rows []string, pages int) {
	after := ""
	for {
		pages++
		read, err := w.get([]byte(fmt.Sprintf(`{"table":"t",%s"limit":%d%s}`, query, limit, after)))
		require.NoError(w.t, err)
		rows = append(rows, read.rows...)
		marker := ""
		for i, text := range read.metadata {
			if text == "" {
				require.Equal(w.t, len(read.metadata)-1, i, "only the last message of the last page has no marker")
				return rows, pages
			}
			var metadata map[string]string
			require.NoError(w.t, json.Unmarshal([]byte(text), &metadata))
			marker = metadata["after"]
		}
		if marker == "" {
			require.Empty(w.t, read.rows)
			return rows, pages
		}
		require.Len(w.t, read.rows, limit, "a page is shorter only at the end")
		after = fmt.Sprintf(`,"after":%q`, marker)
	}
}

func TestPagesJoinToTheWhole(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(5, 8))
	for _, query := range []string{
		`"order":"asc",`, `"order":"desc",`,
		`"order":"asc","columns":["v"],`, `"order":"asc","columns":["s","v","k"],`,
		`"order":"desc","where":[["v",">",5]],`, `"order":"asc","where":[["k","in",["k01","k03"]],["s","between",[2,6]]],`,
		`"order":"asc","where":[["k","=","none"]],`,
	} {
		whole := w.rows(fmt.Sprintf(`{"table":"t",%s"limit":1000}`, query))
		for _, limit := range []int{1, 3, 8, 40, 41} {
			rows, pages := w.pages(query, limit)
			require.Equal(t, len(whole), len(rows), "%s %d", query, limit)
			if len(whole) > 0 {
				require.Equal(t, whole, rows, "%s %d", query, limit)
			}
			require.Equal(t, max(1, (len(whole)+limit-1)/limit), pages, "%s %d", query, limit)
		}
	}
}

func TestMarkersInTheWrongPlace(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(2, 3))
	w.putTrips("u", trips(2, 3))
	read, err := w.get([]byte(`{"table":"t","order":"asc","limit":2}`))
	require.NoError(t, err)
	metadata := read.metadata[len(read.metadata)-1]
	query := func(table, order, metadata string) string {
		return fmt.Sprintf(`{"table":%q,"order":%q,"limit":2,%s`, table, order, metadata[1:])
	}
	require.Equal(t, []string{"k00 2 2", "k01 0 0"}, w.rows(query("t", "asc", metadata)))
	changed := []byte(metadata)
	changed[len(changed)-6]++
	for _, text := range []string{query("u", "asc", metadata), query("t", "desc", metadata), query("t", "asc", string(changed))} {
		_, err := w.get([]byte(text))
		fails(t, err, codes.InvalidArgument, "MARKER_INVALID")
	}
	w.acts("DropTable", `{"table":"t"}`)
	w.putTrips("t", trips(2, 3))
	_, err = w.get([]byte(query("t", "asc", metadata)))
	fails(t, err, codes.InvalidArgument, "MARKER_INVALID")
}

func TestEverySchemaIsTheSame(t *testing.T) {
	w := newWorld(t, Options{})
	metadata := arrow.NewMetadata([]string{"owner"}, []string{"me"})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Metadata: metadata},
		{Name: "z", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Paris"}, Nullable: true},
		{Name: "l", Type: arrow.BinaryTypes.LargeString, Nullable: true},
	}, &metadata)
	w.put("t", schema, []string{"k"}, nil, `[{"k":"a","z":null,"l":"x"}]`)
	whole, err := w.get([]byte("t"))
	require.NoError(t, err)
	none, err := w.get([]byte(`{"table":"t","where":[["k","=","z"]]}`))
	require.NoError(t, err)
	descriptor := &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"main", "t"}}
	got, err := w.client.GetSchema(t.Context(), descriptor)
	require.NoError(t, err)
	info, err := w.client.GetFlightInfo(t.Context(), descriptor)
	require.NoError(t, err)
	for i, field := range schema.Fields() {
		require.True(t, field.Equal(whole.schema.Field(i)), "%s", whole.schema)
	}
	owner, _ := whole.schema.Metadata().GetValue("owner")
	require.Equal(t, "me", owner)
	key, _ := whole.schema.Metadata().GetValue("sheaf.sharding_key")
	require.Equal(t, `["k"]`, key)
	for _, message := range [][]byte{got.GetSchema(), info.GetSchema()} {
		read, err := flight.DeserializeSchema(message, memory.DefaultAllocator)
		require.NoError(t, err)
		require.True(t, whole.schema.Equal(read))
	}
	require.True(t, whole.schema.Equal(none.schema))
	count, err := w.get([]byte(`{"table":"t","columns":[]}`))
	require.NoError(t, err)
	key, _ = count.schema.Metadata().GetValue("sheaf.sharding_key")
	require.Equal(t, `["k"]`, key)
}

func TestRefusedReads(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(1, 1))
	for query, want := range map[string]struct {
		code   codes.Code
		reason string
	}{
		"missing":                                              {codes.NotFound, "TABLE_NOT_FOUND"},
		`{"table":"missing"}`:                                  {codes.NotFound, "TABLE_NOT_FOUND"},
		`{"table":"a b"}`:                                      {codes.InvalidArgument, "NAME_INVALID"},
		`{"table":"t","columns":["w"]}`:                        {codes.InvalidArgument, "COLUMN_NOT_FOUND"},
		`{"table":"t","columns":["_sheaf_expires"]}`:           {codes.Unimplemented, "NOT_IMPLEMENTED"},
		`{"table":"t","where":[["w","=",1]]}`:                  {codes.InvalidArgument, "COLUMN_NOT_FOUND"},
		`{"table":"t","snapshot":true}`:                        {codes.InvalidArgument, "FIELD_CONFLICT"},
		`{"table":"t","snapshot":"none"}`:                      {codes.NotFound, "SNAPSHOT_NOT_FOUND"},
		`{"table":"t","limit":1,"limit":2}`:                    {codes.InvalidArgument, "FIELD_REPEATED"},
		`{"table":"t","order":"asc","after":["k"]}`:            {codes.InvalidArgument, "KEY_INVALID"},
		`{"table":"t","where":` + strings.Repeat("[", 400_000): {codes.ResourceExhausted, "DEPTH_LIMIT"},
		"SELECT * FROM t":                                      {codes.Unimplemented, "NOT_IMPLEMENTED"},
		"":                                                     {codes.InvalidArgument, "TICKET_INVALID"},
		"\xff\x00\xfe":                                         {codes.InvalidArgument, "TICKET_INVALID"},
	} {
		_, err := w.get([]byte(query))
		fails(t, err, want.code, want.reason)
	}
	_, err := w.client.GetFlightInfo(t.Context(), &flight.FlightDescriptor{})
	fails(t, err, codes.InvalidArgument, "DESCRIPTOR_INVALID")
	_, err = w.client.GetSchema(t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: []string{"a", "b", "c"}})
	fails(t, err, codes.InvalidArgument, "DESCRIPTOR_INVALID")
}

// A client that leaves takes its scan along. Arrow memory is not checked here:
// gRPC drops a message that meets a stream which was just cancelled without
// freeing it, and leaves it to the garbage collector.
func TestCancelledReadsLeaveNoGoroutineBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("reads", func(t *testing.T) {
		w := newWorld(t, Options{Allocator: memory.DefaultAllocator})
		w.putTrips("t", trips(50, 4000))
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			stream, err := w.client.DoGet(ctx, &flight.Ticket{Ticket: []byte("t")})
			require.NoError(t, err)
			_, err = stream.Recv()
			require.NoError(t, err)
			cancel()
		}
		// Clients that are killed close nothing but their connection.
		for range 10 {
			connection := w.dial()
			stream, err := flight.NewClientFromConn(connection, nil).DoGet(t.Context(), &flight.Ticket{Ticket: []byte("t")})
			require.NoError(t, err)
			_, err = stream.Recv()
			require.NoError(t, err)
			require.NoError(t, connection.Close())
		}
		require.Len(t, w.rows("t"), 200_000)
	})
	goleak.VerifyNone(t, before)
}

// A damaged block ends the stream with DATA_LOSS, after the rows before it or at
// once; a stream that ends well has all rows.
func TestDamagedRowsAreAnError(t *testing.T) {
	files := vfs.NewMem()
	t.Run("write", func(t *testing.T) {
		w := newWorldOn(t, files, Options{})
		w.putTrips("t", trips(50, 4000))
		w.acts("Fold", `{"table":"t"}`)
	})
	damage(t, files)
	w := newWorldOn(t, files, Options{})
	read, err := w.get([]byte(`{"table":"t","order":"asc"}`))
	fails(t, err, codes.DataLoss, "CHECKSUM_FAILED")
	require.Contains(t, err.Error(), `table "t"`)
	require.Contains(t, err.Error(), "slice")
	require.Less(t, len(read.rows), 200_000)
	good := 0
	for slice := range 16 {
		if read, err := w.get([]byte(fmt.Sprintf(`{"table":"t","slices":[%d]}`, slice))); err == nil {
			good += len(read.rows)
		}
	}
	require.NotZero(t, good, "other slices can be read")
}

// damage changes some bytes near the middle of each large table file: one of them
// at least lies in a block. Some files may be garbage, which the next start
// removes.
func damage(t *testing.T, files vfs.FS) {
	names, err := files.List("store/db")
	require.NoError(t, err)
	sizes, largest := map[string]int64{}, int64(0)
	for _, name := range names {
		if strings.HasSuffix(name, ".sst") {
			info, err := files.Stat("store/db/" + name)
			require.NoError(t, err)
			sizes[name], largest = info.Size(), max(largest, info.Size())
		}
	}
	require.NotZero(t, largest)
	for name, size := range sizes {
		if size < largest/4 {
			continue
		}
		file, err := files.OpenReadWrite("store/db/"+name, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		for _, at := range []int64{size * 3 / 8, size / 2, size * 5 / 8} {
			b := make([]byte, 1)
			_, err = file.ReadAt(b, at)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte{b[0] ^ 0x40}, at)
			require.NoError(t, err)
		}
		require.NoError(t, file.Close())
	}
}

func TestNoMessageIsEmptyAndAllAreInTheLimit(t *testing.T) {
	w := newWorld(t, Options{})
	w.putTrips("t", trips(20, 10_000))
	read, err := w.get([]byte(`{"table":"t","where":[["s",">",2]]}`))
	require.NoError(t, err)
	require.Len(t, read.rows, 20*9997)
	require.Greater(t, len(read.messages), 3)
	for _, rows := range read.messages {
		require.NotZero(t, rows)
	}
}
