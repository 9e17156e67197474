package shards

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sheaf-db/sheaf/fault"
)

// TestTwoInsertsOfOneKey: of many writers that look first and then insert, one
// wins for each key, because each holds its slice's latch from look to publish.
func TestTwoInsertsOfOneKey(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 4)
	const writers, keys = 8, 20
	var wins [keys]atomic.Int64
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for k := range keys {
				if insert(t, b, table, fmt.Sprintf("k%d", k), int64(w)) {
					wins[k].Add(1)
				}
			}
		})
	}
	group.Wait()
	for k := range keys {
		if n := wins[k].Load(); n != 1 {
			t.Errorf("key %d was inserted %d times", k, n)
		}
	}
	if n := len(b.rows(table)); n != keys {
		t.Errorf("%d rows, want %d", n, keys)
	}
}

// insert writes a row unless its key exists.
func insert(t *testing.T, b *bed, table *Table, k string, v int64) bool {
	ctx := context.Background()
	c, release := commitOf(t, b.mem, table.Schema(), []values{{k, v}}, false)
	defer release()
	unlock, err := table.Latch(ctx, []int{c.Slices[0].Slice}, true)
	if err != nil {
		t.Error(err)
		return false
	}
	defer unlock()
	s, err := table.Snapshot()
	if err != nil {
		t.Error(err)
		return false
	}
	defer s.Release()
	r := all(s)
	r.Ranges = pointRange(c)
	scan, err := s.Scan(ctx, r)
	if err != nil {
		t.Error(err)
		return false
	}
	defer scan.Close()
	if batch, err := scan.Next(); err == nil {
		batch.Release()
		return false
	}
	p, err := table.Prepare(ctx, c)
	if err == nil {
		_, err = table.Publish(ctx, []*Prepared{p}, PublishOptions{})
	}
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// TestLatches: shared holders go together, an exclusive one alone, and a waiter
// gives up with its context.
func TestLatches(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 4)
	ctx, cancel := context.WithCancel(context.Background())
	one, err := table.Latch(ctx, []int{2, 0, 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	two, err := table.Latch(ctx, []int{0, 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error)
	go func() {
		_, err := table.Latch(ctx, []int{3, 0}, true)
		waiting <- err
	}()
	cancel()
	if err := <-waiting; err != context.Canceled {
		t.Fatalf("waiting for a latch with a cancelled context: %v", err)
	}
	one()
	two()
	// Slice 3, which the waiter had got, is free again.
	unlock, err := table.Latch(context.Background(), []int{0, 1, 2, 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

// hookFS calls a hook when a run file is created, that is in the middle of a
// fold or a large commit.
func hookFS(disk vfs.FS, hook *func()) vfs.FS {
	return errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "/"+tmpName+"/") && *hook != nil {
			do := *hook
			*hook = nil
			do()
		}
		return nil
	}))
}

// TestDropDuringFold: the fold ends with the table, and leaves nothing behind.
func TestDropDuringFold(t *testing.T) {
	var hook func()
	b := newBedOn(t, hookFS(vfs.NewCrashableMem(), &hook))
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}) })
	b.put(table, values{"a", int64(2)})
	held := b.snapshot(table)
	hook = func() {
		if err := b.s.DropTable(context.Background(), table.Name()); err != nil {
			t.Error(err)
		}
	}
	if err := table.Fold(context.Background()); !fault.Is(err, "TABLE_NOT_FOUND") {
		t.Fatalf("folding a table that is dropped: %v", err)
	}
	if got := format(b.scan(held, all(held))); got != "a 2\n" {
		t.Fatalf("a snapshot of the dropped table gave\n%s", got)
	}
	held.Release()
	b.s.janitor.wait()
	sc := script{bed: b}
	if got := sc.onDisk(); got != "nothing\n" {
		t.Fatalf("left on disk:\n%s", got)
	}
}

// TestReplaceDuringFold: the replaced rows do not come back with the fold.
func TestReplaceDuringFold(t *testing.T) {
	var hook func()
	b := newBedOn(t, hookFS(vfs.NewCrashableMem(), &hook))
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}, values{"b", int64(1)}) })
	b.put(table, values{"a", int64(2)})
	p := b.prepare(table, []values{{"c", int64(3)}}, false)
	hook = func() { b.publish(table, PublishOptions{Replace: true}, p) }
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := format(b.rows(table)); got != "c 3\n" {
		t.Fatalf("got\n%s", got)
	}
	b.s.janitor.wait()
	checkNoGarbage(t, b.s, table)
}

// TestWriteDuringFold: what is written while a slice is merged goes to the next
// generation and stays newer.
func TestWriteDuringFold(t *testing.T) {
	var hook func()
	b := newBedOn(t, hookFS(vfs.NewCrashableMem(), &hook))
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}, values{"b", int64(1)}) })
	b.delete(table, values{"b", nil})
	hook = func() {
		b.put(table, values{"a", int64(2)}, values{"b", int64(2)})
		b.delete(table, values{"a", nil})
	}
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := format(b.rows(table)); got != "b 2\n" {
			t.Fatalf("got\n%s", got)
		}
		b.reopen()
		table = b.table("t")
	}
}

// TestSnapshotsDuringBulkCommits: one goroutine overwrites k0 by commits that
// are runs, one folds, and each snapshot sees k0, values never going back and
// the other keys of the commit with the same value.
func TestSnapshotsDuringBulkCommits(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 4)
	rows := func(v int64) []values {
		return []values{{"k0", v}, {"k1", v}, {"k2", v}, {"k3", v}, {"k4", v}}
	}
	b.s.deltaCommitBytes = 0
	b.put(table, rows(0)...)
	reads := 1000
	if testing.Short() {
		reads = 100
	}
	done := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		for v := int64(1); ; v++ {
			select {
			case <-done:
				return
			default:
			}
			c, release := commitOf(t, b.mem, table.Schema(), rows(v), false)
			p, err := table.Prepare(context.Background(), c)
			release()
			if err == nil {
				_, err = table.Publish(context.Background(), []*Prepared{p}, PublishOptions{})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	writers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := table.Fold(context.Background()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	before := int64(-1)
	for range reads {
		s, err := table.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		r := all(s)
		r.Order, r.Parallel = Asc, 1
		got, err := b.tryScan(s, r)
		s.Release()
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 5 {
			t.Fatalf("a snapshot sees %v", got)
		}
		v := got[0][1].(int64)
		if v < before {
			t.Fatalf("k0 went back from %d to %d", before, v)
		}
		before = v
		for _, row := range got {
			if row[1] != v {
				t.Fatalf("a snapshot sees half a commit: %v", got)
			}
		}
	}
	close(done)
	writers.Wait()
}

// TestManyWriters: every acknowledged row of many writers is there once, with
// background folds going on, and commits share syncs.
func TestManyWriters(t *testing.T) {
	b := newBed(t)
	b.close()
	b.o.FoldConcurrency = 1
	b.open()
	table := b.create("t", "k:int64 v:int64", "k", "", 4)
	const writers, commits = 8, 40
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range commits {
				var rows []values
				for j := range 5 {
					rows = append(rows, values{int64((w*commits+i)*5 + j), int64(w)})
				}
				c, release := commitOf(t, b.mem, table.Schema(), rows, false)
				p, err := table.Prepare(context.Background(), c)
				release()
				if err == nil {
					_, err = table.Publish(context.Background(), []*Prepared{p}, PublishOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	check := func() {
		rows := b.rows(table)
		if len(rows) != writers*commits*5 {
			t.Fatalf("%d rows, want %d", len(rows), writers*commits*5)
		}
		for i, row := range rows {
			if row[0] != int64(i) {
				t.Fatalf("row %d has key %v", i, row[0])
			}
		}
	}
	check()
	if table.Schema() == nil || table.visible.commit != writers*commits {
		t.Errorf("%d commits are visible, want %d", table.visible.commit, writers*commits)
	}
	b.reopen()
	table = b.table("t")
	check()
}
