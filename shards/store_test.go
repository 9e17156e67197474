package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

func TestSecondOpenIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(context.Background(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, Options{}); !fault.Is(err, "STORE_LOCKED") {
		t.Fatalf("opening a store twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(context.Background(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	b := newBed(t)
	if err := b.s.db.Set(layout.FormatKey(), []byte{storeFormat + 1}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	b.close()
	_, err := Open(context.Background(), "/store", b.o)
	if !fault.Is(err, "FORMAT_TOO_NEW") || !strings.Contains(err.Error(), "format 2") {
		t.Fatalf("opening a newer store: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 2)
	b.put(table, values{"a", int64(1)})
	b.close()
	b.o.ReadOnly = true
	b.open()
	table = b.table("t")
	if got := format(b.rows(table)); got != "a 1\n" {
		t.Fatalf("got\n%s", got)
	}
	if _, err := table.Prepare(context.Background(), Commit{Schema: table.Schema()}); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("a commit: %v", err)
	}
	if err := table.Fold(context.Background()); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("a fold: %v", err)
	}
	if _, err := Open(context.Background(), "/elsewhere", Options{FS: vfs.NewMem(), ReadOnly: true}); !fault.Is(err, "STORE_NOT_FOUND") {
		t.Fatalf("reading a store that is not there: %v", err)
	}
}

// TestBulkLoadIntoManySlicesMakesRuns: what decides is the size of the commit,
// not of its slices.
func TestBulkLoadIntoManySlicesMakesRuns(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:int64 v:int64", "k", "", limits.MaxSlices)
	var rows []values
	for i := range 30_000 {
		rows = append(rows, values{int64(i), int64(i)})
	}
	b.put(table, rows...)
	s := b.snapshot(table)
	defer s.Release()
	var slicesWithRuns, delta uint64
	for _, stat := range s.SliceStats() {
		slicesWithRuns += uint64(stat.Runs)
		delta += stat.DeltaRows
	}
	if len(s.version.runs.list) != 1 || slicesWithRuns != limits.MaxSlices || delta != 0 {
		t.Fatalf("%d runs over %d slices, %d rows in the delta", len(s.version.runs.list), slicesWithRuns, delta)
	}
	if n, exact := s.Rows(); n != 30_000 || !exact {
		t.Fatalf("%d rows, exact %t", n, exact)
	}
	r := all(s)
	r.Order = Desc
	got := b.scan(s, r)
	for i, row := range got {
		if row[0] != int64(len(got)-1-i) {
			t.Fatalf("row %d of the descending scan is %v", i, row)
		}
	}
}

// TestRunsAreNeverRewritten: Pebble's flushes and compactions of meta and delta
// leave every run's sstable as it was ingested, at the bottom level.
func TestRunsAreNeverRewritten(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:int64 s:int64 v:string", "k", "s", 4)
	ingested := map[uint64]string{} // run to file
	text := strings.Repeat("x", 100)
	for i := range 40 {
		var rows []values
		for j := range 300 {
			rows = append(rows, values{int64(j), int64(i), text})
		}
		b.asRun(func() { b.put(table, rows...) })
		b.put(table, rows[:100]...)
		if i%5 == 4 {
			if err := b.s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if i%13 == 12 {
			s := b.snapshot(table)
			pick := foldPick{slice: i % 4, delta: true, runs: s.version.runs.of(i%4, 4)}
			s.Release()
			if err := table.foldSlice(context.Background(), pick); err != nil {
				t.Fatal(err)
			}
		}
		b.filesOfRuns(ingested)
	}
	if err := b.s.db.Compact(context.Background(), []byte{0}, []byte{0xFF}, false); err != nil {
		t.Fatal(err)
	}
	b.filesOfRuns(ingested)
	m := b.s.db.Metrics()
	if m.Compact.Count == 0 || m.Flush.Count == 0 {
		t.Fatal("nothing was flushed or compacted: the test shows nothing")
	}
	if m.Levels[6].TablesCompacted > 20 {
		t.Errorf("%d sstables were written to the last level by compactions", m.Levels[6].TablesCompacted)
	}
	if got := len(b.rows(table)); got != 40*300 {
		t.Errorf("%d rows", got)
	}
}

// filesOfRuns checks that each run is one sstable at the bottom, the same as
// ever.
func (b *bed) filesOfRuns(seen map[uint64]string) {
	b.t.Helper()
	levels, err := b.s.db.SSTables()
	if err != nil {
		b.t.Fatal(err)
	}
	for level, files := range levels {
		for _, f := range files {
			first, last := f.Smallest.UserKey, f.Largest.UserKey
			if first[0] != last[0] {
				b.t.Errorf("an sstable goes from region %x to %x", first[0], last[0])
			}
			if first[0] != layout.RegionRun {
				continue
			}
			_, id, err := layout.SplitRunRegion(first)
			if err != nil {
				b.t.Fatal(err)
			}
			_, end, err := layout.SplitRunRegion(last)
			if err != nil {
				b.t.Fatal(err)
			}
			file := f.FileNum.String()
			if level != 6 || id != end || seen[id] != "" && seen[id] != file {
				b.t.Errorf("run %d (to %d) is file %s at level %d, was %s", id, end, file, level, seen[id])
			}
			seen[id] = file
		}
	}
}

// TestOneBadByte: reads that meet it say DATA_LOSS, table and slice, everything
// else answers, a fold neither spreads nor hides it, doctor finds it.
func TestOneBadByte(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:int64 v:string", "k", "", 4)
	var rows []values
	for i := range 4000 {
		rows = append(rows, values{int64(i), fmt.Sprintf("value %d", i*i)})
	}
	b.asRun(func() { b.put(table, rows...) })
	b.put(table, rows[:50]...)
	b.close()
	damage(t, b.fs)
	b.open()
	table = b.table("t")
	bad := -1
	s := b.snapshot(table)
	defer s.Release()
	for slice := range 4 {
		r := all(s)
		r.Slices = []int{slice}
		_, err := b.tryScan(s, r)
		switch {
		case err == nil:
		case !fault.Is(err, "CHECKSUM_FAILED") || fault.Of(err).Kind != fault.DataLoss ||
			!strings.Contains(err.Error(), `"t"`) || !strings.Contains(err.Error(), fmt.Sprintf("slice %d", slice)):
			t.Fatalf("slice %d: %v", slice, err)
		case bad >= 0:
			t.Fatalf("slices %d and %d are damaged by one byte", bad, slice)
		default:
			bad = slice
		}
	}
	if bad < 0 {
		t.Fatal("the damage was not met")
	}
	if err := table.Fold(context.Background()); fault.Of(err) == nil || fault.Of(err).Kind != fault.DataLoss {
		t.Fatalf("folding over damage: %v", err)
	}
	r := all(s)
	r.Slices = []int{bad}
	if _, err := b.tryScan(s, r); !fault.Is(err, "CHECKSUM_FAILED") {
		t.Fatalf("after the fold: %v", err)
	}
	found := 0
	if err := b.s.Doctor(context.Background(), func(f Finding) {
		if f.Slice == bad {
			found++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("doctor finds nothing")
	}
	b.put(table, values{int64(9999), "goes on"})
}

// damage flips a byte in the middle of the largest sstable.
func damage(t *testing.T, fs vfs.FS) {
	dir := fs.PathJoin("/store", dbName)
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var largest string
	var size int64
	for _, name := range names {
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".sst") && info.Size() > size {
			largest, size = fs.PathJoin(dir, name), info.Size()
		}
	}
	f, err := fs.OpenReadWrite(largest, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 1)
	if _, err := f.ReadAt(one, size/3); err != nil {
		t.Fatal(err)
	}
	one[0] ^= 0x10
	if _, err := f.WriteAt(one, size/3); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

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
