package key_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/key"
)

func randomKeys(rng *rand.Rand, n int) *key.Keys {
	keys := &key.Keys{}
	for range n {
		k := make([]byte, rng.IntN([]int{2, 10, 20, 70}[rng.IntN(4)]))
		for i := range k {
			k[i] = byte(rng.IntN(3))
		}
		keys.Append(k)
	}
	return keys
}

func TestPickedKeysAreTheKeysOneByOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		src := randomKeys(rng, 1+rng.IntN(60))
		got, want := &key.Keys{}, &key.Keys{}
		for range 3 {
			var rows []uint32
			for range rng.IntN(40) {
				rows = append(rows, uint32(rng.IntN(src.Len())))
			}
			got.AppendRows(src, rows)
			for _, row := range rows {
				want.Append(src.At(int(row)))
			}
			lo := rng.IntN(src.Len() + 1)
			hi := lo + rng.IntN(src.Len()-lo+1)
			got.AppendRange(src, lo, hi)
			for i := lo; i < hi; i++ {
				want.Append(src.At(i))
			}
		}
		require.Equal(t, want.Len(), got.Len())
		for i := range want.Len() {
			require.Equal(t, want.At(i), got.At(i))
		}
	}
}

func TestDescentIsWhereKeysDoNotAscend(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 2000 {
		keys := randomKeys(rng, rng.IntN(5))
		want := 0
		for want < keys.Len() && (want == 0 || bytes.Compare(keys.At(want-1), keys.At(want)) < 0) {
			want++
		}
		require.Equal(t, want, keys.Descent())
	}
}

func BenchmarkPick(b *testing.B) {
	keys := &key.Keys{}
	if err := key.Encode(keys, benchTables()["string,int64"]); err != nil {
		b.Fatal(err)
	}
	var rows []uint32
	for i := range benchRows {
		rows = append(rows, uint32(i*977%benchRows))
	}
	out := &key.Keys{}
	for b.Loop() {
		out.Reset()
		out.AppendRows(keys, rows)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}
