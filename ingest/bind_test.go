package ingest

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

func TestColumnsAreMatchedByName(t *testing.T) {
	b := newBed(t)
	b.create("k:string s:int64 v:int64 w:string")
	b.mustPut(ModeUpsert, "w:large v:int8 s:int32 k:dict", `{"w":"x","v":7,"s":1,"k":"a"}`)
	b.mustPut(ModeUpsert, "s:uint8 k:large", `{"s":2,"k":"a"}`)
	b.mustPut(ModeUpsert, "v:null w:null s:int64 k:string", `{"s":3,"k":"a"}`)
	b.wantRows("a 1 7 x", "a 2 null null", "a 3 null null")
}

func TestStreamsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		columns, reason, says string
		mode                  Mode
	}{
		{columns: "k:string s:int64 v:int64 v:int64", reason: "COLUMN_REPEATED", says: `"v"`},
		{columns: "k:string s:int64 vv:int64", reason: "COLUMN_NOT_FOUND", says: `did you mean "v"?`},
		{columns: "k:string v:int64", reason: "COLUMN_MISSING", says: `key column "s"`},
		{columns: "s:int64 v:int64", reason: "COLUMN_MISSING", says: `key column "k"`, mode: ModeDelete},
		{columns: "k:string s:uint64", reason: "TYPE_MISMATCH", says: `column "s" is int64; uint64 is sent`},
		{columns: "k:string s:float64", reason: "TYPE_MISMATCH", says: `column "s"`},
		{columns: "k:int64 s:int64", reason: "TYPE_MISMATCH", says: `column "k"`},
		{columns: "k:string s:string", reason: "TYPE_MISMATCH", says: `column "s"`},
		{columns: "k:string s:int64 _sheaf_commit:uint64", reason: "COLUMN_NAME_RESERVED", says: "_sheaf_"},
		{columns: "k:string s:int64 n:null", reason: "COLUMN_NOT_FOUND", says: `"n"`},
		{columns: "k:string s:int64 v:union", reason: "TYPE_UNSUPPORTED", says: `column "v"`},
		{columns: "", reason: "SCHEMA_EMPTY"},
	} {
		t.Run(c.columns, func(t *testing.T) {
			b := newBed(t)
			b.create("k:string s:int64 v:int64")
			_, err := b.open(schemaOf(c.columns), Options{Mode: c.mode})
			require.True(t, fault.Is(err, c.reason), "%v", err)
			require.Equal(t, fault.InvalidArgument, fault.Of(err).Kind)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestNotNullColumnMissing(t *testing.T) {
	b := newBed(t)
	b.create("k:string v:int64!")
	for _, mode := range []Mode{ModeUpsert, ModeInsert, ModeInsertIgnore, ModeReplaceTable} {
		_, err := b.open(schemaOf("k:string"), Options{Mode: mode})
		require.True(t, fault.Is(err, "COLUMN_MISSING"), "%s: %v", mode, err)
	}
	for _, mode := range []Mode{ModeMerge, ModeUpdate, ModeDelete} {
		s := b.mustOpen(schemaOf("k:string"), Options{Mode: mode})
		s.Abort()
	}
}

func TestRowsThatAreRefused(t *testing.T) {
	long := strings.Repeat("a", 1100)
	zeros := strings.Repeat(`\u0000`, 600)
	for _, c := range []struct{ name, batch, reason, says string }{
		{"null in the sharding key", `{"k":"a","s":1},{"k":null,"s":1}`, "KEY_NULL", `batch 0, row 1, column "k"`},
		{"null in the sorting key", `{"k":"a","s":null}`, "KEY_NULL", `batch 0, row 0, column "s"`},
		{"key too long", `{"k":"a","s":1},{"k":"` + long + `","s":1}`, "KEY_TOO_LARGE", `batch 0, row 1, column "k": the row's key takes 1110 bytes encoded; the limit is 1024; the value is aaa`},
		{"key of zeros", `{"k":"` + zeros + `","s":1}`, "KEY_TOO_LARGE", "row 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			b.create("k:string s:int64 v:int64")
			_, err := b.put(ModeUpsert, "k:string s:int64", c.batch)
			require.True(t, fault.Is(err, c.reason), "%v", err)
			require.ErrorContains(t, err, c.says)
			b.wantRows()
		})
	}
	t.Run("keys up to the limit are kept", func(t *testing.T) {
		b := newBed(t)
		b.create("k:string s:int64 v:int64")
		b.mustPut(ModeUpsert, "k:string s:int64", `{"k":"`+strings.Repeat("a", 1000)+`","s":1},{"k":"","s":2}`)
		require.Len(t, b.rows(), 2)
	})
}

func TestInstantThatDoesNotFit(t *testing.T) {
	b := newBed(t)
	ts := func(unit arrow.TimeUnit) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{
			{Name: "k", Type: arrow.BinaryTypes.String},
			{Name: "ts", Type: &arrow.TimestampType{Unit: unit}, Nullable: true}}, nil)
	}
	_, err := Create(t.Context(), b.store, b.name("t"), ts(arrow.Nanosecond), Keys{Sharding: []string{"k"}})
	require.NoError(t, err)
	s := b.mustOpen(ts(arrow.Microsecond), Options{})
	err = s.write(`{"k":"a","ts":"2020-01-01 00:00:00"}`, `{"k":"b","ts":null},{"k":"c","ts":"9999-12-31 00:00:00"}`)
	require.True(t, fault.Is(err, "VALUE_OUT_OF_RANGE"), "%v", err)
	require.ErrorContains(t, err, `batch 1, row 1, column "ts": value 9999-12-31`)
	s.Abort()
	require.Len(t, b.rows(), 1)
}

func TestNotNullInsideNestedColumns(t *testing.T) {
	item := arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64} // not null
	loose := item
	loose.Nullable = true
	schema := func(x arrow.Field) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{
			{Name: "k", Type: arrow.BinaryTypes.String},
			{Name: "list", Type: arrow.ListOfField(arrow.Field{Name: "item", Nullable: true, Type: arrow.StructOf(x)}), Nullable: true},
		}, nil)
	}
	b := newBed(t)
	_, err := Create(t.Context(), b.store, b.name("t"), schema(item), Keys{Sharding: []string{"k"}})
	require.NoError(t, err)
	s := b.mustOpen(schema(loose), Options{})
	require.NoError(t, s.write(`{"k":"a","list":[{"x":1},null]},{"k":"b","list":null},{"k":"c","list":[]}`))
	err = s.write(`{"k":"d","list":[{"x":1}]},{"k":"e","list":[{"x":1},{"x":null}]}`)
	require.True(t, fault.Is(err, "NULL_VALUE"), "%v", err)
	require.ErrorContains(t, err, `batch 1, row 1, column "list.item.x"`)
	s.Abort()
	require.Len(t, b.rows(), 3)
}

func TestRowTooLarge(t *testing.T) {
	b := newBed(t)
	b.create("k:string v:string")
	builder := array.NewRecordBuilder(b.mem, schemaOf("k:string v:string"))
	defer builder.Release()
	for i, n := range []int{10, 16<<20 - 100, 16<<20 + 1} {
		builder.Field(0).(*array.StringBuilder).Append(string(rune('a' + i)))
		builder.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", n))
	}
	batch := builder.NewRecordBatch()
	defer batch.Release()
	s := b.mustOpen(schemaOf("k:string v:string"), Options{})
	err := s.Write(t.Context(), []arrow.RecordBatch{batch})
	require.True(t, fault.Is(err, "ROW_TOO_LARGE"), "%v", err)
	require.ErrorContains(t, err, "batch 0, row 2")
	s.Abort()
}

// A few bytes may stand for any number of rows; the limit of a message counts
// what they take.
func TestSmallMessagesThatStandForMuch(t *testing.T) {
	b := newBed(t)
	b.create("k:string v:string n:null")
	values := array.NewStringBuilder(b.mem)
	defer values.Release()
	values.Append(strings.Repeat("x", 1<<20))
	dictionary := values.NewArray()
	defer dictionary.Release()
	indices := array.NewInt8Builder(b.mem)
	defer indices.Release()
	keys := array.NewStringBuilder(b.mem)
	defer keys.Release()
	for range 100 {
		indices.Append(0)
		keys.Append("k")
	}
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	k, i := keys.NewArray(), indices.NewArray()
	defer k.Release()
	defer i.Release()
	v := array.NewDictionaryArray(dt, i, dictionary)
	defer v.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.BinaryTypes.String}, {Name: "v", Type: dt, Nullable: true}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{k, v}, 100)
	defer batch.Release()
	// What is half decoded when the limit is met is left to the garbage collector.
	w, err := Open(t.Context(), b.store, Target{Name: b.name("t")}, schema, Options{MaxBatch: 16 << 20})
	require.NoError(t, err)
	err = w.Write(t.Context(), []arrow.RecordBatch{batch})
	require.True(t, fault.Is(err, "MESSAGE_TOO_LARGE"), "%v", err)
	require.ErrorContains(t, err, "smaller batches")
	w.Abort()
}
