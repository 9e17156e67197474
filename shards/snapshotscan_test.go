package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/run"
)

// TestPins: a pinned snapshot keeps its rows until it is released, expires or
// the table is dropped.
func TestPins(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}) })
	pin, err := table.Pin(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	b.put(table, values{"a", int64(2)})
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, p, err := b.s.Pinned(pin.ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := format(b.scan(s, all(s))); got != "a 1\n" || p.Commit != 1 || p.PinnedBytes == 0 {
			t.Fatalf("the pinned snapshot gives\n%s%+v", got, p)
		}
		s.Release()
	}
	if list := table.Pins(); len(list) != 1 || list[0].ID != pin.ID {
		t.Fatalf("pins: %v", list)
	}
	if _, err := b.s.Renew(pin.ID); err != nil {
		t.Fatal(err)
	}
	s, _, err := b.s.Pinned(pin.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.s.Unpin(pin.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.s.Pinned(pin.ID); !fault.Is(err, "SNAPSHOT_NOT_FOUND") {
		t.Fatalf("a released snapshot: %v", err)
	}
	if got := format(b.scan(s, all(s))); got != "a 1\n" { // whoever has it goes on
		t.Fatalf("got\n%s", got)
	}
	s.Release()
	if _, err := b.s.Renew("nonsense"); !fault.Is(err, "SNAPSHOT_NOT_FOUND") {
		t.Fatalf("an unknown snapshot: %v", err)
	}

	short, err := table.Pin(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(table.Pins()) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("a snapshot does not expire")
		}
		runtime.Gosched()
	}
	if err := b.s.Unpin(short.ID); !fault.Is(err, "SNAPSHOT_NOT_FOUND") {
		t.Fatalf("an expired snapshot: %v", err)
	}
	for range limits.OpenSnapshots {
		if _, err := table.Pin(0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.Pin(0); !fault.Is(err, "SNAPSHOTS_LIMIT") {
		t.Fatalf("one snapshot too many: %v", err)
	}
	if err := b.s.DropTable(context.Background(), table.Name()); err != nil {
		t.Fatal(err)
	}
	if len(table.Pins()) != 0 {
		t.Error("a dropped table has pins")
	}
}

// bigTable has many blocks in each of its slices, in one run each of even and
// odd rows, and a hot sharding key with half of all rows.
func bigTable(b *bed) *Table {
	table := b.create("t", "k:string s:int64 v:int64", "k", "s", 3)
	for part := range 2 {
		var rows []values
		for i := part; i < 60_000; i += 2 {
			k := fmt.Sprintf("k%d", i%7)
			if i >= 30_000 {
				k = "hot"
			}
			rows = append(rows, values{k, int64(i), int64(i * 3)})
		}
		b.put(table, rows...)
	}
	return table
}

// TestCuts: the pieces are disjoint, together complete, and of about equal size.
func TestCuts(t *testing.T) {
	b := newBed(t)
	table := bigTable(b)
	s := b.snapshot(table)
	defer s.Release()
	hot := []byte("hot\x00\x01")
	for _, ranges := range [][]run.Range{
		nil, {{Slice: -1}}, {{Slice: table.Schema().SliceOf(hot), Low: hot, High: []byte("hot\x00\x02")}}, {{Slice: 1}}, {},
	} {
		for _, n := range []int{1, 2, 5, 16} {
			cuts, err := s.Cuts(context.Background(), ranges, n)
			if err != nil {
				t.Fatal(err)
			}
			if len(cuts) < 1 || len(cuts) > n {
				t.Errorf("%d cuts were asked for, %d came", n, len(cuts))
			}
			r := all(s)
			r.Ranges = ranges
			want := b.scan(s, r)
			var got []values
			for _, cut := range cuts {
				r.Ranges = cut
				rows := b.scan(s, r)
				if len(cuts) == n && n > 1 && len(rows) > 3*len(want)/n+2*limits.BlockRows {
					t.Errorf("one of %d cuts has %d of %d rows", n, len(rows), len(want))
				}
				got = append(got, rows...)
			}
			if !slices.EqualFunc(got, want, func(a, b values) bool { return slices.Equal(a, b) }) {
				t.Errorf("%d cuts of %v give %d rows, want %d", n, ranges, len(got), len(want))
			}
			if rows, _, err := s.Estimate(context.Background(), ranges); err != nil || len(want) > 0 && (rows < uint64(len(want)) || rows > uint64(len(want)+8*limits.BlockRows)) {
				t.Errorf("%d rows are estimated for %d: %v", rows, len(want), err)
			}
		}
	}
}

func TestLargestKeys(t *testing.T) {
	b := newBed(t)
	table := bigTable(b)
	s := b.snapshot(table)
	defer s.Release()
	keys, err := s.LargestKeys(context.Background(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || !bytes.Equal(keys[0].Key, []byte("hot\x00\x01")) || keys[0].Rows < 24_000 || keys[0].Rows > 36_000 {
		t.Fatalf("the largest keys are %+v", keys)
	}
}

// TestScanStopsAtOnce: a closed or cancelled scan leaves no goroutine behind.
func TestScanStopsAtOnce(t *testing.T) {
	b := newBed(t)
	table := bigTable(b)
	s := b.snapshot(table)
	defer s.Release()
	before := runtime.NumGoroutine()
	for _, order := range []Order{Any, Asc, Desc} {
		for read := range 3 {
			ctx, cancel := context.WithCancel(context.Background())
			r := all(s)
			r.Order, r.Parallel, r.TargetBytes = order, 4, 1000
			scan, err := s.Scan(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			for range read {
				batch, err := scan.Next()
				if err != nil {
					t.Fatal(err)
				}
				batch.Release()
			}
			if read == 1 {
				cancel()
				for {
					batch, err := scan.Next()
					if err == nil {
						batch.Release()
						continue
					}
					if !errors.Is(err, context.Canceled) {
						t.Errorf("a cancelled scan ends with %v", err)
					}
					break
				}
			}
			scan.Close()
			scan.Close()
			if _, err := scan.Next(); err == nil || err == io.EOF {
				t.Errorf("a closed scan gives %v", err)
			}
			cancel()
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// TestParallelScansKeepOrder: pieces of one slice that several goroutines scan
// come out in key order, also when no order is asked for.
func TestParallelScansKeepOrder(t *testing.T) {
	b := newBed(t)
	table := bigTable(b)
	s := b.snapshot(table)
	defer s.Release()
	r := all(s)
	r.Parallel, r.TargetBytes = 4, 4000
	last := map[any]int64{}
	for _, row := range b.scan(s, r) {
		if at, ok := last[row[0]]; ok && row[1].(int64) <= at {
			t.Fatalf("sharding key %v: %v comes behind %d", row[0], row[1], at)
		}
		last[row[0]] = row[1].(int64)
	}
	if len(last) != 8 {
		t.Fatalf("%d sharding keys", len(last))
	}
	c, err := s.Scan(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		batch, err := c.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		batch.Release()
	}
	if n := c.Counters(); n.RowsScanned != 60_000 || n.RowsReturned != 60_000 || n.BlocksRead < 30 || n.BytesRead == 0 {
		t.Errorf("counted %+v", n)
	}
}
