package shards

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// bed is a store to test on: in memory, with checked Arrow memory, and with
// rows written as plain Go values.
type bed struct {
	t   testing.TB
	fs  vfs.FS
	mem *memory.CheckedAllocator
	o   Options
	s   *Store

	policy *foldPolicy // nil: the default

	lastKeys map[int]string // of the last scan: number of rows so far to the key
}

// newBed opens an empty store that folds only when it is told to.
func newBed(t testing.TB) *bed {
	b := &bed{t: t, fs: vfs.NewCrashableMem(), mem: memory.NewCheckedAllocator(memory.DefaultAllocator)}
	b.o = Options{FoldConcurrency: -1}
	b.open()
	t.Cleanup(func() {
		if b.s != nil {
			if err := b.s.Close(); err != nil {
				t.Errorf("closing the store: %v", err)
			}
		}
		b.mem.AssertSize(t, 0)
	})
	return b
}

func (b *bed) open() {
	b.t.Helper()
	b.o.FS, b.o.Allocator, b.o.Memory = b.fs, b.mem, budget.Shares{Blocks: 8 << 20, Tails: 4 << 20, Memtables: 64 << 20}
	s, err := Open(context.Background(), "/store", b.o)
	if err != nil {
		b.t.Fatalf("opening the store: %v", err)
	}
	b.s = s
	if b.policy != nil {
		b.s.policy = b.policy
	}
}

// smallSteps makes folds take steps of so many bytes.
func (b *bed) smallSteps(bytes uint64) {
	b.policy = defaultPolicy()
	b.policy.stepBytes, b.policy.runBytes = bytes, bytes
	b.s.policy = b.policy
}

func (b *bed) close() {
	b.t.Helper()
	if err := b.s.Close(); err != nil {
		b.t.Fatalf("closing the store: %v", err)
	}
	b.s = nil
}

func (b *bed) reopen() {
	b.t.Helper()
	b.close()
	b.open()
}

func (b *bed) table(name string) *Table {
	b.t.Helper()
	n, err := ParseName(name)
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := b.s.Table(n)
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

// create makes a table from fields like "k:string s:int64 v:int32".
func (b *bed) create(name, fields, sharding, sorting string, slices int) *Table {
	b.t.Helper()
	t, err := b.tryCreate(name, fields, sharding, sorting, slices)
	if err != nil {
		b.t.Fatal(err)
	}
	return t
}

func (b *bed) tryCreate(name, fields, sharding, sorting string, slices int) (*Table, error) {
	n, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	schema, err := parseFields(fields)
	if err != nil {
		return nil, err
	}
	return b.s.CreateTable(context.Background(), n, Spec{
		Schema: schema, Sharding: strings.Fields(sharding), Sorting: strings.Fields(sorting),
		NoKey: sharding == "", Slices: slices,
	})
}

var testTypes = map[string]arrow.DataType{
	"string": arrow.BinaryTypes.String, "int64": arrow.PrimitiveTypes.Int64, "int32": arrow.PrimitiveTypes.Int32,
	"float64": arrow.PrimitiveTypes.Float64, "uint64": arrow.PrimitiveTypes.Uint64,
	"dict":  &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	"union": arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, []arrow.UnionTypeCode{0}),
}

// parseFields reads "name:type name:type!"; ! is not null.
func parseFields(text string) (*arrow.Schema, error) {
	var fields []arrow.Field
	for _, f := range strings.Fields(text) {
		name, typ, _ := strings.Cut(f, ":")
		typ, notNull := strings.CutSuffix(typ, "!")
		dt, ok := testTypes[typ]
		if !ok {
			return nil, fmt.Errorf("no type %q", typ)
		}
		fields = append(fields, arrow.Field{Name: name, Type: dt, Nullable: !notNull})
	}
	return arrow.NewSchema(fields, nil), nil
}

// values is one row: a Go value for each column of the schema, nil for null.
type values []any

// commitOf makes a Commit of rows in any order; of one key the last wins.
func (b *bed) commitOf(t *Table, rows []values, deletes bool) (Commit, func()) {
	b.t.Helper()
	return commitOf(b.t, b.mem, t.Schema(), rows, deletes)
}

func commitOf(tb testing.TB, mem memory.Allocator, schema *Schema, rows []values, deletes bool) (Commit, func()) {
	tb.Helper()
	columns := make([]arrow.Array, len(schema.Columns))
	for i, c := range schema.Columns {
		columns[i] = buildColumn(tb, mem, c.Canonical, rows, i)
	}
	release := func() { releaseAll(columns) }
	var keyColumns []arrow.Array
	for _, c := range schema.KeyColumns() {
		keyColumns = append(keyColumns, columns[c])
	}
	var all key.Keys
	if err := key.Encode(&all, keyColumns); err != nil {
		release()
		tb.Fatalf("encoding keys: %v", err)
	}
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return strings.Compare(string(all.At(x)), string(all.At(y))) })
	bySlice := map[int]*Rows{}
	for at, i := range order {
		if at+1 < len(order) && string(all.At(order[at+1])) == string(all.At(i)) {
			continue
		}
		n, err := key.Prefix(schema.KeyTypes(), all.At(i), len(schema.Sharding))
		if err != nil {
			tb.Fatal(err)
		}
		slice := schema.SliceOf(all.At(i)[:n])
		if bySlice[slice] == nil {
			bySlice[slice] = &Rows{Slice: slice, Keys: &key.Keys{}, Tombstones: deletes}
		}
		r := bySlice[slice]
		r.Keys.Append(all.At(i))
		if !deletes {
			r.Refs = append(r.Refs, block.Ref{Row: uint32(i)})
		}
	}
	c := Commit{Schema: schema}
	if !deletes {
		c.Batches = [][]arrow.Array{columns}
	}
	for _, r := range bySlice {
		c.Slices = append(c.Slices, *r)
	}
	return c, release
}

func buildColumn(tb testing.TB, mem memory.Allocator, dt arrow.DataType, rows []values, column int) arrow.Array {
	builder := array.NewBuilder(mem, dt)
	defer builder.Release()
	for _, row := range rows {
		var v any
		if column < len(row) {
			v = row[column]
		}
		switch b := builder.(type) {
		case *array.StringBuilder:
			appendOr(b, v, func() { b.Append(v.(string)) })
		case *array.Int64Builder:
			appendOr(b, v, func() { b.Append(v.(int64)) })
		case *array.Int32Builder:
			appendOr(b, v, func() { b.Append(int32(v.(int64))) })
		case *array.Uint64Builder:
			appendOr(b, v, func() { b.Append(uint64(v.(int64))) })
		case *array.Float64Builder:
			appendOr(b, v, func() { b.Append(v.(float64)) })
		default:
			tb.Fatalf("no values of type %s in tests", dt)
		}
	}
	return builder.NewArray()
}

func appendOr(b array.Builder, v any, set func()) {
	if v == nil {
		b.AppendNull()
	} else {
		set()
	}
}

// prepare and put write rows of the table's whole schema.
func (b *bed) prepare(t *Table, rows []values, deletes bool) *Prepared {
	b.t.Helper()
	c, release := b.commitOf(t, rows, deletes)
	defer release()
	p, err := t.Prepare(context.Background(), c)
	if err != nil {
		b.t.Fatalf("preparing: %v", err)
	}
	return p
}

func (b *bed) put(t *Table, rows ...values) uint64 {
	b.t.Helper()
	return b.publish(t, PublishOptions{}, b.prepare(t, rows, false))
}

func (b *bed) delete(t *Table, rows ...values) uint64 {
	b.t.Helper()
	return b.publish(t, PublishOptions{}, b.prepare(t, rows, true))
}

func (b *bed) publish(t *Table, o PublishOptions, p ...*Prepared) uint64 {
	b.t.Helper()
	commit, err := t.Publish(context.Background(), p, o)
	if err != nil {
		b.t.Fatalf("publishing: %v", err)
	}
	return commit
}

// asRun makes the next commits runs whatever their size.
func (b *bed) asRun(do func()) {
	b.s.deltaCommitBytes = 0
	defer func() { b.s.deltaCommitBytes = 1 << 20 }()
	do()
}

func (b *bed) snapshot(t *Table) *Snapshot {
	b.t.Helper()
	s, err := t.Snapshot()
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// scan is the answer as Go values.
func (b *bed) scan(s *Snapshot, r ScanRequest) []values {
	b.t.Helper()
	rows, err := b.tryScan(s, r)
	if err != nil {
		b.t.Fatalf("scanning: %v", err)
	}
	return rows
}

func (b *bed) tryScan(s *Snapshot, r ScanRequest) ([]values, error) {
	scan, err := s.Scan(context.Background(), r)
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	var rows []values
	b.lastKeys = map[int]string{}
	for {
		batch, err := scan.Next()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if batch.Rows == 0 {
			b.t.Error("a scan gave a batch without rows")
		}
		rows = append(rows, valuesOf(b.t, batch)...)
		if r.Keys {
			b.lastKeys[len(rows)] = string(batch.LastKey)
		}
		batch.Release()
	}
}

func valuesOf(tb testing.TB, batch *Batch) []values {
	rows := make([]values, batch.Rows)
	for i := range rows {
		for _, c := range batch.Columns {
			if c.Len() != batch.Rows {
				tb.Fatalf("a column of %d rows in a batch of %d", c.Len(), batch.Rows)
			}
			rows[i] = append(rows[i], valueAt(tb, c, i))
		}
	}
	return rows
}

func valueAt(tb testing.TB, a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.String:
		return strings.Clone(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Uint64:
		return int64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	}
	tb.Fatalf("no values of type %s in tests", a.DataType())
	return nil
}

// all is every column of the snapshot's schema, in its order.
func all(s *Snapshot) ScanRequest { return ScanRequest{Columns: s.Schema().IDs(), Limit: -1} }

// rows is the table's content in key order.
func (b *bed) rows(t *Table) []values {
	b.t.Helper()
	s := b.snapshot(t)
	defer s.Release()
	r := all(s)
	r.Order = Asc
	return b.scan(s, r)
}

func format(rows []values) string {
	var text strings.Builder
	for _, row := range rows {
		if len(row) == 0 {
			text.WriteString("(a row)")
		}
		for i, v := range row {
			if i > 0 {
				text.WriteByte(' ')
			}
			if v == nil {
				text.WriteString("null")
			} else {
				fmt.Fprint(&text, v)
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// pointRange is the ranges of a commit's keys.
func pointRange(c Commit) []run.Range {
	var ranges []run.Range
	for _, rows := range c.Slices {
		for i := range rows.Keys.Len() {
			k := rows.Keys.At(i)
			ranges = append(ranges, run.Range{Slice: rows.Slice, Low: k, High: key.Next(k)})
		}
	}
	return ranges
}
