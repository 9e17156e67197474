package run

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// The tests' table: sharded by a string, sorted by an integer.
const (
	colShard uint32 = 1
	colSort  uint32 = 2
	colNum   uint32 = 3
	colText  uint32 = 4
	colPrice uint32 = 5
	colLater uint32 = 6 // not in the oldest schema version
)

var (
	price = &arrow.Decimal128Type{Precision: 12, Scale: 2}

	testKey = KeyColumns{
		IDs:      []uint32{colShard, colSort},
		Types:    []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64},
		Sharding: 1,
	}
	allColumns = []uint32{colShard, colSort, colNum, colText, colPrice, colLater}
)

// typesNow is the current schema, typesOld an older version of it: colNum was
// narrower, colLater did not exist.
func typesNow(id uint32) (arrow.DataType, bool) {
	switch id {
	case colShard, colText:
		return arrow.BinaryTypes.String, true
	case colSort, colNum:
		return arrow.PrimitiveTypes.Int64, true
	case colPrice:
		return price, true
	case colLater:
		return arrow.PrimitiveTypes.Float64, true
	}
	return nil, false
}

func typesOld(id uint32) (arrow.DataType, bool) {
	switch id {
	case colNum:
		return arrow.PrimitiveTypes.Int32, true
	case colLater:
		return nil, false
	}
	return typesNow(id)
}

// row is one version of one row; a nil field is null.
type row struct {
	shard   string
	sort    int64
	num     *int64
	note    *string
	price   int64
	later   *float64
	version uint64
	dead    bool
}

// key is the encoded primary key, made by hand; shards have no zero bytes.
func (r row) key() string {
	sort := binary.BigEndian.AppendUint64(nil, uint64(r.sort)^1<<63)
	return r.shard + "\x00\x01" + string(sort)
}

// text is what a scan of allColumns and the versions should give for the row.
func (r row) text() string {
	part := func(is bool, v func() any) string {
		if !is {
			return "null"
		}
		return fmt.Sprint(v())
	}
	return strings.Join([]string{
		r.shard, fmt.Sprint(r.sort),
		part(r.num != nil, func() any { return *r.num }),
		part(r.note != nil, func() any { return *r.note }),
		part(!r.dead, func() any { return r.price }),
		part(r.later != nil, func() any { return *r.later }),
		fmt.Sprint(r.version), fmt.Sprint(r.dead),
	}, "|")
}

// columnsOf makes canonical arrays of rows. Deleted rows have keys only.
func columnsOf(mem memory.Allocator, types Types, ids []uint32, rows []row) []arrow.Array {
	cols := make([]arrow.Array, len(ids))
	for i, id := range ids {
		t, _ := typeOf(types, id)
		b := array.NewBuilder(mem, t)
		b.Reserve(len(rows))
		for _, r := range rows {
			appendField(b, id, r)
		}
		cols[i] = b.NewArray()
		b.Release()
	}
	return cols
}

func appendField(b array.Builder, id uint32, r row) {
	null := r.dead
	switch id {
	case colNum:
		null = null || r.num == nil
	case colText:
		null = null || r.note == nil
	case colLater:
		null = null || r.later == nil
	case colPrice:
	default:
		null = false
	}
	if null {
		b.AppendNull()
		return
	}
	switch id {
	case colShard:
		b.(*array.StringBuilder).Append(r.shard)
	case colSort:
		b.(*array.Int64Builder).Append(r.sort)
	case colNum:
		if b, ok := b.(*array.Int32Builder); ok {
			b.Append(int32(*r.num))
			return
		}
		b.(*array.Int64Builder).Append(*r.num)
	case colText:
		b.(*array.StringBuilder).Append(*r.note)
	case colPrice:
		b.(*array.Decimal128Builder).Append(decimal128.FromI64(r.price))
	case colLater:
		b.(*array.Float64Builder).Append(*r.later)
	case block.ColumnCommit:
		b.(*array.Uint64Builder).Append(r.version)
	case block.ColumnTombstone:
		b.(*array.BooleanBuilder).Append(r.dead)
	}
}

func keysOf(rows []row) *key.Keys {
	var keys key.Keys
	for _, r := range rows {
		keys.Append([]byte(r.key()))
	}
	return &keys
}

func releaseAll(cols []arrow.Array) {
	for _, c := range cols {
		c.Release()
	}
}

// bed is a store with runs.
type bed struct {
	t     testing.TB
	mem   *memory.CheckedAllocator
	fs    vfs.FS
	db    *pebble.DB
	cache *Cache
	runs  uint64

	blockRows, leafBlocks int
}

func newBed(t testing.TB) *bed {
	b := &bed{
		t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), fs: vfs.NewMem(),
		cache: NewCache(1 << 20), blockRows: 4, leafBlocks: 3,
	}
	db, err := pebble.Open("db", &pebble.Options{
		FS: b.fs, FormatMajorVersion: pebble.FormatFlushableIngestExcises, Logger: quiet{},
	})
	require.NoError(t, err)
	b.db = db
	t.Cleanup(func() {
		require.NoError(t, b.db.Close())
		b.mem.AssertSize(t, 0)
	})
	return b
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func (b *bed) writer() *Writer {
	b.runs++
	f, err := b.fs.Create(b.file(b.runs), vfs.WriteCategoryUnspecified)
	require.NoError(b.t, err)
	w := NewWriter(WriterOptions{
		Mem: b.mem, File: objstorageprovider.NewFileWritable(f), Table: 1, Run: b.runs, Key: testKey,
	})
	w.pending.most, w.leaf = b.blockRows, b.leafBlocks
	return w
}

func (b *bed) file(run uint64) string { return fmt.Sprintf("%06d.run", run) }

// ingest finishes the newest run and opens it.
func (b *bed) ingest(w *Writer, stored Types, version uint64) *Run {
	info, err := w.Finish()
	require.NoError(b.t, err)
	require.NoError(b.t, b.db.Ingest(context.Background(), []string{b.file(w.o.Run)}))
	return b.open(w.o.Run, info, stored, version)
}

func (b *bed) open(run uint64, info Info, stored Types, version uint64) *Run {
	return Open(Options{
		DB: b.db, Cache: b.cache, Table: 1, Run: run, Key: testKey, Stored: stored,
		Version: version, PerRow: info.PerRow, Least: info.Least, Greatest: info.Greatest, Label: `table "t"`,
	})
}

// run writes rows, sorted by key, as slice 3 of a run. perRow stores versions;
// else all rows have the same.
func (b *bed) run(rows []row, stored Types, perRow bool) *Run {
	ids := []uint32{colShard, colSort, colNum, colText, colPrice, block.ColumnTombstone}
	if _, ok := stored(colLater); ok {
		ids = append(ids, colLater)
	}
	if perRow {
		ids = append(ids, block.ColumnCommit)
	}
	cols := columnsOf(b.mem, stored, ids, rows)
	defer releaseAll(cols)
	w := b.writer()
	require.NoError(b.t, w.Add(3, keysOf(rows), ids, cols))
	return b.ingest(w, stored, rows[0].version)
}

// scan reads everything a request gives, as texts, and checks what holds for
// every batch.
func (b *bed) scan(r Request, sources ...Source) ([]string, Counters) {
	b.t.Helper()
	r.Mem, r.Key = b.mem, testKey
	if r.Types == nil {
		r.Types = typesNow
	}
	if r.Columns == nil {
		r.Columns = append(slices.Clone(allColumns), block.ColumnCommit, block.ColumnTombstone)
	}
	s, err := NewScan(context.Background(), r, sources)
	require.NoError(b.t, err)
	texts := []string{}
	for {
		batch, err := s.Next()
		if err == io.EOF {
			break
		}
		require.NoError(b.t, err)
		require.Positive(b.t, batch.Rows)
		for i := range batch.Rows {
			texts = append(texts, rowText(b.t, batch, i))
		}
		if r.LastKeys {
			last := strings.SplitN(texts[len(texts)-1], "|", 3)
			var sort int64
			_, err := fmt.Sscan(last[1], &sort)
			require.NoError(b.t, err)
			require.Equal(b.t, row{shard: last[0], sort: sort}.key(), string(batch.LastKey))
		}
		batch.Release()
	}
	counters := s.Counters()
	require.EqualValues(b.t, len(texts), counters.RowsReturned)
	require.NoError(b.t, s.Close())
	return texts, counters
}

func rowText(t testing.TB, b *Batch, i int) string {
	fields := make([]string, len(b.Columns))
	for c, arr := range b.Columns {
		require.Equal(t, b.Rows, arr.Len())
		switch a := arr.(type) {
		case *array.Decimal128:
			fields[c] = fmt.Sprint(int64(a.Value(i).LowBits()))
			if a.IsNull(i) {
				fields[c] = "null"
			}
		default:
			fields[c] = arr.ValueStr(i)
			if arr.IsNull(i) {
				fields[c] = "null"
			}
		}
	}
	return strings.Join(fields, "|")
}

// expect is what a scan of sources, newest first, gives: the rules of the
// package over a plain map.
func expect(sources [][]row, r Request, matches func(row) bool) []string {
	winner := map[string]row{}
	for _, rows := range sources {
		for _, next := range rows {
			k := next.key()
			have, ok := winner[k]
			if !ok || next.version > have.version || next.version == have.version && next.dead && !have.dead {
				winner[k] = next
			}
		}
	}
	var keys []string
	for k, w := range winner {
		inside := r.Ranges == nil
		for _, one := range r.Ranges {
			if bytes.Compare([]byte(k), one.Low) >= 0 && (one.High == nil || bytes.Compare([]byte(k), one.High) < 0) {
				inside = true
			}
		}
		if inside && (r.Tombstones || !w.dead) && (matches == nil || matches(w)) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if r.Desc {
		slices.Reverse(keys)
	}
	if r.Limit > 0 {
		keys = keys[:min(int64(len(keys)), r.Limit)]
	}
	texts := []string{}
	for _, k := range keys {
		texts = append(texts, winner[k].text())
	}
	return texts
}

// between is a filter: low <= column <= high, for int64 and uint64 columns, and
// for text that is not null.
type between struct {
	id        uint32
	low, high int64
}

func (f between) Columns() []uint32 { return []uint32{f.id} }

func (f between) array(v int64) arrow.Array {
	if f.id == block.ColumnCommit {
		b := array.NewUint64Builder(memory.DefaultAllocator)
		b.Append(uint64(v))
		return b.NewArray()
	}
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.Append(v)
	return b.NewArray()
}

func (f between) Prune(zone func(uint32) (block.Zone, bool)) bool {
	z, ok := zone(f.id)
	if !ok {
		return false
	}
	if z.Nulls == z.Rows {
		return true
	}
	low, _ := block.ZoneValue(f.array(f.low), 0)
	high, _ := block.ZoneValue(f.array(f.high), 0)
	return z.Max != nil && bytes.Compare(z.Max, low) < 0 || z.Min != nil && bytes.Compare(z.Min, high) > 0
}

func (f between) Mask(cols []arrow.Array, rows int, keep []bool) {
	for i := range rows {
		v := int64(math.MinInt64)
		if cols[0].IsValid(i) {
			switch a := cols[0].(type) {
			case *array.Int64:
				v = a.Value(i)
			case *array.Uint64:
				v = int64(a.Value(i))
			}
		}
		if cols[0].IsNull(i) || v < f.low || v > f.high {
			keep[i] = false
		}
	}
}

func (f between) matches(r row) bool {
	var v int64
	switch f.id {
	case colSort:
		v = r.sort
	case block.ColumnCommit:
		v = int64(r.version)
	default:
		if r.num == nil {
			return false
		}
		v = *r.num
	}
	return v >= f.low && v <= f.high
}

func ptr[T any](v T) *T { return &v }
