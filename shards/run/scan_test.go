package run

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// numbered are rows of one sharding key with sorting keys from..to-1 and num
// equal to num.
func numbered(shard string, from, to int, num int64, version uint64) []row {
	var rows []row
	for i := from; i < to; i++ {
		rows = append(rows, row{shard: shard, sort: int64(i), num: ptr(num), price: int64(i), version: version})
	}
	return rows
}

// A row that the filter leaves out still hides older rows: its block must not be
// skipped by zones while an older block has rows in its range.
func TestZonesDoNotLiftAnOldVersion(t *testing.T) {
	b := newBed(t)
	older := b.run(numbered("a", 0, 8, 1, 1), typesNow, false).Source(3)
	newer := b.run(numbered("a", 0, 8, 2, 2), typesNow, false).Source(3)
	for _, desc := range []bool{false, true} {
		got, counters := b.scan(Request{Filter: between{colNum, 1, 1}, Desc: desc}, newer, older)
		require.Empty(t, got, "every row now has num 2")
		require.Zero(t, counters.RowsReturned)

		// The other way round the older blocks cannot hide anything: skipped.
		got, counters = b.scan(Request{Filter: between{colNum, 2, 2}, Desc: desc}, newer, older)
		require.Len(t, got, 8)
		require.EqualValues(t, 2, counters.BlocksPruned)
		require.EqualValues(t, 2, counters.BlocksRead)
	}
	// Of equal versions the newer source hides the other: the same trap.
	same := b.run(numbered("a", 0, 8, 3, 1), typesNow, false).Source(3)
	got, _ := b.scan(Request{Filter: between{colNum, 1, 1}}, same, older)
	require.Empty(t, got)
	// The order of the list does not matter where versions differ.
	got, _ = b.scan(Request{Filter: between{colNum, 1, 1}}, older, newer)
	require.Empty(t, got)
}

// The older block that would be lifted begins only behind the one at hand: other
// parts of the older source count too, not just the one it stands on.
func TestZonesLookAtEverySourceNotItsPresentPart(t *testing.T) {
	b := newBed(t)
	// Versions 9 and 1 in one run: its first block is newer, its second older.
	mixed := append(numbered("a", 0, 4, 7, 9), numbered("a", 4, 8, 1, 1)...)
	folded := b.run(mixed, typesNow, true).Source(3)
	b.blockRows = 8
	middle := b.run(numbered("a", 0, 8, 2, 5), typesNow, false).Source(3)
	got, _ := b.scan(Request{Filter: between{colNum, 1, 1}}, folded, middle)
	require.Empty(t, got, "version 5 hides rows 4 to 7 of version 1")
}

// Rows with the same key have the same key columns, so zones of these skip
// blocks whatever overlaps them.
func TestZonesOfKeyColumnsSkipOverlappingBlocks(t *testing.T) {
	b := newBed(t)
	older := b.run(numbered("a", 0, 40, 1, 1), typesNow, false).Source(3)
	newer := b.run(numbered("a", 0, 40, 2, 2), typesNow, false).Source(3)
	got, counters := b.scan(Request{Filter: between{colSort, 21, 22}}, newer, older)
	require.Len(t, got, 2)
	require.EqualValues(t, 18, counters.BlocksPruned)
	require.EqualValues(t, 2, counters.BlocksRead)
}

func TestTombstoneBlocksAloneAreNotRead(t *testing.T) {
	b := newBed(t)
	dead := numbered("a", 0, 8, 0, 2)
	for i := range dead {
		dead[i].dead, dead[i].num = true, nil
	}
	deletes := b.run(dead, typesNow, false).Source(3)
	other := b.run(numbered("b", 0, 8, 1, 1), typesNow, false).Source(3)
	got, counters := b.scan(Request{}, deletes, other)
	require.Len(t, got, 8)
	require.EqualValues(t, 2, counters.BlocksRead)
}

func TestAtEqualVersionsTheDeleteWinsThenTheNewerSource(t *testing.T) {
	b := newBed(t)
	one := b.run([]row{{shard: "a", sort: 1, num: ptr(int64(1)), version: 4}, {shard: "a", sort: 2, num: ptr(int64(1)), version: 4}}, typesNow, false).Source(3)
	two := b.run([]row{{shard: "a", sort: 1, dead: true, version: 4}, {shard: "a", sort: 2, num: ptr(int64(2)), version: 4}}, typesNow, false).Source(3)
	columns := []uint32{colSort, colNum}
	got, _ := b.scan(Request{Columns: columns}, one, two)
	require.Equal(t, []string{"2|1"}, got)
	got, _ = b.scan(Request{Columns: columns}, two, one)
	require.Equal(t, []string{"2|2"}, got)
}

// watched counts what a scan asks of a source.
type watched struct {
	Source
	keys, loads int
}

type watchedCursor struct {
	Cursor
	w *watched
}

func (w *watched) Cursor(o CursorOptions) (Cursor, error) {
	c, err := w.Source.Cursor(o)
	return &watchedCursor{c, w}, err
}

func (c *watchedCursor) Keys(dst *key.Keys) error { c.w.keys++; return c.Cursor.Keys(dst) }
func (c *watchedCursor) Load() (int, error)       { c.w.loads++; return c.Cursor.Load() }

func TestRunsThatDoNotOverlapStreamWithoutKeys(t *testing.T) {
	b := newBed(t)
	var sources []Source
	var all []*watched
	for i := 9; i >= 0; i-- {
		w := &watched{Source: b.run(numbered("a", 10*i, 10*i+10, 1, uint64(i+1)), typesNow, false).Source(3)}
		all, sources = append(all, w), append(sources, w)
	}
	for _, desc := range []bool{false, true} {
		got, _ := b.scan(Request{Desc: desc}, sources...)
		require.Len(t, got, 100)
	}
	got, _ := b.scan(Request{Columns: []uint32{}}, sources...)
	require.Len(t, got, 100)
	for _, w := range all {
		require.Zero(t, w.keys)
		require.Equal(t, 6, w.loads, "three blocks, twice; a count reads none")
	}
}

func TestLookupsReadOneBlockAndOnlyWhereTheFilterAgrees(t *testing.T) {
	b := newBed(t)
	b.leafBlocks = 2
	var sources []Source
	for i := range 20 { // sharding keys interleave: the index cannot tell them apart
		var rows []row
		for j := range 50 {
			rows = append(rows, numbered(fmt.Sprintf("device %04d", 20*j+i), 0, 2, 1, 1)...)
		}
		sources = append(sources, b.run(rows, typesNow, false).Source(3))
	}
	lookup := func(shard string, sort int64) (int, Counters) {
		k := []byte(row{shard: shard, sort: sort}.key())
		got, counters := b.scan(Request{Ranges: []Range{{Low: k, High: key.Next(k)}}}, sources...)
		return len(got), counters
	}
	blocks := uint64(0)
	for i := range 1000 {
		rows, counters := lookup(fmt.Sprintf("device %04d", i), 1)
		require.Equal(t, 1, rows)
		blocks += counters.BlocksRead
		if counters.BlocksRead == 1 {
			require.EqualValues(t, 1, counters.RowsScanned, "one row of the block is looked at")
		}
	}
	require.Less(t, blocks, uint64(1400), "20 runs, and about one block read for each lookup")
	rows, _ := lookup("device 0001", 7)
	require.Zero(t, rows)

	blocks = 0
	for i := range 1000 {
		rows, counters := lookup(fmt.Sprintf("device %04d x", i), 1)
		require.Zero(t, rows)
		blocks += counters.BlocksRead
	}
	require.Less(t, blocks, uint64(400))
}

func TestAScanEndsWhenItsContextDoes(t *testing.T) {
	b := newBed(t)
	ctx, cancel := context.WithCancel(context.Background())
	src := b.run(numbered("a", 0, 400, 1, 1), typesNow, false).Source(3)
	s, err := NewScan(ctx, Request{Mem: b.mem, Key: testKey, Types: typesNow, Columns: allColumns, TargetBytes: 1}, []Source{src})
	require.NoError(t, err)
	batch, err := s.Next()
	require.NoError(t, err)
	require.Equal(t, 4, batch.Rows)
	batch.Release()
	cancel()
	for range 2 {
		_, err = s.Next()
		require.ErrorIs(t, err, context.Canceled)
	}
	require.EqualValues(t, 1, s.Counters().BlocksRead)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
}

func TestALimitStopsReading(t *testing.T) {
	b := newBed(t)
	src := b.run(numbered("a", 0, 400, 1, 1), typesNow, false).Source(3)
	over := b.run(numbered("a", 0, 400, 1, 2), typesNow, false).Source(3)
	for _, desc := range []bool{false, true} {
		got, counters := b.scan(Request{Limit: 6, Desc: desc}, src)
		require.Len(t, got, 6)
		require.EqualValues(t, 2, counters.BlocksRead)
		got, counters = b.scan(Request{Limit: 6, Desc: desc}, over, src)
		require.Len(t, got, 6)
		require.EqualValues(t, 4, counters.BlocksRead)
	}
}

func TestBatchesEndAtTheirTarget(t *testing.T) {
	b := newBed(t)
	src := b.run(numbered("a", 0, 400, 1, 1), typesNow, false).Source(3)
	next := func(s *Scan) int {
		batch, err := s.Next()
		if err == io.EOF {
			return 0
		}
		require.NoError(t, err)
		defer batch.Release()
		return batch.Rows
	}
	for _, c := range []struct {
		r    Request
		rows int
	}{
		{Request{Columns: []uint32{colPrice}, TargetBytes: 1000}, 64},
		{Request{Columns: []uint32{colPrice}, TargetRows: 101}, 104},
		{Request{TargetRows: 101}, 104},
	} {
		c.r.Mem, c.r.Key, c.r.Types = b.mem, testKey, typesNow
		s, err := NewScan(t.Context(), c.r, []Source{src})
		require.NoError(t, err)
		require.Equal(t, c.rows, next(s))
		total := c.rows
		for n := next(s); n > 0; n = next(s) {
			total += n
		}
		require.Equal(t, 400, total)
		require.NoError(t, s.Close())
	}
}

func TestAColumnOfAnotherVersionOfTheSchema(t *testing.T) {
	b := newBed(t)
	old := b.run(numbered("a", 0, 4, 7, 1), typesOld, false).Source(3)
	now := numbered("b", 0, 1, 1<<40, 2)
	now[0].later = ptr(2.5)
	src := b.run(now, typesNow, false).Source(3)
	got, _ := b.scan(Request{Columns: []uint32{colNum, colLater, block.ColumnCommit}}, src, old)
	require.Equal(t, []string{"7|null|1", "7|null|1", "7|null|1", "7|null|1", fmt.Sprint(1<<40, "|2.5|2")}, got)

	// Zones of the narrower type are not compared with values of the wider.
	got, _ = b.scan(Request{Columns: []uint32{colSort}, Filter: between{colNum, 7, 7}}, src, old)
	require.Len(t, got, 4)
	// What was not there then is null: such blocks are skipped.
	got, counters := b.scan(Request{Columns: []uint32{colSort}, Filter: notNull{colLater}}, src, old)
	require.Len(t, got, 1)
	require.EqualValues(t, 1, counters.BlocksPruned)

	// A column that is no longer in the schema is not looked at.
	got, _ = b.scan(Request{Columns: []uint32{colNum}, Types: typesNow}, src)
	require.Equal(t, []string{fmt.Sprint(1 << 40)}, got)
	_, err := NewScan(t.Context(), Request{Columns: []uint32{99}, Key: testKey, Types: typesNow}, nil)
	require.Error(t, err)
}

// notNull holds for rows where the column is not null.
type notNull struct{ id uint32 }

func (f notNull) Columns() []uint32 { return []uint32{f.id} }

func (f notNull) Prune(zone func(uint32) (block.Zone, bool)) bool {
	z, ok := zone(f.id)
	return ok && z.Nulls == z.Rows
}

func (f notNull) Mask(cols []arrow.Array, rows int, keep []bool) {
	for i := range rows {
		keep[i] = keep[i] && cols[0].IsValid(i)
	}
}

func TestPiecesCoverTheRange(t *testing.T) {
	b := newBed(t)
	for _, rows := range []int{4, 400} {
		r := b.run(numbered("a", 0, rows, 1, 1), typesNow, false)
		pieces, err := r.Pieces(t.Context(), nil, 3, nil, nil)
		require.NoError(t, err)
		total := uint64(0)
		for i, p := range pieces {
			total += p.Rows
			require.Positive(t, p.Encoded)
			require.Positive(t, p.Plain)
			if i > 0 {
				require.Less(t, string(pieces[i-1].Last), string(p.Last))
			}
		}
		require.EqualValues(t, rows, total)
		require.Equal(t, row{shard: "a", sort: int64(rows - 1)}.key(), string(pieces[len(pieces)-1].Last))
	}
	r := b.run(numbered("a", 0, 400, 1, 1), typesNow, false)
	low, high := []byte(row{shard: "a", sort: 8}.key()), []byte(row{shard: "a", sort: 17}.key())
	pieces, err := r.Pieces(t.Context(), nil, 3, low, high)
	require.NoError(t, err)
	require.Len(t, pieces, 3, "blocks 8..11, 12..15, 16..19")
	pieces, err = r.Pieces(t.Context(), nil, 3, []byte("z"), nil)
	require.NoError(t, err)
	require.Empty(t, pieces)
}
