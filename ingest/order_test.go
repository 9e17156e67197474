package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/key"
)

// keyShapes make one encoded key each, of a kind that tables have.
var keyShapes = map[string]func(rng *rand.Rand, i int) []byte{
	"random int": func(rng *rand.Rand, _ int) []byte {
		return binary.BigEndian.AppendUint64(nil, rng.Uint64())
	},
	"few ints": func(rng *rand.Rand, _ int) []byte {
		return binary.BigEndian.AppendUint32(nil, uint32(rng.IntN(9)))
	},
	"ascending int": func(_ *rand.Rand, i int) []byte {
		return binary.BigEndian.AppendUint64(nil, uint64(i))
	},
	"int and int": func(rng *rand.Rand, _ int) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(rng.IntN(60))), uint32(rng.IntN(8)))
	},
	"device and time": func(rng *rand.Rand, i int) []byte {
		skewed := rng.IntN(1 + rng.IntN(300))
		return binary.BigEndian.AppendUint64(fmt.Appendf(nil, "device-%05d\x00\x01", skewed), uint64(1_700_000_000_000+i/2*37))
	},
	"shared prefix of many bytes": func(rng *rand.Rand, _ int) []byte {
		return fmt.Appendf(nil, "https://example.org/a/long/path/%04d/%d\x00\x01", rng.IntN(40), rng.IntN(7))
	},
	"text with zeros": func(rng *rand.Rand, _ int) []byte {
		var k []byte
		for range rng.IntN(20) {
			k = append(k, []byte{0, 0xFF}...)
			if rng.IntN(4) == 0 {
				k = append(k, byte('a'+rng.IntN(3)))
			}
		}
		return append(k, 0, 1)
	},
	"one key begins with another": func(rng *rand.Rand, _ int) []byte {
		return make([]byte, rng.IntN(30))
	},
	"several columns": func(rng *rand.Rand, _ int) []byte {
		k := fmt.Appendf(nil, "%c\x00\x01", 'a'+rng.IntN(3))
		k = binary.BigEndian.AppendUint16(k, uint16(rng.IntN(3)))
		k = append(k, bytes.Repeat([]byte{byte(rng.IntN(2))}, 16)...)
		return append(k, byte(rng.IntN(256)))
	},
	"equal": func(*rand.Rand, int) []byte { return []byte("the same key everywhere\x00\x01") },
	"long": func(rng *rand.Rand, _ int) []byte {
		k := bytes.Repeat([]byte{7}, 1000)
		k[rng.IntN(len(k))] = byte(rng.IntN(20))
		return k
	},
}

// TestSorterSortsAsAStableSortDoes compares with one of the standard library.
func TestSorterSortsAsAStableSortDoes(t *testing.T) {
	for name, shape := range keyShapes {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(11, uint64(len(name))))
			var s sorter // one for all, as a stream has it
			for range 60 {
				var keys key.Keys
				var rows []uint32
				n := 1 + rng.IntN([]int{3, 40, 300, 2000}[rng.IntN(4)])
				for i := range 2 * n {
					keys.Append(shape(rng, i))
					if i%2 == 0 {
						rows = append(rows, uint32(i))
					}
				}
				want := slices.Clone(rows)
				slices.SortStableFunc(want, func(a, b uint32) int { return bytes.Compare(keys.At(int(a)), keys.At(int(b))) })
				var got []uint32
				for _, e := range s.sort(&keys, rows) {
					got = append(got, e.row)
				}
				require.Equal(t, want, got)
			}
		})
	}
}

func BenchmarkSort(b *testing.B) {
	for _, name := range []string{"random int", "int and int", "device and time", "shared prefix of many bytes"} {
		b.Run(name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(11, 1))
			const n = 24_000
			var keys key.Keys
			var rows []uint32
			for i := range n {
				keys.Append(keyShapes[name](rng, i))
				rows = append(rows, uint32(i))
			}
			var s sorter
			for b.Loop() {
				s.sort(&keys, rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
