package block

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func TestStretchesAreTheRowsTheyName(t *testing.T) {
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		n := arr.Len()
		v := NewVector(mem, arr.DataType())
		defer v.Release()
		// The same array in two pieces is two sources; the third is not named.
		middle := rng.IntN(n + 1)
		front, back := array.NewSlice(arr, 0, int64(middle)), array.NewSlice(arr, int64(middle), int64(n))
		defer front.Release()
		defer back.Release()
		starts := []int{0, middle}
		v.AppendArray(arr, 0, min(n, 3))
		rows := countTo(min(n, 3))
		for range 2 { // what the first call left behind does not matter to the second
			var list []Stretch
			for range rng.IntN(40) {
				piece := rng.IntN(2)
				length := []int{front.Len(), back.Len()}[piece]
				lo := rng.IntN(length + 1)
				hi := lo + min(rng.IntN(1+rng.IntN(24)), length-lo)
				list = append(list, Stretch{uint32(piece), uint32(lo), uint32(hi)})
				for row := lo; row < hi; row++ {
					rows = append(rows, uint32(starts[piece]+row))
				}
			}
			v.AppendStretches([]arrow.Array{front, back, nil}, list)
		}
		require.Equal(t, len(rows), v.Len())
		got := v.NewArray()
		defer got.Release()
		k, _ := kindOf(arr.DataType())
		w, g := sourceOf(k, arr.Data(), 0), sourceOf(k, got.Data(), 0)
		require.NoError(t, sameRows(arr.DataType(), &w, rows, &g, countTo(len(rows)), false))
		requireSound(t, got)
	})
}

// BenchmarkStretches merges two batches: nine rows of one, one of the other.
func BenchmarkStretches(b *testing.B) {
	blocks, _ := lineitem()
	var list []Stretch
	for row := uint32(0); row+10 <= benchRows; row += 10 {
		list = append(list, Stretch{0, row, row + 9}, Stretch{1, row / 10, row/10 + 1})
	}
	vectors := make([]*Vector, len(lineitemTypes))
	for i, dt := range lineitemTypes {
		vectors[i] = NewVector(memory.DefaultAllocator, dt)
	}
	for b.Loop() {
		for i, v := range vectors {
			v.AppendStretches([]arrow.Array{blocks[0][i], blocks[1][i]}, list)
			v.Reset()
		}
	}
	reportRows(b, benchRows)
}
