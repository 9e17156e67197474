package shards

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// manyShards is a table of 4,000 sharding keys with 3 rows each in 16 slices, in
// runs whose keys do not meet, and the encoded sharding keys in order.
func manyShards(b *bed) (*Table, []run.Range) {
	table := b.create("t", "k:int64 s:int64 v:int64", "k", "s", 16)
	var ranges []run.Range
	for part := range 5 {
		var rows []values
		for i := part * 2400; i < (part+1)*2400; i++ {
			rows = append(rows, values{int64(i / 3), int64(i % 3), int64(i)})
		}
		b.asRun(func() { b.put(table, rows...) })
	}
	s := b.snapshot(table)
	defer s.Release()
	for k := range 4000 { // sign bit flipped, big-endian
		low := []byte{0x80, 0, 0, 0, 0, 0, byte(k >> 8), byte(k)}
		ranges = append(ranges, run.Range{Slice: s.Schema().SliceOf(low), Low: low, High: key.Next(low)})
	}
	return table, ranges
}

// TestListsOfKeysGiveOneBatch: what many pieces give a little of is joined, in
// the order of the pieces, up to the limit.
func TestListsOfKeysGiveOneBatch(t *testing.T) {
	b := newBed(t)
	table, shards := manyShards(b)
	s := b.snapshot(table)
	defer s.Release()
	rng := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{1, 2, 100, 700} {
		for _, parallel := range []int{1, 4} {
			r := all(s)
			r.Parallel, r.Keys = parallel, rng.IntN(2) == 0
			for _, k := range rng.Perm(len(shards))[:n] {
				r.Ranges = append(r.Ranges, shards[k])
			}
			slices.SortFunc(r.Ranges, func(a, b run.Range) int { return slices.Compare(a.Low, b.Low) })
			var want []values
			for slice := range 16 {
				for _, of := range r.Ranges {
					if of.Slice == slice {
						k := int64(of.Low[6])<<8 | int64(of.Low[7])
						for i := range int64(3) {
							want = append(want, values{k, i, 3*k + i})
						}
					}
				}
			}
			if n > 2 && rng.IntN(2) == 0 {
				r.Limit = int64(rng.IntN(len(want)))
				want = want[:r.Limit]
			}
			scan, err := s.Scan(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			var got []values
			batches := 0
			for {
				batch, err := scan.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, valuesOf(t, batch)...)
				if r.Keys {
					last := got[len(got)-1]
					if k := batch.LastKey; len(k) != 16 || int64(k[15]) != last[1].(int64) || int64(k[6])<<8|int64(k[7]) != last[0].(int64) {
						t.Errorf("last key %x of row %v", k, last)
					}
				}
				batch.Release()
				batches++
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%d keys, limit %d: %d rows instead of %d", n, r.Limit, len(got), len(want))
			}
			// Time may cut a batch, on a busy machine, but not into slices.
			if len(want) > 0 && batches > 8 {
				t.Errorf("%d rows of %d keys in %d batches", len(want), n, batches)
			}
			scan.Close()
		}
	}
}

// TestLookupsReadOneBlock: of runs that do not meet the key nothing is read, not
// even their index.
func TestLookupsReadOneBlock(t *testing.T) {
	b := newBed(t)
	table, shards := manyShards(b)
	s := b.snapshot(table)
	defer s.Release()
	for _, k := range []int{0, 1234, 3999} {
		r := all(s)
		r.Ranges = shards[k : k+1]
		scan, err := s.Scan(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		batch, err := scan.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := scan.Next(); err != io.EOF {
			t.Fatal(err)
		}
		if c := scan.Counters(); batch.Rows != 3 || c.BlocksRead != 1 || c.RowsScanned != 3 || c.RowsReturned != 3 {
			t.Errorf("%d rows, %+v", batch.Rows, c)
		}
		batch.Release()
		scan.Close()
		if n := len(s.sources(r.Ranges[0].Slice, r.Ranges, nil)); n != 1 {
			t.Errorf("%d sources may hold one key", n)
		}
	}
}

// TestJoinedScansStop: a scan of many little pieces that is closed or cancelled
// in the middle, whatever is joined just then, keeps no goroutine and no memory.
func TestJoinedScansStop(t *testing.T) {
	b := newBed(t)
	table, shards := manyShards(b)
	s := b.snapshot(table)
	defer s.Release()
	before := runtime.NumGoroutine()
	for i := range 40 {
		ctx, cancel := context.WithCancel(context.Background())
		r := all(s)
		r.Parallel = 1 + i%3
		r.Order = Order(i % 3)
		r.TargetBytes = []int{500, 5000, 0}[i/3%3]
		if i%2 == 0 {
			r.Ranges = shards[i*10 : i*90+20]
			r.Ranges = slices.Clone(r.Ranges)
			slices.SortStableFunc(r.Ranges, func(a, b run.Range) int { return a.Slice - b.Slice })
		} else {
			r.Filter = newAboveFilter(t, b.mem, s.Schema().Columns[2].ID, int64(11_000))
		}
		scan, err := s.Scan(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		for range i % 4 {
			if batch, err := scan.Next(); err == nil {
				batch.Release()
			}
		}
		if i%5 == 0 {
			cancel()
		}
		if i%5 == 1 {
			if batch, err := scan.Next(); err == nil {
				batch.Release()
			}
		}
		scan.Close()
		cancel()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// TestJoinedScansTellOfDamage: what goes wrong while a batch is waited for, to be
// joined to another, ends the scan: the rows behind are not left out in silence.
func TestJoinedScansTellOfDamage(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:int64 v:int64", "k", "", 4)
	var rows []values
	for i := range 40_000 {
		rows = append(rows, values{int64(i), int64(i * 7919 % 40_000)})
	}
	b.asRun(func() { b.put(table, rows...) })
	s := b.snapshot(table)
	damaged := s.version.runs.list[0].id
	s.Release()
	if err := b.s.db.Delete(layout.AppendRunIndex(nil, layout.RunPrefix(table.id, damaged), 3, 0), nil); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	s = b.snapshot(b.table("t"))
	defer s.Release()
	for _, parallel := range []int{1, 2, 3, 4} {
		for _, target := range []int{256, 1024, 4096, 16 << 10, 0} {
			r := all(s)
			r.Parallel, r.TargetBytes = parallel, target
			r.Filter = newAboveFilter(t, b.mem, s.Schema().Columns[1].ID, 39_900)
			if got, err := b.tryScan(s, r); !fault.Is(err, "CHECKSUM_FAILED") {
				t.Errorf("%d goroutines, batches of %d bytes: %d rows and error %v", parallel, target, len(got), err)
			}
		}
	}
}
