package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/shards"
)

// bed is a store in memory to write to, with checked Arrow memory.
type bed struct {
	t     testing.TB
	mem   *memory.CheckedAllocator
	store *shards.Store
}

func newBed(t testing.TB) *bed { return newBedOn(t, vfs.NewMem()) }

func newBedOn(t testing.TB, fs vfs.FS) *bed {
	b := &bed{t: t, mem: memory.NewCheckedAllocator(memory.DefaultAllocator)}
	store, err := shards.Open(context.Background(), "/store", shards.Options{
		FS: fs, Memory: budget.Shares{Blocks: 8 << 20, Tails: 4 << 20, Memtables: 64 << 20}, FoldConcurrency: -1, Allocator: b.mem,
	})
	require.NoError(t, err)
	b.store = store
	t.Cleanup(func() {
		require.NoError(t, store.Close())
		b.mem.AssertSize(t, 0)
	})
	return b
}

// fields reads "k:string! s:int64 v:int64": names with types, ! for not-null.
func fields(text string) []arrow.Field {
	types := map[string]arrow.DataType{
		"string": arrow.BinaryTypes.String, "large": arrow.BinaryTypes.LargeString, "binary": arrow.BinaryTypes.Binary,
		"int8": arrow.PrimitiveTypes.Int8, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
		"uint8": arrow.PrimitiveTypes.Uint8, "uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
		"float32": arrow.PrimitiveTypes.Float32, "float64": arrow.PrimitiveTypes.Float64,
		"bool": arrow.FixedWidthTypes.Boolean, "null": arrow.Null, "list": arrow.ListOf(arrow.PrimitiveTypes.Int64),
		"dict":  &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
		"union": arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0}),
	}
	var list []arrow.Field
	for _, word := range strings.Fields(text) {
		name, kind, _ := strings.Cut(word, ":")
		dt, ok := types[strings.TrimSuffix(kind, "!")]
		if !ok {
			panic("no type " + kind)
		}
		list = append(list, arrow.Field{Name: name, Type: dt, Nullable: !strings.HasSuffix(kind, "!")})
	}
	return list
}

func schemaOf(text string, metadata ...string) *arrow.Schema {
	md := arrow.Metadata{}
	for i := 0; i < len(metadata); i += 2 {
		md = arrow.NewMetadata(append(md.Keys(), metadata[i]), append(md.Values(), metadata[i+1]))
	}
	return arrow.NewSchema(fields(text), &md)
}

// batch makes a batch of JSON rows; the caller releases it.
func (b *bed) batch(schema *arrow.Schema, rows ...string) arrow.RecordBatch {
	b.t.Helper()
	batch, _, err := array.RecordFromJSON(b.mem, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(b.t, err)
	return batch
}

func (b *bed) name(text string) shards.Name {
	name, err := shards.ParseName(text)
	require.NoError(b.t, err)
	return name
}

// create makes table t with the key k, sorted by s.
func (b *bed) create(text string) *shards.Table {
	b.t.Helper()
	keys := Keys{Sharding: []string{"k"}}
	if strings.Contains(text, " s:") {
		keys.Sorting = []string{"s"}
	}
	table, err := Create(context.Background(), b.store, b.name("t"), schemaOf(text), keys)
	require.NoError(b.t, err)
	return table
}

// stream is a Writer to table t and what it said was committed.
type stream struct {
	*bed
	*Writer
	schema *arrow.Schema
}

func (b *bed) open(schema *arrow.Schema, options Options) (*stream, error) {
	options.Mem = b.mem
	w, err := Open(context.Background(), b.store, Target{Name: b.name("t")}, schema, options)
	return &stream{bed: b, Writer: w, schema: schema}, err
}

func (b *bed) mustOpen(schema *arrow.Schema, options Options) *stream {
	b.t.Helper()
	s, err := b.open(schema, options)
	require.NoError(b.t, err)
	return s
}

// write writes each text as a batch: JSON rows.
func (s *stream) write(batches ...string) error {
	s.t.Helper()
	var list []arrow.RecordBatch
	for _, text := range batches {
		batch, _, err := array.RecordFromJSON(s.mem, s.schema, strings.NewReader("["+text+"]"))
		require.NoError(s.t, err)
		list = append(list, batch)
		defer batch.Release()
	}
	return s.Write(context.Background(), list)
}

func (s *stream) finish() error {
	return s.Finish(context.Background())
}

// put writes batches in one stream.
func (b *bed) put(mode Mode, columns string, batches ...string) (Progress, error) {
	b.t.Helper()
	s, err := b.open(schemaOf(columns), Options{Mode: mode})
	if err != nil {
		return Progress{}, err
	}
	if err = s.write(batches...); err == nil {
		err = s.finish()
	}
	s.Abort()
	return s.Progress(), err
}

func (b *bed) mustPut(mode Mode, columns string, batches ...string) {
	b.t.Helper()
	_, err := b.put(mode, columns, batches...)
	require.NoError(b.t, err)
}

// rows is table t in key order, a row a line: "a 1 null".
func (b *bed) rows() []string {
	b.t.Helper()
	table, err := b.store.Table(b.name("t"))
	require.NoError(b.t, err)
	snapshot, err := table.Snapshot()
	require.NoError(b.t, err)
	defer snapshot.Release()
	var ids []uint32
	for _, c := range snapshot.Schema().Columns {
		if !c.Hidden {
			ids = append(ids, c.ID)
		}
	}
	scan, err := snapshot.Scan(context.Background(), shards.ScanRequest{Columns: ids, Order: shards.Asc, Limit: -1, Mem: b.mem})
	require.NoError(b.t, err)
	defer scan.Close()
	list := []string{}
	for {
		batch, err := scan.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		require.NoError(b.t, err)
		for row := range batch.Rows {
			var texts []string
			for _, column := range batch.Columns {
				text := "null"
				if column.IsValid(row) {
					text = column.ValueStr(row)
				}
				texts = append(texts, text)
			}
			list = append(list, strings.Join(texts, " "))
		}
		batch.Release()
	}
}

func (b *bed) wantRows(want ...string) {
	b.t.Helper()
	require.Equal(b.t, append([]string{}, want...), b.rows())
}

// wantSorted is wantRows in any order.
func (b *bed) wantSorted(want ...string) {
	b.t.Helper()
	got := b.rows()
	slices.Sort(got)
	slices.Sort(want)
	require.Equal(b.t, want, got)
}

// row is a JSON row of the columns k, s and v.
func row(k string, s, v int) string { return fmt.Sprintf(`{"k": %q, "s": %d, "v": %d}`, k, s, v) }
