package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// The wide table: the tests' key, and behind it integers.
const firstWide uint32 = 10

func wideTypes(columns int) Types {
	return func(id uint32) (arrow.DataType, bool) {
		if id >= firstWide && id < firstWide+uint32(columns) {
			return arrow.PrimitiveTypes.Int64, true
		}
		return typesNow(id)
	}
}

func wideIDs(columns int) []uint32 {
	ids := []uint32{colShard, colSort}
	for i := range columns {
		ids = append(ids, firstWide+uint32(i))
	}
	return ids
}

// wideColumnsOf are random values of rows, which no encoding makes small.
func wideColumnsOf(mem memory.Allocator, rows []row, columns int) []arrow.Array {
	cols := columnsOf(mem, typesNow, []uint32{colShard, colSort}, rows)
	rng := rand.New(rand.NewPCG(1, uint64(columns)))
	b := array.NewInt64Builder(mem)
	defer b.Release()
	for range columns {
		b.Reserve(len(rows))
		for range rows {
			b.UnsafeAppend(int64(rng.Uint64() >> 20))
		}
		cols = append(cols, b.NewArray())
	}
	return cols
}

// wideRun is a run of so many rows, a sharding key for each four.
func (b *bed) wideRun(rows, columns int, whole bool) *Run {
	of := make([]row, rows)
	for i := range of {
		of[i] = row{shard: fmt.Sprintf("d%06d", i/4), sort: int64(i % 4), version: 1}
	}
	cols := wideColumnsOf(b.mem, of, columns)
	defer releaseAll(cols)
	w := b.writer()
	if whole {
		require.NoError(b.t, w.begin(3))
		w.slice.decided = true
	}
	require.NoError(b.t, w.Add(3, keysOf(of), wideIDs(columns), cols))
	return b.ingest(w, wideTypes(columns), 1)
}

// drain reads what a scan gives: its rows and what it read.
func (b *bed) drain(r Request, sources ...Source) (int, Counters) {
	r.Mem, r.Key = b.mem, testKey
	s, err := NewScan(b.t.Context(), r, sources)
	require.NoError(b.t, err)
	rows := 0
	for {
		batch, err := s.Next()
		if err == io.EOF {
			break
		}
		require.NoError(b.t, err)
		rows += batch.Rows
		batch.Release()
	}
	counters := s.Counters()
	require.NoError(b.t, s.Close())
	return rows, counters
}

func TestGroupsHaveFewColumnsAndFewBytes(t *testing.T) {
	encode := func(cols ...arrow.Array) *block.Reader {
		var ids []uint32
		for i := range cols {
			ids = append(ids, uint32(i+1))
		}
		value, err := block.NewEncoder().Encode(nil, cols[0].Len(), ids, cols)
		require.NoError(t, err)
		r, err := block.Open(value)
		require.NoError(t, err)
		return &r
	}
	ints := func(rows, bits int) arrow.Array {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for range rows {
			b.Append(int64(rand.Uint64() >> (64 - bits)))
		}
		return b.NewArray()
	}
	texts := func(rows, bytes int) arrow.Array {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		for range rows {
			text := make([]byte, bytes)
			for i := range text {
				text[i] = byte(' ' + rand.IntN(90))
			}
			b.Append(string(text))
		}
		return b.NewArray()
	}
	many := func(n int, of arrow.Array) (list []arrow.Array) {
		for range n {
			list = append(list, of)
		}
		return list
	}
	split := func(cols ...arrow.Array) []uint32 {
		g := grouping{key: []uint32{1}}
		g.split(encode(cols...))
		return g.starts
	}
	require.Empty(t, split(many(17, ints(2048, 40))...), "a narrow table")
	require.Empty(t, split(many(300, ints(20, 40))...), "a small block")
	require.Len(t, split(many(301, ints(1000, 40))...), 75)
	require.LessOrEqual(t, len(split(many(3001, ints(174, 40))...)), mostGroups)
	require.Equal(t, []uint32{3, 4}, split(ints(500, 9), ints(500, 9), texts(500, 1000), ints(500, 9), ints(500, 9)), "documents between numbers")
	require.Equal(t, []uint32{3}, split(ints(500, 9), ints(500, 9), texts(500, 1000)))
	require.Empty(t, split(ints(500, 9), texts(500, 1000)), "nothing could be read without them")

	// A large column among many small ones has few neighbours.
	cols := many(301, ints(1000, 8))
	cols[150] = texts(1000, 200)
	starts := split(cols...)
	require.Contains(t, starts, uint32(151))
	require.Contains(t, starts, uint32(152))
}

func TestAColumnIsInOneGroup(t *testing.T) {
	g := grouping{key: []uint32{2, 9}, starts: []uint32{3, 7, 8}}
	for id, want := range map[uint32]int{
		1: 0, 2: 0, 3: 1, 6: 1, 7: 2, 8: 3, 9: 0, 1000: 3, block.ColumnCommit: 0, block.ColumnTombstone: 0,
	} {
		require.Equal(t, want, g.of(id), "column %d", id)
	}
	s := scanner{data: appendGrouping(nil, &g)}
	again := s.grouping()
	require.NoError(t, s.err)
	require.True(t, g.equal(&again))
}

// Rows that were written in one group and in many read the same, forwards,
// backwards, in part, and merged.
func TestGroupedBlocksReadAsWholeOnes(t *testing.T) {
	const columns = 100
	b := newBed(t)
	b.blockRows = 300
	whole, grouped := b.wideRun(2000, columns, true), b.wideRun(2000, columns, false)
	low := []byte(row{shard: "d000100", sort: 1}.key())
	high := []byte(row{shard: "d000301", sort: 2}.key())
	for _, r := range []Request{
		{}, {Desc: true}, {Limit: 700}, {Ranges: []Range{{Low: low, High: high}}},
		{Columns: []uint32{firstWide + 90, colSort, firstWide + 3}},
		{Columns: []uint32{firstWide + 90, block.ColumnCommit, block.ColumnTombstone}},
	} {
		if r.Columns == nil {
			r.Columns = wideIDs(columns)
		}
		r.Types = wideTypes(columns)
		expected, _ := b.scan(r, whole.Source(3))
		got, _ := b.scan(r, grouped.Source(3))
		require.NotEmpty(t, got)
		require.Equal(t, expected, got)
		merged, _ := b.scan(r, grouped.Source(3), whole.Source(3))
		require.Equal(t, expected, merged)
	}
}

func TestDamagedGroupsAreFound(t *testing.T) {
	const columns = 70
	b := newBed(t)
	b.blockRows = 500
	r := b.wideRun(1000, columns, false)
	root, err := r.index(3, 0, nil)
	require.NoError(t, err)
	require.Greater(t, root.groups.count(), 10)
	verify := func() (wrong []string) {
		fresh := Open(r.o)
		fresh.o.Cache = NewCache(1 << 20)
		require.NoError(t, fresh.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
		return wrong
	}
	require.Empty(t, verify())
	name := func(block, group int) []byte {
		return layout.AppendBlock(nil, r.prefix, 3, root.entries[block].last, group)
	}
	get := func(name []byte) []byte {
		value, closer, err := b.db.Get(name)
		require.NoError(t, err)
		defer closer.Close()
		return bytes.Clone(value)
	}
	read := func() error {
		fresh := Open(r.o)
		fresh.o.Cache = NewCache(1 << 20)
		s, err := NewScan(t.Context(), Request{Mem: b.mem, Key: testKey, Types: wideTypes(columns), Columns: wideIDs(columns)}, []Source{fresh.Source(3)})
		require.NoError(t, err)
		defer s.Close()
		for {
			batch, err := s.Next()
			if err != nil {
				return err
			}
			batch.Release()
		}
	}
	fewer, err := block.NewEncoder().Encode(nil, 0, nil, nil)
	require.NoError(t, err)
	for _, c := range []struct {
		what  string
		value []byte // nil: none
		told  string
		read  bool // fails a read, too
	}{
		{"missing", nil, "column group 5 of the block that ends with key", true},
		{"of other rows", fewer, "has 0 rows, the index says 500", true},
		{"of another group", get(name(0, 6)), "of group 6", true},
		{"of another block", get(name(1, 5)), "do not belong together", false},
	} {
		good := get(name(0, 5))
		if c.value == nil {
			require.NoError(t, b.db.Delete(name(0, 5), nil))
		} else {
			require.NoError(t, b.db.Set(name(0, 5), c.value, nil))
		}
		wrong := verify()
		require.NotEmpty(t, wrong, c.what)
		require.Contains(t, fmt.Sprint(wrong), c.told, c.what)
		if err := read(); c.read {
			require.True(t, fault.Is(err, "CHECKSUM_FAILED"), "%s: %v", c.what, err)
		}
		require.NoError(t, b.db.Set(name(0, 5), good, nil))
	}
	require.NoError(t, b.db.Set(name(0, root.groups.count()), fewer, nil))
	require.Contains(t, fmt.Sprint(verify()), "that no index names")
}

// A block is taken over as it is stored: the copy reads and verifies as the
// original, whose rows had one version.
func TestRawBlocksAreTakenOver(t *testing.T) {
	const columns = 100
	b := newBed(t)
	b.blockRows, b.leafBlocks = 300, 2
	grouped, whole := b.wideRun(2000, columns, false), b.wideRun(2000, columns, true)
	take := func(w *Writer, from *Run) (taken, refused int) {
		c := newCursor(from, 3, CursorOptions{Context: context.Background(), Mem: b.mem, Types: wideTypes(columns), Counters: &Counters{}})
		defer c.Close()
		require.NoError(t, c.Seek(Bounds{}))
		for {
			part, err := c.Next()
			require.NoError(t, err)
			if part == nil {
				return taken, refused
			}
			var raw RawBlock
			ok, err := c.Raw(&raw)
			require.NoError(t, err)
			require.True(t, ok)
			require.ElementsMatch(t, wideIDs(columns), raw.Columns())
			rows, _ := raw.Rows()
			require.Equal(t, part.Rows, rows)
			ok, err = w.AddRaw(3, &raw)
			require.NoError(t, err)
			if ok {
				taken++
			} else {
				refused++
			}
		}
	}
	w := b.writer()
	taken, refused := take(w, grouped)
	require.Equal(t, []int{7, 0}, []int{taken, refused})
	again := b.ingest(w, wideTypes(columns), 0)
	require.True(t, again.o.PerRow)
	r := Request{Types: wideTypes(columns), Columns: append(wideIDs(columns), block.ColumnCommit)}
	expected, _ := b.scan(r, grouped.Source(3))
	got, _ := b.scan(r, again.Source(3))
	require.Equal(t, expected, got)
	require.NoError(t, again.Verify(t.Context(), 3, func(what string) { t.Error(what) }))
	original, copied := b.values(grouped), b.values(again)
	require.Equal(t, len(original), len(copied))
	for i := range original {
		if original[i].key[len(b.prefixOf(grouped))+2] == 0 { // a block's filter or group
			require.Equal(t, original[i].value, copied[i].value)
		}
	}

	// A slice whose blocks are grouped otherwise does not take it.
	w = b.writer()
	require.NoError(t, w.begin(3))
	w.slice.decided = true
	taken, refused = take(w, grouped)
	require.Equal(t, []int{0, 7}, []int{taken, refused})
	taken, _ = take(w, whole)
	require.Equal(t, 7, taken)
	_, err := w.Finish()
	require.NoError(t, err)
}

func (b *bed) prefixOf(r *Run) []byte { return layout.RunPrefix(r.o.Table, r.o.Run) }

// A commit of deletes alone may come before the rows that decide the groups.
func TestDeletesBeforeRowsOfManyColumns(t *testing.T) {
	const columns = 100
	b := newBed(t)
	b.blockRows, b.leafBlocks = 200, 1
	deleted := numbered("a", 0, 500, 1, 1)
	rows := numbered("b", 0, 500, 1, 1)
	cols := wideColumnsOf(b.mem, rows, columns)
	defer releaseAll(cols)
	w := b.writer()
	require.NoError(t, w.AddDeletes(3, keysOf(deleted)))
	require.NoError(t, w.Add(3, keysOf(rows), wideIDs(columns), cols))
	r := b.ingest(w, wideTypes(columns), 1)
	require.NoError(t, r.Verify(t.Context(), 3, func(what string) { t.Error(what) }))
	n, _ := b.drain(Request{Types: wideTypes(columns), Columns: wideIDs(columns), Tombstones: true}, r.Source(3))
	require.Equal(t, 1000, n)
	n, _ = b.drain(Request{Types: wideTypes(columns), Columns: []uint32{firstWide + 50}}, r.Source(3))
	require.Equal(t, 500, n)
}

func BenchmarkWide(b *testing.B) {
	const columns, rows = 300, 8000
	bed := newBed(b)
	bed.blockRows, bed.leafBlocks, bed.cache = limits.BlockRows, leafBlocks, NewCache(64<<20)
	for _, whole := range []bool{true, false} {
		r := bed.wideRun(rows, columns, whole)
		name := map[bool]string{true: "whole", false: "groups"}[whole]
		scan := func(name string, request Request) {
			request.Types = wideTypes(columns)
			b.Run(name, func(b *testing.B) {
				n := 0
				for b.Loop() {
					rows, _ := bed.drain(request, r.Source(3))
					n += rows
				}
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			})
		}
		scan(name+"/all", Request{Columns: wideIDs(columns)})
		scan(name+"/3", Request{Columns: []uint32{firstWide, firstWide + 100, firstWide + 200}})
		k := []byte(row{shard: "d000777", sort: 2}.key())
		scan(name+"/row", Request{Columns: wideIDs(columns), Ranges: []Range{{Low: k, High: key.Next(k)}}})
	}
}
