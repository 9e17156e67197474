package shards

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

// foldAll does what the policy wants until it wants nothing.
func (b *bed) foldAll(table *Table) {
	b.t.Helper()
	for rounds := 0; ; rounds++ {
		picks := table.plan()
		if len(picks) == 0 {
			return
		}
		if rounds > 1000 {
			b.t.Fatal("the policy never ends")
		}
		for _, pick := range picks {
			if err := table.foldSlice(context.Background(), pick); err != nil {
				b.t.Fatal(err)
			}
		}
	}
}

// TestWriteAmplification drives what would be days of work on a store whose
// thresholds are scaled down as its tables are, and holds what folds wrote, and
// the runs over a key, to the bounds that the policy states.
func TestWriteAmplification(t *testing.T) {
	for _, work := range []struct {
		name    string
		rows    int // of a commit
		commits int
		delete  int // every so many commits; 0: none
		run     int // every so many commits is a run, whatever its size; 0: none
		step    func(rng *rand.Rand, commit, row int) int64
	}{
		{"random upserts", 200, 500, 0, 0, func(rng *rand.Rand, _, _ int) int64 { return rng.Int64N(40_000) }},
		{"upserts, deletes and larger commits", 200, 400, 5, 7, func(rng *rand.Rand, _, _ int) int64 { return rng.Int64N(30_000) }},
		{"small writes", 5, 1500, 0, 0, func(rng *rand.Rand, _, _ int) int64 { return rng.Int64N(20_000) }},
		{"a window that moves", 200, 400, 0, 3, func(rng *rand.Rand, commit, _ int) int64 { return int64(commit*100) + rng.Int64N(2_000) }},
	} {
		t.Run(work.name, func(t *testing.T) {
			b := newBed(t)
			b.policy = &foldPolicy{
				deltaBytes: 16 << 10, deltaTotal: 256 << 10, deltaEntries: 2048,
				floor: 4 << 10, smallRun: 32 << 10, smallRuns: 16, stepBytes: 128 << 10, runBytes: 192 << 10,
			}
			b.s.policy = b.policy
			const slices = 2
			table := b.create("t", "k:string s:int64 v:int64 w:string", "k", "s", slices)
			rng := rand.New(rand.NewPCG(1, 2))
			deepest, largest := 0, uint64(0)
			for i := range work.commits {
				var rows []values
				for j := range work.rows {
					s := work.step(rng, i, j)
					rows = append(rows, values{fmt.Sprintf("k%d", s%7), s, rng.Int64(), fmt.Sprintf("%x", rng.Uint64())})
				}
				write := func() { b.put(table, rows...) }
				if work.delete > 0 && i%work.delete == 0 {
					write = func() { b.delete(table, rows...) }
				}
				if work.run > 0 && i%work.run == 0 {
					b.asRun(write)
				} else {
					write()
				}
				b.foldAll(table)
				deepest = max(deepest, table.folds.depth)
				s := b.snapshot(table)
				for _, stat := range s.SliceStats() {
					largest = max(largest, stat.Bytes)
				}
				s.Release()
			}
			stats := table.FoldStats()
			first := b.policy.deltaBytes / 2 // what of a delta is left as a run
			if work.run > 0 {
				first = b.policy.floor
			}
			writes, depth := 1+b.policy.writes(largest, first), b.policy.depth(largest)
			t.Logf("%d KiB arrived, written %.1f times (bound %.1f); at most %d runs over a key (bound %d), %d KiB in a slice",
				stats.Ingested>>10, stats.Amplification(), writes, deepest, depth, largest>>10)
			if stats.Folded == 0 || stats.Amplification() > writes {
				t.Errorf("written %.1f times what arrived, the bound is %.1f", stats.Amplification(), writes)
			}
			if deepest > depth {
				t.Errorf("%d runs over a key, the bound is %d", deepest, depth)
			}
			// The counts survive a restart.
			b.reopen()
			if again := b.table("t").FoldStats(); again.Folded != stats.Folded {
				t.Errorf("after a restart folds wrote %d bytes, before %d", again.Folded, stats.Folded)
			}
		})
	}
}
