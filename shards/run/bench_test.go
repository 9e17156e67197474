package run

import (
	"fmt"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/key"
)

const benchRows = 200_000

// benchSources are runs of benchRows rows in all: one behind the other, or
// dealt out in turn, so many rows at a time.
func benchSources(b *testing.B, runs, deal int) (*bed, []Source) {
	bed := newBed(b)
	bed.blockRows, bed.leafBlocks = limits.BlockRows, leafBlocks
	bed.cache = NewCache(64 << 20)
	rows := make([][]row, runs)
	for i := range benchRows {
		at := i * runs / benchRows
		if deal > 0 {
			at = i / deal % runs
		}
		rows[at] = append(rows[at], row{
			shard: fmt.Sprintf("d%05d", i/40), sort: int64(i), num: ptr(int64(i % 1000)),
			note: ptr(fmt.Sprintf("note %d", i%77)), price: int64(i) * 7 % 100_000, later: ptr(float64(i) / 4), version: 1,
		})
	}
	var sources []Source
	for _, r := range rows {
		sources = append(sources, bed.run(r, typesNow, false).Source(3))
	}
	return bed, sources
}

func benchScan(b *testing.B, r Request, sources []Source) {
	r.Mem, r.Key, r.Types = memory.DefaultAllocator, testKey, typesNow
	rows := 0
	b.ReportAllocs()
	for b.Loop() {
		s, err := NewScan(b.Context(), r, sources)
		require.NoError(b, err)
		for {
			batch, err := s.Next()
			if err == io.EOF {
				break
			}
			require.NoError(b, err)
			rows += batch.Rows
			batch.Release()
		}
		require.NoError(b, s.Close())
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkScan(b *testing.B) {
	for _, layout := range []struct {
		name       string
		runs, deal int
	}{{"1 run", 1, 0}, {"30 runs streaming", 30, 0}, {"2 runs merging", 2, 1}, {"30 runs merging", 30, 1}} {
		_, sources := benchSources(b, layout.runs, layout.deal)
		for _, r := range []struct {
			name string
			Request
		}{
			{"all", Request{Columns: allColumns}},
			{"desc", Request{Columns: allColumns, Desc: true}},
			{"1 column", Request{Columns: []uint32{colPrice}}},
			{"count", Request{}},
			{"filter tenth", Request{Columns: allColumns, Filter: between{colNum, 0, 99}}},
		} {
			b.Run(layout.name+"/"+r.name, func(b *testing.B) { benchScan(b, r.Request, sources) })
		}
	}
}

// One row by its key, of runs whose sharding keys interleave.
func BenchmarkLookup(b *testing.B) {
	for _, runs := range []int{1, 30} {
		_, sources := benchSources(b, runs, 40)
		b.Run(fmt.Sprint(runs, " runs"), func(b *testing.B) {
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 7919) % benchRows
				k := []byte(row{shard: fmt.Sprintf("d%05d", i/40), sort: int64(i)}.key())
				s, err := NewScan(b.Context(), Request{Key: testKey, Types: typesNow, Columns: allColumns, Ranges: []Range{{Low: k, High: key.Next(k)}}}, sources)
				require.NoError(b, err)
				batch, err := s.Next()
				require.NoError(b, err)
				batch.Release()
				require.NoError(b, s.Close())
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	bed := newBed(b)
	bed.blockRows, bed.leafBlocks = limits.BlockRows, leafBlocks
	rows := numbered("a", 0, 100_000, 5, 1)
	cols := columnsOf(bed.mem, typesNow, allColumns, rows)
	defer releaseAll(cols)
	keys := keysOf(rows)
	b.ReportAllocs()
	for b.Loop() {
		w := bed.writer()
		require.NoError(b, w.Add(3, keys, allColumns, cols))
		_, err := w.Finish()
		require.NoError(b, err)
		require.NoError(b, bed.fs.Remove(bed.file(w.o.Run)))
	}
	b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
}
