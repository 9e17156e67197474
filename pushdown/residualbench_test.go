package pushdown_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

const residualRows = 500_000

// residualTable has columns of several types, none in the order of the key.
func residualTable(b *testing.B) *shards.Table {
	b.Helper()
	store, err := shards.Open(context.Background(), b.TempDir(), shards.Options{FS: vfs.Default, FoldConcurrency: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	field := func(name string, dt arrow.DataType, null bool) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: null}
	}
	name, err := shards.ParseName("residual")
	if err != nil {
		b.Fatal(err)
	}
	table, err := store.CreateTable(context.Background(), name, shards.Spec{Sharding: []string{"k"}, Schema: arrow.NewSchema([]arrow.Field{
		field("k", arrow.PrimitiveTypes.Int64, false),
		field("int", arrow.PrimitiveTypes.Int64, false),
		field("day", arrow.FixedWidthTypes.Date32, false),
		field("float", arrow.PrimitiveTypes.Float64, false),
		field("price", &arrow.Decimal128Type{Precision: 15, Scale: 2}, false),
		field("mode", arrow.BinaryTypes.String, false),
		field("text", arrow.BinaryTypes.String, true),
	}, nil)})
	if err != nil {
		b.Fatal(err)
	}
	schema := table.Schema()
	rng := rand.New(rand.NewPCG(1, 1))
	record := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow())
	defer record.Release()
	for i := range residualRows {
		record.Field(0).(*array.Int64Builder).Append(int64(i))
		record.Field(1).(*array.Int64Builder).Append(rng.Int64N(1000))
		record.Field(2).(*array.Date32Builder).Append(arrow.Date32(rng.IntN(1000)))
		record.Field(3).(*array.Float64Builder).Append(rng.Float64())
		record.Field(4).(*array.Decimal128Builder).Append(decimal128.FromI64(rng.Int64N(10_000_000)))
		record.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("mode %02d", rng.IntN(100)))
		if rng.IntN(100) == 0 {
			record.Field(6).AppendNull()
		} else {
			record.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("%02d packages sleep furiously %d", rng.IntN(100), rng.IntN(1_000_000)))
		}
	}
	batch := record.NewRecordBatch()
	defer batch.Release()
	var keys key.Keys
	if err := key.Encode(&keys, []arrow.Array{batch.Column(0)}); err != nil {
		b.Fatal(err)
	}
	bySlice := make([]shards.Rows, schema.Slices)
	for i := range residualRows {
		r := &bySlice[schema.SliceOf(keys.At(i))]
		if r.Keys == nil {
			r.Slice, r.Keys = schema.SliceOf(keys.At(i)), &key.Keys{}
		}
		r.Keys.Append(keys.At(i))
		r.Refs = append(r.Refs, block.Ref{Row: uint32(i)})
	}
	prepared, err := table.Prepare(context.Background(), shards.Commit{Schema: schema, Slices: bySlice, Batches: [][]arrow.Array{batch.Columns()}})
	if err == nil {
		_, err = table.Publish(context.Background(), []*shards.Prepared{prepared}, shards.PublishOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	return table
}

// BenchmarkResidual: scans with filters that no key answers, each of which keeps
// about a row in a hundred, in rows looked at per second.
func BenchmarkResidual(b *testing.B) {
	table := residualTable(b)
	s, err := table.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Release()
	for _, bench := range []struct{ name, where string }{
		{"none", `[]`},
		{"int/equal", `[["int","in",[1,2,3,4,5,6,7,8,9,10]]]`},
		{"int/less", `[["int","<",10]]`},
		{"int/in 100", `[["int","in",[` + list(100) + `]],["mode","<","mode 10"]]`},
		{"day/between", `[["day","between",["1970-02-01","1970-02-10"]]]`},
		{"float/greater", `[["float",">",0.99]]`},
		{"decimal/less", `[["price","<",1000]]`},
		{"codes/equal", `[["mode","=","mode 42"]]`},
		{"codes/not in", `[["mode","not in",["mode 01","mode 02"]],["int","<",10]]`},
		{"text/starts_with", `[["text","starts_with","42"]]`},
		{"text/is null", `[["text","is null"]]`},
		{"three columns", `[["mode","<","mode 20"],["int","<",200],["float",">",0.75]]`},
		{"any of two", `[[["mode","=","mode 42"]],[["int","<",2]]]`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e, err := pushdown.ParseWhere([]byte(bench.where), s.Schema())
			if err != nil {
				b.Fatal(err)
			}
			plan, err := pushdown.Build(s.Schema(), e)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				scan, err := s.Scan(context.Background(), shards.ScanRequest{
					Columns: s.Schema().IDs(), Ranges: plan.Ranges, Filter: plan.Filter(), Limit: -1})
				if err != nil {
					b.Fatal(err)
				}
				kept := 0
				for {
					batch, err := scan.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					kept += batch.Rows
					batch.Release()
				}
				scan.Close()
				if bench.where != "[]" && (kept < residualRows/200 || kept > residualRows/20) {
					b.Fatalf("%d rows kept", kept)
				}
			}
			b.ReportMetric(residualRows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func list(n int) string {
	text := "0"
	for i := 1; i < n; i++ {
		text += fmt.Sprint(",", i*7)
	}
	return text
}
