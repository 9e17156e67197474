package block

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func encode(t testing.TB, rows int, ids []uint32, cols ...arrow.Array) []byte {
	t.Helper()
	data, err := NewEncoder().Encode(nil, rows, ids, cols)
	require.NoError(t, err)
	return data
}

// pickSome is rows of [0, n): few or many, in or out of order, with repeats.
func pickSome(rng *rand.Rand, n int) []uint32 {
	if n == 0 {
		return nil
	}
	rows := make([]uint32, rng.IntN(2*n))
	for i := range rows {
		rows[i] = uint32(rng.IntN(n))
	}
	if rng.IntN(2) == 0 {
		rows = rows[:0]
		for i := range n {
			if rng.IntN(3) > 0 {
				rows = append(rows, uint32(i))
			}
		}
	}
	return rows
}

// eachArray calls f with arrays of every type, spread and share of nulls.
func eachArray(t *testing.T, f func(t *testing.T, rng *rand.Rand, arr arrow.Array)) {
	for _, dt := range everyType() {
		t.Run(dt.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for how := range styles {
				for _, size := range []struct {
					rows  int
					nulls float64
				}{{0, 0}, {1, 0}, {5, 1}, {64, 0.2}, {300, 0}, {1500, 0.1}} {
					if size.rows > 300 && len(children(dt)) > 0 {
						continue
					}
					arr := randomArray(rng, dt, size.rows, how, size.nulls)
					f(t, rng, arr)
					if n := int64(size.rows); n > 8 {
						cut := array.NewSlice(arr, n/5, n-n/7)
						f(t, rng, cut)
						cut.Release()
					}
					arr.Release()
				}
			}
		})
	}
}

func TestBlockGivesBackEveryRow(t *testing.T) {
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		n := arr.Len()
		data := encode(t, n, []uint32{7}, arr)
		r, err := Open(data)
		require.NoError(t, err)
		require.Equal(t, n, r.Rows())

		v := NewVector(mem, arr.DataType())
		defer v.Release()
		// Appended twice, once in two pieces, behind an odd number of rows.
		v.AppendNulls(3)
		lead := v.NewArray()
		require.Equal(t, 3, lead.NullN())
		lead.Release()
		middle := rng.IntN(n + 1)
		require.NoError(t, r.Append(v, 7, 0, n))
		require.NoError(t, r.Append(v, 7, 0, middle))
		require.NoError(t, r.Append(v, 7, middle, n))
		picks := pickSome(rng, n)
		require.NoError(t, r.AppendRows(v, 7, picks))
		require.Equal(t, 2*n+len(picks), v.Len())
		got := v.NewArray()
		defer got.Release()
		rows := append(append(countTo(n), countTo(n)...), picks...)
		requireRows(t, arr, rows, got)
		requireSound(t, got)
	})
}

// requireSound fails if an array is not what arrow's readers may rely on.
func requireSound(t *testing.T, arr arrow.Array) {
	t.Helper()
	if arr.Len() < 200 {
		require.NotPanics(t, func() { _ = fmt.Sprint(arr) })
	}
}

func TestEncodingDoesNotDependOnTheEncoder(t *testing.T) {
	used := NewEncoder()
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		fresh := encode(t, arr.Len(), []uint32{1}, arr)
		again, err := used.Encode([]byte("before"), arr.Len(), []uint32{1}, []arrow.Array{arr})
		require.NoError(t, err)
		require.Equal(t, fresh, again[6:])
	})
}

func TestVectorGathersFromArrays(t *testing.T) {
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		n := arr.Len()
		v := NewVector(mem, arr.DataType())
		defer v.Release()
		lo := rng.IntN(n + 1)
		hi := lo + rng.IntN(n-lo+1)
		v.AppendArray(arr, lo, hi)
		rows := countTo(n)[lo:hi]
		picks := pickSome(rng, n)
		v.AppendRows(arr, picks)
		rows = append(rows[:len(rows):len(rows)], picks...)
		// The same array in two pieces is two sources.
		front, back := array.NewSlice(arr, 0, int64(lo)), array.NewSlice(arr, int64(lo), int64(n))
		defer front.Release()
		defer back.Release()
		refs := make([]Ref, len(picks))
		for i, row := range picks {
			refs[i] = Ref{Batch: 0, Row: row}
			if int(row) >= lo {
				refs[i] = Ref{Batch: 1, Row: row - uint32(lo)}
			}
		}
		v.AppendRefs([]arrow.Array{front, back}, refs)
		rows = append(rows, picks...)
		require.Equal(t, len(rows), v.Len())
		got := v.NewArray()
		defer got.Release()
		k, _ := kindOf(arr.DataType())
		w, g := sourceOf(k, arr.Data(), 0), sourceOf(k, got.Data(), 0)
		require.NoError(t, sameRows(arr.DataType(), &w, rows, &g, countTo(len(rows)), false))
		requireSound(t, got)
		require.Zero(t, v.Len())
	})
}
