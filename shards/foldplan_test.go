package shards

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/sheaf-db/sheaf/shards/run"
)

// simRun is a run of one slice with keys from first to last, for the policy
// alone.
func simRun(id, sequence uint64, bytes uint64, first, last int) sliceRun {
	info := run.SliceInfo{Rows: bytes / 100, Bytes: bytes, First: fmt.Appendf(nil, "%09d", first), Last: fmt.Appendf(nil, "%09d", last)}
	l := &listing{id: id, sequence: sequence, slices: []run.SliceInfo{info}, written: 1, bytes: bytes, least: id, greatest: id}
	return sliceRun{run: &tableRun{listing: l}, info: &l.slices[0]}
}

// simulate lets commits of about the given bytes arrive in one slice and folds
// as the policy says; it returns the greatest depth after folding, the most
// runs, and the bytes written by folds for each byte that arrived.
func simulate(t *testing.T, commits int, size func(i int) uint64, keys func(i int) (first, last int)) (depth, most int, amplification float64) {
	var runs []sliceRun
	var arrived, written uint64
	id := uint64(0)
	for i := range commits {
		id++
		first, last := keys(i)
		runs = append(runs, simRun(id, id, size(i), first, last))
		arrived += size(i)
		for rounds := 0; ; rounds++ {
			if rounds > 100 {
				t.Fatal("the policy never ends")
			}
			pick := defaultPolicy().planSlice(slicePieces{runs: runs, oldestDelta: math.MaxUint64})
			if pick.empty() {
				break
			}
			var bytes uint64
			lo, hi := math.MaxInt, 0
			for _, r := range pick.runs {
				bytes += r.info.Bytes
				a, _ := strconv.Atoi(string(r.info.First))
				b, _ := strconv.Atoi(string(r.info.Last))
				lo, hi = min(lo, a), max(hi, b)
			}
			written += bytes
			runs = slices.DeleteFunc(slices.Clone(runs), func(r sliceRun) bool {
				return slices.ContainsFunc(pick.runs, func(p sliceRun) bool { return p.run == r.run })
			})
			// The output is cut into runs that do not overlap.
			parts := int(bytes/defaultPolicy().runBytes) + 1
			first := id + 1
			for p := range parts {
				id++
				width := (hi - lo + 1) / parts
				runs = append(runs, simRun(id, first, bytes/uint64(parts), lo+p*width, lo+(p+1)*width-1))
			}
		}
		depth, most = max(depth, len(deepest(runs))), max(most, len(runs))
	}
	return depth, most, float64(written) / float64(arrived)
}

// TestFoldPolicyBounds holds the policy to the bounds that foldplan.go states.
func TestFoldPolicyBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	everywhere := func(int) (int, int) { return 0, 999_999_999 }
	for _, test := range []struct {
		name    string
		commits int
		size    func(int) uint64
		keys    func(int) (int, int)
		depth   int
		runs    int
		written float64
	}{
		{"equal sizes, all keys", 1000, func(int) uint64 { return 1 << 20 }, everywhere, defaultPolicy().depth(1000 << 20), 40, 6},
		{"random sizes, all keys", 1000, func(int) uint64 { return 1 << (16 + rng.IntN(7)) }, everywhere, defaultPolicy().depth(1300 << 20), 40, 6},
		{"tiny, all keys", 3000, func(int) uint64 { return 10_000 }, everywhere, defaultPolicy().depth(30 << 20), 20, 9},
		{"one after the other", 1000, func(int) uint64 { return 2 << 20 }, func(i int) (int, int) { return i * 1000, i*1000 + 999 }, 1, 100, 1},
		{"a window that moves", 1000, func(int) uint64 { return 2 << 20 }, func(i int) (int, int) { return i * 100_000, i*100_000 + 999_999 }, defaultPolicy().depth(2000 << 20), 200, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			depth, runs, written := simulate(t, test.commits, test.size, test.keys)
			t.Logf("at most %d runs over a key, %d in all, each byte was rewritten %.1f times", depth, runs, written)
			if depth > test.depth || runs > test.runs || written > test.written {
				t.Errorf("at most %d runs over a key (bound %d), %d in all (bound %d), rewritten %.1f times (bound %.0f)",
					depth, test.depth, runs, test.runs, written, test.written)
			}
		})
	}
}

// TestFoldPolicyDelta: a delta that is large for its slice is folded, or many
// small ones, largest first, when they are large together.
func TestFoldPolicyDelta(t *testing.T) {
	none := uint64(math.MaxUint64)
	if p := defaultPolicy().planSlice(slicePieces{deltaSize: defaultPolicy().deltaBytes - 1, deltaEntries: 1, oldestDelta: none}); !p.empty() {
		t.Errorf("a small delta: %+v", p)
	}
	if p := defaultPolicy().planSlice(slicePieces{deltaSize: defaultPolicy().deltaBytes, deltaEntries: 1, oldestDelta: none}); !p.delta || len(p.runs) > 0 {
		t.Errorf("a large delta: %+v", p)
	}
	if p := defaultPolicy().planSlice(slicePieces{deltaSize: 1, deltaEntries: defaultPolicy().deltaEntries, oldestDelta: none}); !p.delta {
		t.Errorf("a delta of many rows: %+v", p)
	}
	var all []slicePieces
	for slice := range 100 {
		all = append(all, slicePieces{slice: slice, deltaSize: uint64(slice) * defaultPolicy().deltaTotal / 4900, deltaEntries: 1, oldestDelta: none})
	}
	picks := defaultPolicy().planFolds(all)
	if len(picks) == 0 || len(picks) > 60 {
		t.Fatalf("%d folds", len(picks))
	}
	for i, p := range picks {
		if !p.delta || p.slice != 99-i {
			t.Errorf("fold %d is of slice %d", i, p.slice)
		}
	}
}

// TestFoldPolicyDeletes: many deletes are merged with what they hide, once
// nothing older lies in the delta.
func TestFoldPolicyDeletes(t *testing.T) {
	rows, deletes, apart := simRun(1, 1, 100<<20, 0, 500), simRun(9, 9, 1<<20, 100, 200), simRun(2, 2, 1<<20, 600, 700)
	deletes.info.Rows, deletes.info.Tombstones = rows.info.Rows, rows.info.Rows
	s := slicePieces{runs: []sliceRun{rows, apart, deletes}, deltaEntries: 1, oldestDelta: 5}
	if p := defaultPolicy().planSlice(s); !p.delta || len(p.runs) > 0 {
		t.Errorf("with an old delta: %+v", p)
	}
	s.oldestDelta = 10
	if p := defaultPolicy().planSlice(s); p.delta || len(p.runs) != 2 {
		t.Errorf("with a new delta: %+v", p)
	}
	// Newer rows over them neither hide the deletes nor are hidden by them.
	s.runs = append(s.runs, simRun(20, 20, 1<<20, 100, 200))
	if p := defaultPolicy().planSlice(s); p.delta || len(p.runs) != 3 {
		t.Errorf("with newer rows: %+v", p)
	}
}

// TestFoldPolicyDeletesAndOverlap: an old delta below deletes, which is there at
// every look while small commits and large ones take turns, does not keep
// overlap from being merged.
func TestFoldPolicyDeletesAndOverlap(t *testing.T) {
	s := slicePieces{deltaEntries: 1, oldestDelta: 3}
	for id := range uint64(tierSequences) {
		r := simRun(id+1, id+1, 1<<20, 0, 500)
		r.info.Tombstones = r.info.Rows / 2
		s.runs = append(s.runs, r)
	}
	if p := defaultPolicy().planSlice(s); !p.delta || len(p.runs) != tierSequences {
		t.Errorf("got %+v", p)
	}
}

// TestNewerRowsLetDeletesGo: what is newer than every delete that is merged
// cannot be hidden by one, whatever else is merged.
func TestNewerRowsLetDeletesGo(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() {
		b.put(table, values{"a", int64(1)}, values{"b", int64(1)})
		b.delete(table, values{"a", nil})
	})
	b.put(table, values{"a", int64(3)})
	b.asRun(func() { b.put(table, values{"b", int64(4)}) })
	s := b.snapshot(table)
	pick := foldPick{runs: s.pieces(0).runs}
	s.Release()
	if err := table.foldSlice(context.Background(), pick); err != nil {
		t.Fatal(err)
	}
	s = b.snapshot(table)
	defer s.Release()
	if runs := s.pieces(0).runs; len(runs) != 1 || runs[0].info.Tombstones > 0 {
		t.Errorf("%d runs, the first with %d deletes", len(runs), runs[0].info.Tombstones)
	}
	if got := format(b.rows(table)); got != "a 3\nb 4\n" {
		t.Errorf("got\n%s", got)
	}
}
