package block

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// What the codes name are the rows, in every encoding that has codes; and the
// others say that they have none.
func TestCodesNameEveryRow(t *testing.T) {
	coded := map[arrow.Type]int{}
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		n := arr.Len()
		r, err := Open(encode(t, n, []uint32{7}, arr))
		require.NoError(t, err)
		v := NewVector(mem, arr.DataType())
		defer v.Release()
		lo := rng.IntN(n + 1)
		hi := lo + rng.IntN(n-lo+1)
		codes, ok, err := r.Codes(v, make([]uint32, 3), 7, lo, hi)
		require.NoError(t, err)
		if !ok {
			require.Zero(t, v.Len())
			return
		}
		coded[arr.DataType().ID()]++
		list := v.NewArray()
		defer list.Release()
		requireSound(t, list)
		require.Len(t, codes, hi-lo)
		k, _ := kindOf(arr.DataType())
		w, g := sourceOf(k, arr.Data(), 0), sourceOf(k, list.Data(), 0)
		require.NoError(t, sameRows(arr.DataType(), &w, countTo(n)[lo:hi], &g, codes, false))
	})
	for _, id := range []arrow.Type{arrow.INT64, arrow.FLOAT64, arrow.STRING, arrow.DECIMAL128} {
		require.NotZero(t, coded[id], id)
	}
	require.Zero(t, coded[arrow.LIST])
}
