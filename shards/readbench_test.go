package shards

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// benchUpsert replaces rows of the loaded table, drawn at random, in commits of
// so many rows.
func benchUpsert(b *testing.B, t *Table, rows, commit int) {
	b.Helper()
	rng := rand.New(rand.NewPCG(5, 5))
	for first := 0; first < benchRows; first += benchBatch {
		all, release := benchCommit(b, t, first, benchBatch)
		// A share of each slice's rows, which are in key order.
		var picked []Rows
		n := 0
		publish := func() {
			if n > 0 {
				benchPublish(b, t, Commit{Schema: all.Schema, Batches: all.Batches, Slices: picked})
			}
			picked, n = nil, 0
		}
		for _, of := range all.Slices {
			var some Rows
			for i := range of.Keys.Len() {
				if rng.IntN(benchRows) >= rows {
					continue
				}
				if some.Keys == nil {
					some.Slice, some.Keys = of.Slice, &key.Keys{}
				}
				some.Keys.Append(of.Keys.At(i))
				some.Refs = append(some.Refs, of.Refs[i])
				if n++; n == commit {
					picked, some = append(picked, some), Rows{}
					publish()
				}
			}
			if some.Keys != nil {
				picked = append(picked, some)
			}
		}
		publish()
		release()
	}
}

// BenchmarkScanUpserted: full scans of a table of which a tenth was replaced at
// random and not folded, by commits of all sizes, and before that.
func BenchmarkScanUpserted(b *testing.B) {
	for _, bench := range []struct {
		name         string
		rows, commit int
	}{
		{"clean", 0, 0},
		{"tenth by runs", benchRows / 10, benchRows},
		{"tenth by commits of 1000", benchRows / 10, 1000},
		{"hundredth by commits of 100", benchRows / 100, 100},
	} {
		b.Run(bench.name, func(b *testing.B) {
			_, t := benchStore(b)
			benchLoad(b, t)
			if bench.rows > 0 {
				benchUpsert(b, t, bench.rows, bench.commit)
			}
			s, err := t.Snapshot()
			if err != nil {
				b.Fatal(err)
			}
			defer s.Release()
			for b.Loop() {
				if n := benchScan(b, s, ScanRequest{Columns: s.Schema().IDs(), Limit: -1}); n != benchRows {
					b.Fatalf("%d rows", n)
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkInList: all rows of so many sharding keys; to be compared with
// BenchmarkLookup.
func BenchmarkInList(b *testing.B) {
	_, t := benchStore(b)
	benchLoad(b, t)
	s, err := t.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Release()
	rng := rand.New(rand.NewPCG(1, 1))
	shards := rng.Perm(benchRows / benchLines)
	for _, keys := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			for at := 0; b.Loop(); at = (at + keys) % (len(shards) - keys) {
				r := ScanRequest{Columns: s.Schema().IDs(), Limit: -1}
				for _, n := range shards[at : at+keys] {
					low := binary.BigEndian.AppendUint64(nil, uint64(n)^1<<63)
					r.Ranges = append(r.Ranges, run.Range{Slice: s.Schema().SliceOf(low), Low: low, High: key.Next(low)})
				}
				slices.SortFunc(r.Ranges, func(a, b run.Range) int {
					return slices.Compare(a.Low, b.Low)
				})
				if n := benchScan(b, s, r); n != keys*benchLines {
					b.Fatalf("%d rows", n)
				}
			}
			b.ReportMetric(float64(keys)*float64(b.N)/b.Elapsed().Seconds(), "keys/s")
		})
	}
}
