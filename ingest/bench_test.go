package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards"
)

// BenchmarkWrite writes streams of four batches of 64K rows with eight columns, sorted by key as
// bulk loads are, or not, to a store in memory.
func BenchmarkWrite(b *testing.B) {
	for _, ordered := range []bool{true, false} {
		b.Run(fmt.Sprintf("ordered=%v", ordered), func(b *testing.B) {
			store, err := shards.Open(context.Background(), "/store", shards.Options{FS: vfs.NewMem(), FoldConcurrency: -1})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			schema := schemaOf("k:int64 s:int32 a:int64 b:float64 c:int32 d:string e:string f:bool", "sheaf.sharding_key", "k", "sheaf.sorting_key", "s")
			const rows = 1 << 16
			var batches []arrow.RecordBatch
			for n := range 4 {
				batches = append(batches, benchBatch(schema, n*rows, rows, ordered))
			}
			bytes := bytesOf(batches[0].Columns())
			name, _ := shards.ParseName("t")
			ctx := context.Background()
			b.SetBytes(bytes * int64(len(batches)))
			for b.Loop() { // a whole stream: Write returns before what it took is stored
				w, err := Open(ctx, store, Target{Name: name}, schema, Options{Mode: ModeReplaceTable})
				if err != nil {
					b.Fatal(err)
				}
				for n := range batches {
					if err := w.Write(ctx, batches[n:n+1]); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Finish(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(rows*float64(len(batches)*b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func benchBatch(schema *arrow.Schema, first, rows int, ordered bool) arrow.RecordBatch {
	rng := rand.New(rand.NewPCG(3, uint64(first)))
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := first; i < first+rows; i++ {
		k := int64(i / 4)
		if !ordered {
			k = rng.Int64()
		}
		builder.Field(0).(*array.Int64Builder).Append(k)
		builder.Field(1).(*array.Int32Builder).Append(int32(i % 4))
		builder.Field(2).(*array.Int64Builder).Append(rng.Int64N(200_000))
		builder.Field(3).(*array.Float64Builder).Append(float64(rng.Int64N(10_000_000)) / 100)
		builder.Field(4).(*array.Int32Builder).Append(int32(rng.IntN(2500)))
		builder.Field(5).(*array.StringBuilder).Append([]string{"AIR", "RAIL", "SHIP", "TRUCK"}[rng.IntN(4)])
		builder.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("comment %d about %d", rng.IntN(1000), i))
		builder.Field(7).(*array.BooleanBuilder).Append(i%3 == 0)
	}
	return builder.NewRecordBatch()
}
