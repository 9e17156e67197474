package shards

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// overlapping makes runs of one slice that all hold every key; the last deletes
// every third.
func overlapping(b *bed, keys, runs int) *Table {
	b.t.Helper()
	table := b.create("t", "k:string s:int64 v:int64 w:string", "k", "s", 1)
	b.asRun(func() {
		for v := range runs {
			var rows []values
			for i := range keys {
				rows = append(rows, values{"k", int64(i), int64(v), fmt.Sprintf("text %d of run %d", i*7919%keys, v)})
			}
			b.put(table, rows...)
		}
		var gone []values
		for i := 0; i < keys; i += 3 {
			gone = append(gone, values{"k", int64(i)})
		}
		b.delete(table, gone...)
	})
	return table
}

// TestFoldInSteps: a large fold goes up the key range; each step is listed when
// it is done, reads see the same rows all the while, and the end is as if it had
// been one step.
func TestFoldInSteps(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 20_000, 4)
	b.smallSteps(100 << 10)
	want := format(b.rows(table))
	held := b.snapshot(table)
	s := b.snapshot(table)
	pick := planWhole(s.pieces(0), nil, nil)[0]
	s.Release()
	steps := 0
	for ; !pick.empty(); steps++ {
		var err error
		if pick, err = table.foldStep(context.Background(), pick); err != nil {
			t.Fatal(err)
		}
		if got := format(b.rows(table)); got != want {
			t.Fatalf("after step %d the table has other rows", steps)
		}
		if err := b.s.Doctor(context.Background(), func(f Finding) { t.Errorf("after step %d doctor finds %+v", steps, f) }); err != nil {
			t.Fatal(err)
		}
	}
	if steps < 4 {
		t.Errorf("the fold took %d steps", steps)
	}
	r := all(held)
	r.Order = Asc
	if got := format(b.scan(held, r)); got != want {
		t.Error("the snapshot of before has other rows")
	}
	held.Release()
	s = b.snapshot(table)
	defer s.Release()
	if rows, exact := s.Rows(); !exact || rows != 20_000-6_667 {
		t.Errorf("%d rows, exact: %t", rows, exact)
	}
	sequence := uint64(0)
	for _, r := range s.version.runs.list {
		if sequence == 0 {
			sequence = r.sequence
		}
		if r.sequence != sequence || len(r.cuts) > 0 {
			t.Errorf("run %d of sequence %d, others are of %d, cuts %v", r.id, r.sequence, sequence, r.cuts)
		}
	}
}

// TestFoldGoesOnAfterCrash: what steps finished stays after a crash between any
// two, and the policy goes on with the rest before it thinks of anything else.
func TestFoldGoesOnAfterCrash(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 6_000, 4)
	b.smallSteps(30 << 10)
	want := format(b.rows(table))
	s := b.snapshot(table)
	pick := planWhole(s.pieces(0), nil, nil)[0]
	s.Release()
	var crashes []vfs.FS
	for !pick.empty() {
		var err error
		if pick, err = table.foldStep(context.Background(), pick); err != nil {
			t.Fatal(err)
		}
		crashes = append(crashes, b.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{}))
	}
	for i, fs := range crashes {
		c := &bed{t: t, fs: fs, mem: b.mem, o: Options{FoldConcurrency: -1}, policy: b.policy}
		c.open()
		table := c.table("t")
		steps := 0
		for ; ; steps++ {
			picks := table.plan()
			if len(picks) == 0 {
				break
			}
			if picks[0].why != "begun" {
				t.Errorf("after crash %d the policy wants %q", i, picks[0].why)
			}
			if _, err := table.foldStep(context.Background(), picks[0]); err != nil {
				t.Fatal(err)
			}
		}
		if steps != len(crashes)-1-i {
			t.Errorf("after a crash behind step %d of %d it took %d more", i+1, len(crashes), steps)
		}
		if got := format(c.rows(table)); got != want {
			t.Errorf("after crash %d the table has other rows", i)
		}
		c.close()
	}
}

// TestFoldStepAfterReplace: a table that was replaced or dropped between two steps
// is not folded any further, and nothing of the steps stays.
func TestFoldStepAfterReplace(t *testing.T) {
	for _, drop := range []bool{false, true} {
		b := newBed(t)
		table := overlapping(b, 6_000, 3)
		b.smallSteps(30 << 10)
		s := b.snapshot(table)
		pick := planWhole(s.pieces(0), nil, nil)[0]
		s.Release()
		pick, err := table.foldStep(context.Background(), pick)
		if err != nil {
			t.Fatal(err)
		}
		if drop {
			if err := b.s.DropTable(context.Background(), table.Name()); err != nil {
				t.Fatal(err)
			}
		} else {
			b.publish(table, PublishOptions{Replace: true}, b.prepare(table, []values{{"k", int64(1), int64(1), "x"}}, false))
		}
		if _, err := table.foldStep(context.Background(), pick); err == nil {
			t.Error("a step went on after its runs were unlisted")
		}
		b.s.janitor.wait()
		checkNoGarbage(t, b.s, table)
	}
}

// TestTrim: what is left of a slice from a key on is counted exactly, wherever in
// a block the key lies.
func TestTrim(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 5_000, 1)
	s := b.snapshot(table)
	defer s.Release()
	r := s.version.runs.of(0, 1)[1] // the rows, below the deletes
	c, release := b.commitOf(table, []values{{"k", int64(0)}, {"k", int64(1)}, {"k", int64(2048)}, {"k", int64(3000)}, {"k", int64(4999)}}, true)
	defer release()
	for i, at := range []uint64{0, 1, 2048, 3000, 4999} {
		low := c.Slices[0].Keys.At(i)
		info, err := r.run.run.Trim(context.Background(), b.mem, 0, low)
		if err != nil {
			t.Fatal(err)
		}
		if info.Rows != 5000-at || string(info.First) != string(low) || string(info.Last) != string(r.info.Last) {
			t.Errorf("from row %d on there are %d rows from %x to %x", at, info.Rows, info.First, info.Last)
		}
		above, err := r.run.run.Trim(context.Background(), b.mem, 0, append(low[:len(low):len(low)], 0))
		if err != nil || above.Rows != 4999-at {
			t.Errorf("above row %d there are %d rows (%v)", at, above.Rows, err)
		}
	}
}

// TestFoldPassesBlocks: of a large folded run below a few rows, only the blocks
// that these rows meet are encoded anew, and what is between them does not fall
// apart into small blocks however often that happens.
func TestFoldPassesBlocks(t *testing.T) {
	b := newBed(t)
	const blocks = 40
	table := overlapping(b, blocks*2048, 1)
	ctx := context.Background()
	if err := table.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	for round := range 8 {
		b.asRun(func() {
			for i := range 4 {
				at := int64((round*9173+i*20_011)%(blocks*2048)) | 1
				b.put(table, values{"k", at, int64(round), "x"})
			}
		})
		want := format(b.rows(table))
		before := table.work.passed.Load()
		if err := table.Fold(ctx); err != nil {
			t.Fatal(err)
		}
		if got := format(b.rows(table)); got != want {
			t.Fatalf("round %d: the table has other rows", round)
		}
		// A third of the rows was deleted.
		if n := table.work.passed.Load() - before; n < blocks*2/3-4*3 {
			t.Errorf("round %d: %d blocks were passed on", round, n)
		}
	}
	s := b.snapshot(table)
	defer s.Release()
	rows, all := uint64(0), 0
	for _, r := range s.version.runs.of(0, 1) {
		rows, all = rows+r.info.Rows, all+r.info.Blocks
	}
	if average := rows / uint64(all); average < 1024 {
		t.Errorf("blocks have %d rows on average", average)
	}
	if err := b.s.Doctor(ctx, func(f Finding) { t.Errorf("doctor finds %+v", f) }); err != nil {
		t.Fatal(err)
	}
}

// checkSequences: runs of one sequence do not overlap in a slice, which the policy
// takes for granted.
func checkSequences(t *testing.T, table *Table) {
	t.Helper()
	s, err := table.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Release()
	for slice := range table.slices {
		runs := slices.Clone(s.version.runs.of(slice, table.slices))
		slices.SortFunc(runs, func(a, b sliceRun) int { return bytes.Compare(a.info.First, b.info.First) })
		last := map[uint64]sliceRun{}
		for _, r := range runs {
			before, ok := last[r.run.sequence]
			if ok && bytes.Compare(before.info.Last, r.info.First) >= 0 {
				t.Errorf("runs %d and %d of sequence %d overlap", before.run.id, r.run.id, r.run.sequence)
			}
			last[r.run.sequence] = r
		}
	}
}

// TestDeltaBetweenSteps: delta that is folded while a fold goes on in steps is no
// part of what that fold writes: it would be merged with nothing any more, and the
// runs over a key be ever more.
func TestDeltaBetweenSteps(t *testing.T) {
	b := newBed(t)
	table := overlapping(b, 12_000, 4)
	b.smallSteps(30 << 10)
	b.policy.deltaEntries, b.policy.floor = 20, 1<<10
	want, begun := format(b.rows(table)), 0
	for rounds := 0; ; rounds++ {
		if rounds > 200 {
			t.Fatal("the folds never end")
		}
		if begun < 15 && rounds%2 == 1 {
			var rows []values
			for i := range 20 {
				rows = append(rows, values{"k", int64(i*599 + 1), int64(rounds), "x"}) // all over the keys
			}
			b.put(table, rows...)
			want = format(b.rows(table))
		}
		picks := table.plan() // and one step, as a worker does
		if len(picks) == 0 {
			break
		}
		if picks[0].why == "begun" {
			begun++
		}
		if _, err := table.foldStep(context.Background(), picks[0]); err != nil {
			t.Fatal(err)
		}
		checkSequences(t, table)
		if t.Failed() {
			t.Fatalf("in round %d", rounds)
		}
		if got := format(b.rows(table)); got != want {
			t.Fatalf("round %d: the table has other rows", rounds)
		}
	}
	s := b.snapshot(table)
	defer s.Release()
	var size uint64
	for _, r := range s.version.runs.of(0, 1) {
		size += r.info.Bytes
	}
	if begun < 5 {
		t.Errorf("%d steps of a fold that was begun", begun)
	}
	if depth, most := len(deepest(s.version.runs.of(0, 1))), b.policy.depth(size); depth > most {
		t.Errorf("%d runs over a key, the bound is %d", depth, most)
	}
}
