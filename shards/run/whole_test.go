package run

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// TestAddColumnsIsAdd: rows that lie together in arrays, in key order or not, give
// the same blocks as rows that are added one after the other, in narrow tables and
// in wide ones, whose blocks may be larger.
func TestAddColumnsIsAdd(t *testing.T) {
	for _, columns := range []int{0, 3, 100, 300} {
		b := newBed(t)
		b.blockRows = limits.BlockRows
		var rows []row
		for i := range 3000 {
			rows = append(rows, row{shard: fmt.Sprintf("k%04d", i/4), sort: int64(i % 4)})
		}
		ids, keys, cols := wideIDs(columns), keysOf(rows), wideColumnsOf(b.mem, rows, columns)
		w := b.writer()
		require.NoError(t, w.Add(3, keys, ids, cols))
		want, err := w.Finish()
		require.NoError(t, err)
		for _, inOrder := range []bool{true, false} {
			at, order := make([]uint32, len(rows)), make([]uint32, len(rows))
			for i, row := range rand.New(rand.NewPCG(1, 1)).Perm(len(rows)) {
				at[i], order[row] = uint32(row), uint32(i)
			}
			dealt, dealtKeys := cols, keys
			if inOrder {
				order = nil
			} else {
				dealt, dealtKeys = nil, &key.Keys{}
				dealtKeys.AppendRows(keys, at)
				for _, c := range cols {
					v := block.NewVector(b.mem, c.DataType())
					v.AppendRows(c, at)
					dealt = append(dealt, v.NewArray())
					v.Release()
				}
			}
			w := b.writer()
			require.NoError(t, w.AddColumns(3, dealtKeys, ids, dealt, order))
			got, err := w.Finish()
			require.NoError(t, err)
			require.Equal(t, want.Slices, got.Slices, "%d columns, in order %t", columns, inOrder)
			if !inOrder {
				releaseAll(dealt)
			}
		}
		releaseAll(cols)
	}
}
