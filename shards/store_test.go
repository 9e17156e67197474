package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/layout"
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
