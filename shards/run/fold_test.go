package run

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
)

// TestFoldPassesBlocksOfLargeRows: a block of few large rows behind many small ones
// of another run that are on their way: whatever is shared out or passed on, no
// row is lost.
func TestFoldPassesBlocksOfLargeRows(t *testing.T) {
	for _, small := range []int{1, 3, 9, 10, 11, 900, 1023} {
		b := newBed(t)
		b.blockRows, b.leafBlocks = limits.BlockRows, leafBlocks
		var before, large, behind []row
		for i := range small {
			before = append(before, row{shard: "a", sort: int64(i), note: ptr("short"), version: uint64(1 + i%2)})
		}
		for i := range 3 * 10 {
			text := fmt.Sprintf("%0*d", 60<<10, i)
			large = append(large, row{shard: "b", sort: int64(i), note: &text, version: uint64(3 + i%2)})
		}
		for i := range 1500 {
			behind = append(behind, row{shard: "c", sort: int64(i), version: uint64(5 + i%2)})
		}
		sources := []Source{
			b.run(behind, typesNow, true).Source(3), b.run(large, typesNow, true).Source(3), b.run(before, typesNow, true).Source(3),
		}
		passed := uint64(0)
		infos, err := Fold(context.Background(), FoldRequest{
			Mem: b.mem, Key: testKey, Types: typesNow, Columns: allColumns, Slice: 3, DropTombstones: true,
			Raw: []bool{true, true, true}, Passed: &passed,
			Create: func() (*Writer, error) { return b.writer(), nil },
		}, sources)
		require.NoError(t, err)
		require.Len(t, infos, 1)
		require.NotZero(t, passed)
		require.NoError(t, b.db.Ingest(context.Background(), []string{b.file(b.runs)}))
		folded := b.open(b.runs, infos[0], typesNow, 0)
		got, _ := b.scan(Request{}, folded.Source(3))
		require.Equal(t, expect([][]row{behind, large, before}, Request{}, nil), got, "%d rows before", small)
	}
}
