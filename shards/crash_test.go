package shards

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// history is what a workload did: the content after each commit, and how many
// commits are acknowledged.
type history struct {
	mu    sync.Mutex
	after []string // content after commit i; 0: empty table
	acked int
	tried int // the commit being tried, acknowledged or not
	made  bool
}

func (h *history) moment() (acked, tried int, made bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked, h.tried, h.made
}

// runWorkload writes to a new table in every way there is until a write fails.
// Writes that fail with a latched store end it; what it did is in h.
func runWorkload(t *testing.T, s *Store, mem memory.Allocator, h *history, seed uint64) error {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 1))
	name, _ := ParseName("t")
	schema, err := parseFields("k:string v:int64")
	if err != nil {
		t.Fatal(err)
	}
	table, err := s.CreateTable(ctx, name, Spec{Schema: schema, Sharding: []string{"k"}, Slices: 3})
	if err != nil {
		return err
	}
	if seed%2 == 0 { // folds go up the keys in the smallest steps
		s.policy = defaultPolicy()
		s.policy.stepBytes, s.policy.runBytes = 1, 1
	}
	h.mu.Lock()
	h.made, h.after = true, []string{""}
	h.mu.Unlock()
	content := map[string]int64{}
	for i := 1; i <= 40; i++ {
		var rows []values
		next := maps.Clone(content)
		deletes, replace := rng.IntN(5) == 0, i%17 == 0
		if replace {
			next, deletes = map[string]int64{}, false
		}
		for range 1 + rng.IntN(20) {
			k := fmt.Sprintf("k%02d", rng.IntN(40))
			rows = append(rows, values{k, int64(i)})
			if deletes {
				delete(next, k)
			} else {
				next[k] = int64(i)
			}
		}
		s.deltaCommitBytes = int64(rng.IntN(2)) << 20
		c, release := commitOf(t, mem, table.Schema(), rows, deletes)
		h.mu.Lock()
		h.after, h.tried = append(h.after, contentText(next)), i
		h.mu.Unlock()
		p, err := table.Prepare(ctx, c)
		release()
		if err == nil {
			_, err = table.Publish(ctx, []*Prepared{p}, PublishOptions{
				Replace: replace, Positions: []Position{{"stream", Progress{Batches: uint64(i)}}},
			})
		}
		if err != nil {
			return err
		}
		h.mu.Lock()
		h.acked, content = i, next
		h.mu.Unlock()
		switch {
		case i%6 == 0:
			err = table.Fold(ctx)
		case i%11 == 0:
			err = s.guard("flushing", func() error {
				_, err := s.db.AsyncFlush() // a disk that fails would be tried for ever
				return err
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func contentText(content map[string]int64) string {
	var rows []values
	for _, k := range slices.Sorted(maps.Keys(content)) {
		rows = append(rows, values{k, content[k]})
	}
	return format(rows)
}

// checkAfterCrash opens what a crash left and compares it with the history: every
// acknowledged commit is there, the one being tried is there whole or not at all.
func checkAfterCrash(t *testing.T, fs vfs.FS, h *history, acked, tried int, made bool) {
	t.Helper()
	b := &bed{t: t, fs: fs, mem: memory.NewCheckedAllocator(memory.DefaultAllocator), o: Options{FoldConcurrency: -1}}
	b.open()
	defer b.mem.AssertSize(t, 0)
	defer b.close()
	name, _ := ParseName("t")
	table, err := b.s.Table(name)
	if err != nil {
		if made {
			t.Fatalf("the table is gone: %v", err)
		}
		return
	}
	got := format(b.rows(table))
	position, commit, err := table.ResumePosition("stream")
	if err != nil {
		t.Fatal(err)
	}
	at := int(position.Batches)
	if at < acked || at > tried {
		t.Fatalf("the stream is at %d; %d commits were acknowledged, %d tried", at, acked, tried)
	}
	if at > 0 && int(commit) != at {
		t.Fatalf("batch %d came with commit %d", at, commit)
	}
	if got != h.after[at] {
		t.Fatalf("after commit %d:\n%s\nwant\n%s", at, got, h.after[at])
	}
	if err := b.s.Doctor(context.Background(), func(f Finding) { t.Errorf("doctor: %+v", f) }); err != nil {
		t.Fatal(err)
	}
	// The store works: nothing of the crash is in the way of what was begun, nor of
	// the next commit.
	b.foldAll(table)
	checkSequences(t, table)
	if again := format(b.rows(table)); again != got {
		t.Fatalf("after the folds:\n%s\nbefore\n%s", again, got)
	}
	b.put(table, values{"new", int64(1)})
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	b.s.janitor.wait()
	checkNoGarbage(t, b.s, table)
}

// checkNoGarbage compares what Pebble holds with what is listed.
func checkNoGarbage(t *testing.T, s *Store, table *Table) {
	t.Helper()
	err := s.hop([]byte{layout.RegionRun}, []byte{layout.RegionEnd}, func(k []byte) ([]byte, error) {
		id, number, err := layout.SplitRunRegion(k)
		if err != nil {
			return nil, err
		}
		if id != table.id || table.head.runs.find(number) == nil {
			t.Errorf("run %d of table %d is on disk and not listed", number, id)
		}
		_, high := layout.RunSpan(id, number)
		return high, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.hop([]byte{layout.RegionDelta}, []byte{layout.RegionRun}, func(k []byte) ([]byte, error) {
		id, slice, number, err := layout.SplitDeltaRegion(k)
		if err != nil {
			return nil, err
		}
		if id != table.id || !table.listsGeneration(slice, number) {
			t.Errorf("generation %d of slice %d is on disk and not listed", number, slice)
		}
		_, high := layout.GenerationSpan(id, slice, number)
		return high, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// crashDisk is a disk in memory that is cloned at any moment. Pebble's own locks
// itself out where a clone comes in the middle of a link.
type crashDisk struct {
	*vfs.MemFS
	linking sync.RWMutex
}

func newCrashDisk() *crashDisk { return &crashDisk{MemFS: vfs.NewCrashableMem()} }

func (d *crashDisk) Link(from, to string) error {
	d.linking.RLock()
	defer d.linking.RUnlock()
	return d.MemFS.Link(from, to)
}

func (d *crashDisk) crash(c vfs.CrashCloneCfg) *vfs.MemFS {
	d.linking.Lock()
	defer d.linking.Unlock()
	return d.CrashClone(c)
}

// TestCrashAnywhere takes the state that a crash leaves at many moments of a
// workload, with none, some or all of what was not synced, and opens it.
func TestCrashAnywhere(t *testing.T) {
	for i, unsynced := range []int{0, 0, 50, 50, 100, 100} {
		t.Run(fmt.Sprintf("%d%% of unsynced data, in steps %t", unsynced, i%2 == 0), func(t *testing.T) {
			type crash struct {
				fs           *vfs.MemFS
				acked, tried int
				made         bool
			}
			var crashes []crash
			var mu sync.Mutex
			disk := newCrashDisk()
			h := &history{}
			operations := 0
			rng := rand.New(rand.NewPCG(uint64(unsynced), 2))
			fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				operations++
				if operations%9 != 0 {
					return nil
				}
				acked, _, made := h.moment() // acknowledged before the clone: must be in it
				clone := disk.crash(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rng})
				_, tried, _ := h.moment()
				crashes = append(crashes, crash{clone, acked, tried, made})
				return nil
			}))
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			s, err := Open(context.Background(), "/store", Options{FS: fs, FoldConcurrency: -1, Allocator: mem})
			if err != nil {
				t.Fatal(err)
			}
			if err := runWorkload(t, s, mem, h, uint64(i)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if steps := s.byID[1].work.steps.Load(); i%2 == 0 && steps < 40 {
				t.Errorf("the folds took %d steps", steps)
			}
			if len(crashes) < 50 {
				t.Fatalf("only %d crashes: the workload is too small", len(crashes))
			}
			for i, c := range crashes {
				checkAfterCrash(t, c.fs, h, c.acked, c.tried, c.made)
				if t.Failed() {
					t.Fatalf("crash %d of %d", i, len(crashes))
				}
			}
		})
	}
}

// TestFailingDisk lets the disk fail from some operation on: writes are refused
// from then on and never acknowledged, reads go on, and after a restart on a
// working disk everything acknowledged is there.
func TestFailingDisk(t *testing.T) {
	failures := map[string]error{"broken": errorfs.ErrInjected, "full": syscall.ENOSPC}
	for kind, cause := range failures {
		for _, once := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, once %t", kind, once), func(t *testing.T) {
				step := 23
				if testing.Short() {
					step = 97
				}
				for at := 40; at < 1500; at += step {
					if !failDisk(t, at, once, cause) {
						break
					}
				}
			})
		}
	}
}

// failDisk reports whether the failure came before the workload's end.
func failDisk(t *testing.T, at int, once bool, cause error) bool {
	disk := newCrashDisk()
	h := &history{}
	var mu sync.Mutex
	operations := 0
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite || op.Kind == errorfs.OpFileClose || op.Kind == errorfs.OpLock {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		operations++
		if operations == at || operations > at && !once {
			return cause
		}
		return nil
	}))
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	s, err := Open(context.Background(), "/store", Options{FS: fs, FoldConcurrency: -1, Allocator: mem})
	if err != nil {
		return true // the failure came while the store was made
	}
	failed := runWorkload(t, s, mem, h, 2)
	if failed != nil {
		checkReadsGoOn(t, s, mem, h)
	}
	acked, tried, made := h.moment()
	clone := disk.crash(vfs.CrashCloneCfg{})
	_ = s.Close()
	checkAfterCrash(t, clone, h, acked, tried, made)
	if t.Failed() {
		t.Fatalf("failure at operation %d: %v", at, failed)
	}
	mu.Lock()
	defer mu.Unlock()
	return operations >= at
}

// checkReadsGoOn reads all that is visible, and sees what a latched store says
// to writes.
func checkReadsGoOn(t *testing.T, s *Store, mem *memory.CheckedAllocator, h *history) {
	t.Helper()
	acked, tried, made := h.moment()
	name, _ := ParseName("t")
	table, err := s.Table(name)
	if err != nil {
		if made {
			t.Fatal(err)
		}
		return
	}
	b := &bed{t: t, s: s, mem: mem}
	if got := format(b.rows(table)); got != h.after[acked] && got != h.after[tried] {
		t.Fatalf("after a failure:\n%s\nwant\n%s", got, h.after[acked])
	}
	if err := s.Err(); err == nil {
		return // a failure that the store could live with
	}
	c, release := commitOf(t, mem, table.Schema(), []values{{"x", int64(1)}}, false)
	defer release()
	if _, err := table.Prepare(context.Background(), c); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("a commit on a failed store: %v", err)
	}
	if _, err := table.Publish(context.Background(), nil, PublishOptions{Replace: true}); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("a replace on a failed store: %v", err)
	}
}

// TestFailedSync pins the one promise: a commit whose sync failed is not
// acknowledged, not visible, and latches the store.
func TestFailedSync(t *testing.T) {
	disk := vfs.NewCrashableMem()
	toggle := &errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.And(
		errorfs.PathMatch("/store/db/*.log"), isSync{}))}
	b := newBedOn(t, errorfs.Wrap(disk, toggle))
	table := b.create("t", "k:string v:int64", "k", "", 2)
	b.put(table, values{"a", int64(1)})
	toggle.On()
	p := b.prepare(table, []values{{"b", int64(2)}}, false)
	_, err := table.Publish(context.Background(), []*Prepared{p}, PublishOptions{})
	if found := fault.Of(err); found == nil || found.Reason != "STORE_READ_ONLY" || found.Kind != fault.Unavailable {
		t.Fatalf("a failed sync gave %v", err)
	}
	toggle.Off()
	if got := format(b.rows(table)); got != "a 1\n" {
		t.Fatalf("the failed commit is visible:\n%s", got)
	}
	if _, err := table.Prepare(context.Background(), Commit{Schema: table.Schema()}); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("the next commit: %v", err)
	}
	if _, err := b.s.CreateTable(context.Background(), Name{"main", "u"}, Spec{}); err == nil {
		t.Fatal("a table was made in a failed store")
	}
}

// TestFailedDrop: a table whose drop failed can be read as before, like all else.
func TestFailedDrop(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.ErrInjected.If(errorfs.And(
		errorfs.PathMatch("/store/db/*.log"), isSync{}))}
	b := newBedOn(t, errorfs.Wrap(vfs.NewCrashableMem(), toggle))
	table := b.create("t", "k:string v:int64", "k", "", 2)
	b.put(table, values{"a", int64(1)})
	toggle.On()
	if err := b.s.DropTable(context.Background(), table.Name()); !fault.Is(err, "STORE_READ_ONLY") {
		t.Fatalf("a failed drop gave %v", err)
	}
	toggle.Off()
	if got := format(b.rows(b.table("t"))); got != "a 1\n" {
		t.Fatalf("got\n%s", got)
	}
}

type isSync struct{}

func (isSync) String() string { return "sync" }
func (isSync) Evaluate(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

// TestCrashBetweenIngestAndManifest: a run that is on disk but in no manifest is
// gone after the restart, and its number is not used again.
func TestCrashBetweenIngestAndManifest(t *testing.T) {
	disk := vfs.NewCrashableMem()
	b := newBedOn(t, disk)
	table := b.create("t", "k:string v:int64", "k", "", 2)
	b.put(table, values{"a", int64(1)})
	var p *Prepared
	b.asRun(func() { p = b.prepare(table, []values{{"a", int64(2)}, {"b", int64(2)}}, false) })
	lost := p.listing.id
	b.close()
	b.fs = disk.CrashClone(vfs.CrashCloneCfg{})
	b.open()
	table = b.table("t")
	checkNoGarbage(t, b.s, table)
	if got := format(b.rows(table)); got != "a 1\n" {
		t.Fatalf("got\n%s", got)
	}
	b.asRun(func() { b.put(table, values{"c", int64(3)}) })
	if id := table.head.runs.list[0].id; id <= lost {
		t.Fatalf("run %d was made after %d", id, lost)
	}
}

func newBedOn(t *testing.T, fs vfs.FS) *bed {
	b := newBed(t)
	b.close()
	b.fs = fs
	b.open()
	return b
}
