package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
)

// randomGroup is batches of rows with random keys, some of them equal, sorted
// or not, in a table of some slices.
func randomGroup(t testing.TB, rng *rand.Rand) *group {
	schema := &shards.Schema{
		Columns: []shards.Column{
			{ID: 1, Field: arrow.Field{Name: "k", Type: arrow.BinaryTypes.String}, Canonical: arrow.BinaryTypes.String},
			{ID: 2, Field: arrow.Field{Name: "s", Type: arrow.PrimitiveTypes.Int64}, Canonical: arrow.PrimitiveTypes.Int64},
		},
		Sharding: []int{0}, Sorting: []int{1}, Slices: 1 + rng.IntN(20),
	}
	stream := schema.Arrow()
	binding, err := bind(shards.Name{}, schema, stream, ModeUpsert)
	require.NoError(t, err)
	g := &group{binding: binding}
	distinct := 1 + rng.IntN(50)
	var texts []string
	for range distinct {
		text := make([]byte, rng.IntN(12))
		for i := range text {
			text[i] = "a\x00b"[rng.IntN(3)]
		}
		texts = append(texts, string(text))
	}
	ordered := rng.IntN(3) == 0
	at := int64(-100)
	for place_ := range 1 + rng.IntN(5) {
		builder := array.NewRecordBuilder(memory.DefaultAllocator, stream)
		for range rng.IntN(200) {
			at++
			s := at
			if !ordered {
				s = rng.Int64N(20) - 10
			}
			builder.Field(0).(*array.StringBuilder).Append(texts[rng.IntN(distinct)])
			builder.Field(1).(*array.Int64Builder).Append(s)
		}
		batch := builder.NewRecordBatch()
		require.NoError(t, g.add(memory.DefaultAllocator, batch, place(place_), 1<<30, nil))
		batch.Release()
		builder.Release()
	}
	return g
}

func TestSplitIsWhatAMapWouldKeep(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for round := range 500 {
		g := randomGroup(t, rng)
		keepFirst := round%2 == 0
		type seen struct {
			first, kept uint32
			slice       int
		}
		want := map[string]seen{}
		again := map[int]int64{}
		for row := range g.rows() {
			k := string(g.keys.At(row))
			before, exists := want[k]
			if !exists {
				end, err := key.Prefix(g.binding.schema.KeyTypes(), []byte(k), 1)
				require.NoError(t, err)
				want[k] = seen{uint32(row), uint32(row), key.SliceOf(key.Hash([]byte(k[:end])), g.binding.schema.Slices)}
				continue
			}
			if _, known := again[before.slice]; !known {
				again[before.slice] = int64(row)
			}
			if !keepFirst {
				before.kept = uint32(row)
				want[k] = before
			}
		}
		parts, err := g.split(keepFirst)
		require.NoError(t, err)
		total := 0
		last := -1
		for _, part := range parts {
			require.Greater(t, part.slice, last)
			last = part.slice
			for i := range part.keys.Len() {
				k := part.keys.At(i)
				if i > 0 {
					require.Negative(t, bytes.Compare(part.keys.At(i-1), k))
				}
				require.Equal(t, want[string(k)], seen{part.first[i], part.rows[i], part.slice})
				total++
			}
			if first, known := again[part.slice]; known {
				require.Equal(t, first, part.again)
			} else {
				require.Equal(t, int64(-1), part.again)
			}
			for i, ref := range g.refs(part.rows) {
				b := g.batches[ref.Batch]
				require.Equal(t, part.rows[i], b.first+ref.Row)
				require.Less(t, int(ref.Row), b.columns[0].Len())
			}
		}
		require.Len(t, want, total)
		g.release()
	}
}

func TestSortedRowsStayWhereTheyAre(t *testing.T) {
	var keys key.Keys
	var rows []uint32
	for i := range 100 {
		keys.Append(fmt.Appendf(nil, "key%03d", i))
		rows = append(rows, uint32(i))
	}
	part := sortSlice(&sorter{}, &keys, rows, 3, false)
	require.Same(t, &rows[0], &part.rows[0])
	slices.Reverse(rows)
	part = sortSlice(&sorter{}, &keys, rows, 3, false)
	require.Equal(t, keys, *part.keys)
}

func BenchmarkSplit(b *testing.B) {
	for _, c := range []struct {
		name    string
		ordered bool
	}{{"sorted", true}, {"random", false}} {
		b.Run(c.name, func(b *testing.B) {
			const rows = 1 << 18
			rng := rand.New(rand.NewPCG(1, 1))
			schema := &shards.Schema{
				Columns:  []shards.Column{{ID: 1, Field: arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}, Canonical: arrow.PrimitiveTypes.Int64}},
				Sharding: []int{0}, Slices: 16,
			}
			builder := array.NewInt64Builder(memory.DefaultAllocator)
			for i := range rows {
				v := int64(i)
				if !c.ordered {
					v = rng.Int64()
				}
				builder.Append(v)
			}
			column := builder.NewArray()
			batch := array.NewRecordBatch(schema.Arrow(), []arrow.Array{column}, rows)
			binding, err := bind(shards.Name{}, schema, schema.Arrow(), ModeUpsert)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				g := &group{binding: binding}
				if err := g.add(memory.DefaultAllocator, batch, 0, 1<<30, nil); err != nil {
					b.Fatal(err)
				}
				if _, err := g.split(false); err != nil {
					b.Fatal(err)
				}
				g.release()
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
