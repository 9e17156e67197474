package key_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/key"
)

const benchRows = 8192

// benchTables: lineitem's key, and the flights' two kinds of key.
func benchTables() map[string][]arrow.Array {
	longs := array.NewInt64Builder(memory.DefaultAllocator)
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	tails := array.NewStringBuilder(memory.DefaultAllocator)
	carriers := array.NewStringBuilder(memory.DefaultAllocator)
	zeros := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	for i := range benchRows {
		longs.Append(int64(i))
		ints.Append(int32(i % 7))
		tails.Append(fmt.Sprintf("N%05d", i*7919%99999))
		carriers.Append([]string{"UA", "DL", "9E"}[i%3])
		zeros.Append([]byte{1, 0, byte(i), 0, 2, 3, 4, 5})
	}
	long, tail := longs.NewArray(), tails.NewArray()
	return map[string][]arrow.Array{
		"int64,int32":         {long, ints.NewArray()},
		"string,int64":        {tail, long},
		"string,string,int64": {tail, carriers.NewArray(), long},
		"binary-with-zeros":   {zeros.NewArray()},
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, columns := range benchTables() {
		b.Run(name, func(b *testing.B) {
			keys := &key.Keys{}
			b.ReportAllocs()
			for b.Loop() {
				keys.Reset()
				if err := key.Encode(keys, columns); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}

func BenchmarkSlices(b *testing.B) {
	for name, columns := range benchTables() {
		b.Run(name, func(b *testing.B) {
			var types []arrow.DataType
			for _, column := range columns {
				types = append(types, column.DataType())
			}
			keys := &key.Keys{}
			if err := key.Encode(keys, columns); err != nil {
				b.Fatal(err)
			}
			var slices []uint16
			var err error
			for b.Loop() {
				if slices, err = key.Slices(slices[:0], keys, types, 1, 16); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, columns := range benchTables() {
		b.Run(name, func(b *testing.B) {
			var types []arrow.DataType
			for _, column := range columns {
				types = append(types, column.DataType())
			}
			keys := &key.Keys{}
			if err := key.Encode(keys, columns); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				decoded, err := key.Decode(memory.DefaultAllocator, types, keys)
				if err != nil {
					b.Fatal(err)
				}
				release(decoded)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}
