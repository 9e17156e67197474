package shards

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

const (
	benchBatch = 200_000
	benchRows  = 10 * benchBatch
	benchLines = 4 // rows of one sharding key
)

// benchStore is a store on disk with a table of orders: 2M rows of 7 columns, 4
// of one sharding key, in 10 runs.
func benchStore(b *testing.B) (*Store, *Table) {
	b.Helper()
	s, err := Open(context.Background(), b.TempDir(), Options{FS: vfs.Default, FoldConcurrency: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	schema, err := parseFields("k:int64 s:int32 a:int64 b:int64 price:float64 flag:string text:string")
	if err != nil {
		b.Fatal(err)
	}
	name, _ := ParseName("orders")
	t, err := s.CreateTable(context.Background(), name, Spec{Schema: schema, Sharding: []string{"k"}, Sorting: []string{"s"}})
	if err != nil {
		b.Fatal(err)
	}
	return s, t
}

// benchCommit is a batch of rows first, first+1, … split by slice; its keys
// ascend already.
func benchCommit(b *testing.B, t *Table, first, rows int) (Commit, func()) {
	b.Helper()
	mem := memory.DefaultAllocator
	schema := t.Schema()
	rng := rand.New(rand.NewPCG(uint64(first), 1))
	record := array.NewRecordBuilder(mem, schema.Arrow())
	defer record.Release()
	for i := range rows {
		n := first + i
		record.Field(0).(*array.Int64Builder).Append(int64(n / benchLines))
		record.Field(1).(*array.Int32Builder).Append(int32(n % benchLines))
		record.Field(2).(*array.Int64Builder).Append(rng.Int64N(200_000))
		record.Field(3).(*array.Int64Builder).Append(rng.Int64N(10_000))
		record.Field(4).(*array.Float64Builder).Append(float64(rng.IntN(10_000_000)) / 100)
		record.Field(5).(*array.StringBuilder).Append([]string{"A", "N", "R"}[rng.IntN(3)])
		record.Field(6).(*array.StringBuilder).Append(fmt.Sprintf("packages sleep furiously %d", rng.IntN(1_000_000)))
	}
	batch := record.NewRecordBatch()
	var all key.Keys
	if err := key.Encode(&all, []arrow.Array{batch.Column(0), batch.Column(1)}); err != nil {
		b.Fatal(err)
	}
	bySlice := make([]Rows, schema.Slices)
	for i := range rows {
		slice := schema.SliceOf(all.At(i)[:8])
		r := &bySlice[slice]
		if r.Keys == nil {
			r.Slice, r.Keys = slice, &key.Keys{}
		}
		r.Keys.Append(all.At(i))
		r.Refs = append(r.Refs, block.Ref{Row: uint32(i)})
	}
	c := Commit{Schema: schema, Batches: [][]arrow.Array{batch.Columns()}}
	for _, r := range bySlice {
		if r.Keys != nil {
			c.Slices = append(c.Slices, r)
		}
	}
	return c, batch.Release
}

func benchLoad(b *testing.B, t *Table) {
	b.Helper()
	for first := 0; first < benchRows; first += benchBatch {
		c, release := benchCommit(b, t, first, benchBatch)
		benchPublish(b, t, c)
		release()
	}
}

func benchPublish(b *testing.B, t *Table, c Commit) {
	b.Helper()
	p, err := t.Prepare(context.Background(), c)
	if err == nil {
		_, err = t.Publish(context.Background(), []*Prepared{p}, PublishOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLargeCommit: rows/s from split batches to durable runs.
func BenchmarkLargeCommit(b *testing.B) {
	_, t := benchStore(b)
	c, release := benchCommit(b, t, 0, benchBatch)
	defer release()
	for b.Loop() {
		benchPublish(b, t, c)
	}
	b.ReportMetric(float64(benchBatch)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkSmallCommit: commits of 10 rows, from one client and from many.
func BenchmarkSmallCommit(b *testing.B) {
	for _, clients := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			_, t := benchStore(b)
			c, release := benchCommit(b, t, 0, 10)
			defer release()
			b.SetParallelism(clients)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					benchPublish(b, t, Commit{Schema: c.Schema, Batches: c.Batches, Slices: append([]Rows(nil), c.Slices...)})
				}
			})
		})
	}
}

// BenchmarkScan: full scans and three columns, in any order and by key.
func BenchmarkScan(b *testing.B) {
	_, t := benchStore(b)
	benchLoad(b, t)
	s, err := t.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Release()
	ids := s.Schema().IDs()
	for _, bench := range []struct {
		name    string
		columns []uint32
		order   Order
	}{{"all", ids, Any}, {"three", ids[2:5], Any}, {"count", nil, Any}, {"ordered", ids, Asc}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if n := benchScan(b, s, ScanRequest{Columns: bench.columns, Order: bench.order, Limit: -1}); n != benchRows {
					b.Fatalf("%d rows", n)
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func benchScan(b *testing.B, s *Snapshot, r ScanRequest) int {
	scan, err := s.Scan(context.Background(), r)
	if err != nil {
		b.Fatal(err)
	}
	defer scan.Close()
	n := 0
	for {
		batch, err := scan.Next()
		if err == io.EOF {
			return n
		}
		if err != nil {
			b.Fatal(err)
		}
		n += batch.Rows
		batch.Release()
	}
}

// BenchmarkLookup: all rows of one sharding key.
func BenchmarkLookup(b *testing.B) {
	_, t := benchStore(b)
	benchLoad(b, t)
	rng := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		s, err := t.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		n := rng.Int64N(benchRows / benchLines)
		low := []byte{byte(n>>56) ^ 0x80, byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		r := ScanRequest{Columns: s.Schema().IDs(), Limit: -1}
		r.Ranges = []run.Range{{Slice: s.Schema().SliceOf(low), Low: low, High: key.Next(low)}}
		if n := benchScan(b, s, r); n != benchLines {
			b.Fatalf("%d rows", n)
		}
		s.Release()
	}
}

// BenchmarkScanOfTinyCommits: what 20,000 commits of one row cost a full scan
// before they are folded.
func BenchmarkScanOfTinyCommits(b *testing.B) {
	_, t := benchStore(b)
	all, release := benchCommit(b, t, 0, 20_000)
	defer release()
	const commits = 20_000
	var prepared []*Prepared
	for _, rows := range all.Slices {
		for i := range rows.Keys.Len() {
			one := Rows{Slice: rows.Slice, Keys: &key.Keys{}, Refs: rows.Refs[i : i+1]}
			one.Keys.Append(rows.Keys.At(i))
			p, err := t.Prepare(context.Background(), Commit{Schema: all.Schema, Slices: []Rows{one},
				Batches: [][]arrow.Array{all.Batches[0]}})
			if err != nil {
				b.Fatal(err)
			}
			prepared = append(prepared, p)
		}
	}
	if _, err := t.Publish(context.Background(), prepared, PublishOptions{}); err != nil {
		b.Fatal(err)
	}
	s, err := t.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Release()
	for b.Loop() {
		if n := benchScan(b, s, ScanRequest{Columns: s.Schema().IDs(), Limit: -1}); n != commits {
			b.Fatalf("%d rows", n)
		}
	}
}
