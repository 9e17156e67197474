package ingest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
)

func TestPartitionHasTheRowsThatSplitKeeps(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for round := range 200 {
		g := randomGroup(t, rng)
		keepFirst := round%2 == 0
		parts, err := g.split(keepFirst)
		require.NoError(t, err)
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		p, err := g.partition(t.Context(), mem, keepFirst)
		require.NoError(t, err)
		list := p.rows()
		require.Len(t, list, len(parts))
		for i, part := range parts {
			got := list[i]
			require.Equal(t, part.slice, got.Slice)
			require.Equal(t, part.keys.Len(), got.Len())
			for at := range got.Len() {
				row := at
				if got.Order != nil {
					row = int(got.Order[at])
				}
				require.Equal(t, part.keys.At(at), got.Keys.At(row))
				b := g.batches[g.batchOf(part.rows[at])]
				from := int(part.rows[at] - b.first)
				require.Equal(t, b.columns[0].(*array.String).Value(from), got.Columns[0].(*array.String).Value(row))
				require.Equal(t, b.columns[1].(*array.Int64).Value(from), got.Columns[1].(*array.Int64).Value(row))
			}
			releaseAll(got.Columns)
		}
		mem.AssertSize(t, 0)
		g.release()
	}
}

// TestTinyBatchesAreNotDealtOut: what a partition notes of each batch and slice would
// take many times what the rows do.
func TestTinyBatchesAreNotDealtOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	of := func(batches, rows int) bool {
		g := randomGroup(t, rng)
		defer g.release()
		g.bytes, g.binding.schema.Slices = limits.CommitBytes, 256
		g.batches[0].first, g.batches = 0, slices.Repeat(g.batches[:1], batches)
		defer func() { g.batches = g.batches[:1] }()
		g.keys.Reset()
		for range rows {
			g.keys.Append([]byte("key"))
		}
		return g.partitions()
	}
	require.True(t, of(1, 100_000))
	require.True(t, of(1_000, 100_000))
	require.False(t, of(50_000, 100_000))
	require.False(t, of(1, 1_000))
}

func BenchmarkPartition(b *testing.B) {
	rng := rand.New(rand.NewPCG(9, 9))
	g := randomGroup(b, rng)
	for b.Loop() {
		p, err := g.partition(b.Context(), memory.DefaultAllocator, false)
		if err != nil {
			b.Fatal(err)
		}
		for _, rows := range p.rows() {
			releaseAll(rows.Columns)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(g.rows()), "ns/row")
}
