package ingest

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards"
)

// BenchmarkLook writes batches of 10,000 keys to a table of a million rows in
// modes that look first; every second key exists. The keys are spread over the
// table, or lie side by side.
func BenchmarkLook(b *testing.B) {
	schema := schemaOf("k:int64 v:int64 w:string", "sheaf.sharding_key", "k")
	batch := func(first, step, rows int) arrow.RecordBatch {
		builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer builder.Release()
		for i := range rows {
			builder.Field(0).(*array.Int64Builder).Append(int64(first + i*step))
			builder.Field(1).(*array.Int64Builder).Append(int64(i))
			builder.Field(2).(*array.StringBuilder).Append("some text")
		}
		return builder.NewRecordBatch()
	}
	for _, mode := range []Mode{ModeInsertIgnore, ModeMerge} {
		for _, step := range []int{77, 1} {
			b.Run(fmt.Sprintf("%s step=%d", mode, step), func(b *testing.B) {
				ctx := context.Background()
				store, err := shards.Open(ctx, "/store", shards.Options{FS: vfs.NewMem(), FoldConcurrency: -1})
				if err != nil {
					b.Fatal(err)
				}
				defer store.Close()
				name, _ := shards.ParseName("t")
				write := func(mode Mode, schema *arrow.Schema, batch arrow.RecordBatch) {
					w, err := Open(ctx, store, Target{Name: name}, schema, Options{Mode: mode})
					if err != nil {
						b.Fatal(err)
					}
					if err := w.Write(ctx, []arrow.RecordBatch{batch}); err != nil {
						b.Fatal(err)
					}
					if err := w.Finish(ctx); err != nil {
						b.Fatal(err)
					}
				}
				write(ModeUpsert, schema, batch(0, 2, 1_000_000))
				const keys = 10_000
				part := batch(1000, step, keys)
				if mode == ModeMerge {
					fields := schema.Fields()[:2]
					part = array.NewRecordBatch(arrow.NewSchema(fields, nil), part.Columns()[:2], keys)
				}
				for b.Loop() {
					write(mode, part.Schema(), part)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
			})
		}
	}
}
