package block

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func TestPatchesReplaceTheRowsTheyName(t *testing.T) {
	patched := 0
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		n := arr.Len()
		v := NewVector(mem, arr.DataType())
		defer v.Release()
		if !v.Patches() || n == 0 {
			return
		}
		patched++
		// Nulls only in the rows patched, only in the patches, or in both.
		without := nullFree(arr)
		defer without.Release()
		of := []arrow.Array{arr, without}
		base, other := of[rng.IntN(2)], of[rng.IntN(2)]
		lead := rng.IntN(4)
		for range lead {
			v.AppendArray(base, 0, 1)
		}
		v.AppendArray(base, 0, n)
		cut := array.NewSlice(other, int64(n/3), int64(n))
		defer cut.Release()
		want := make([]arrow.Array, n)
		at := make([]int, n)
		for i := range want {
			want[i], at[i] = base, i
		}
		var list []Patch
		for to := rng.IntN(3); to < n; {
			lo := rng.IntN(cut.Len())
			hi := lo + min(1+rng.IntN(3), cut.Len()-lo, n-to)
			list = append(list, Patch{1, uint32(lo), uint32(hi), uint32(to)})
			for i := range hi - lo {
				want[to+i], at[to+i] = other, n/3+lo+i
			}
			to += hi - lo + rng.IntN(20)
		}
		v.Patch(lead, []arrow.Array{nil, cut}, list)
		v.AppendArray(arr, n-1, n) // what is appended behind finds its place
		require.Equal(t, lead+n+1, v.Len())
		got := v.NewArray()
		defer got.Release()
		requireSound(t, got)
		k, _ := kindOf(arr.DataType())
		g := sourceOf(k, got.Data(), 0)
		for i := range want {
			w := sourceOf(k, want[i].Data(), 0)
			require.NoError(t, sameRows(arr.DataType(), &w, []uint32{uint32(at[i])}, &g, []uint32{uint32(lead + i)}, false), "row %d", i)
		}
		w := sourceOf(k, arr.Data(), 0)
		require.NoError(t, sameRows(arr.DataType(), &w, []uint32{uint32(n - 1)}, &g, []uint32{uint32(lead + n)}, false))
	})
	require.NotZero(t, patched)
}

// nullFree is an array of the same values whose nulls are values.
func nullFree(arr arrow.Array) arrow.Array {
	buffers := append([]*memory.Buffer{nil}, arr.Data().Buffers()[1:]...)
	data := array.NewData(arr.DataType(), arr.Len(), buffers, arr.Data().Children(), 0, arr.Data().Offset())
	defer data.Release()
	return array.MakeFromData(data)
}
