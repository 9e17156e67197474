package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sheaf-db/sheaf/shards/run"
)

// errFoldStale: an input left the table while it was being merged (a drop, a
// replace). Nothing was changed; what the fold wrote is garbage.
var errFoldStale = errors.New("the fold's inputs are no longer listed")

// foldInput is what one step of a fold merges, held by its snapshot.
type foldInput struct {
	snapshot    *Snapshot
	slice       int
	runs        []sliceRun
	generations []*generation
	high        []byte     // only rows of the runs below it; nil: all
	into        uint64     // sequence of what is written; 0: a new one
	later       []sliceRun // of the pick, for the steps to come
}

// Fold merges the delta and everything that overlaps, in all slices, and
// returns when what was written before the call is folded: no delta, no
// overlapping runs, no deletes, and the number of rows is exact, unless there
// were writes meanwhile. Snapshots, reads and writes go on.
func (t *Table) Fold(ctx context.Context) error {
	if err := t.ready(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxFoldsAtOnce))
	for slice := range t.slices {
		group.Go(func() error { return t.foldWhole(ctx, slice) })
	}
	return group.Wait()
}

// maxFoldsAtOnce bounds the memory of one call of Fold, a few blocks for each
// run merged.
const maxFoldsAtOnce = 4

// foldWhole folds one slice completely. It waits for a background fold of the
// slice; what that has left is planned anew.
func (t *Table) foldWhole(ctx context.Context, slice int) error {
	unlock, err := t.folds.latches.lock(ctx, []int{slice}, true)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		picks, err := t.planWhole(slice)
		for i := 0; i < len(picks) && err == nil; i++ {
			err = t.foldSlice(ctx, picks[i])
		}
		if !errors.Is(err, errFoldStale) {
			return err
		}
		// Dropped or replaced: the next look sees what there is now.
	}
}

func (t *Table) planWhole(slice int) ([]foldPick, error) {
	s, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	defer s.Release()
	first, last, err := deltaRange(t, s.version.delta.of(slice), s.version.commit)
	if err != nil {
		return nil, err
	}
	return planWhole(s.pieces(slice), first, last), nil
}

func (s *Snapshot) pieces(slice int) slicePieces {
	p := slicePieces{slice: slice, runs: s.version.runs.of(slice, s.table.slices), oldestDelta: math.MaxUint64}
	p.deltaEntries, p.deltaSize = s.version.delta.sizeOf(slice)
	if list := s.version.delta.of(slice); len(list) > 0 {
		p.oldestDelta = list[0].number
	}
	return p
}

// deltaRange is the least and the greatest key in generations, as of a commit.
func deltaRange(t *Table, generations []*generation, commit uint64) (first, last []byte, err error) {
	for _, g := range generations {
		source := &deltaSource{table: t, generation: g, commit: commit, partRows: 1}
		for _, desc := range []bool{false, true} {
			key, err := source.edge(desc)
			if err != nil {
				return nil, nil, err
			}
			if key == nil {
				continue
			}
			if first == nil || slices.Compare(key, first) < 0 {
				first = key
			}
			if last == nil || slices.Compare(key, last) > 0 {
				last = key
			}
		}
	}
	return first, last, nil
}

// edge is the first or the last key of the source; nil if it has none.
func (s *deltaSource) edge(desc bool) (key []byte, err error) {
	c, err := s.Cursor(run.CursorOptions{Desc: desc, Mem: s.table.store.options.Allocator})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Seek(run.Bounds{}); err != nil {
		return nil, err
	}
	part, err := c.Next()
	if err != nil || part == nil {
		return nil, err
	}
	return slices.Clone(part.First), nil
}

// foldSlice does all steps of a fold. The caller holds the slice's fold latch.
func (t *Table) foldSlice(ctx context.Context, pick foldPick) (err error) {
	for err == nil && !pick.empty() {
		pick, err = t.foldStep(ctx, pick)
	}
	return err
}

// foldStep does one step of a fold: freeze, wait, merge, write, swap. What it
// returns is left to be done, empty after the last step. The caller holds the
// slice's fold latch. A bug in a decoder must not end the process, on whose
// goroutines nobody else recovers.
func (t *Table) foldStep(ctx context.Context, pick foldPick) (left foldPick, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: folding slice %d of %s: %v\n%s", pick.slice, t.label(), r, debug.Stack())
		}
	}()
	left.slice = pick.slice
	in, err := t.foldInput(pick)
	if err != nil {
		return left, err
	}
	defer in.snapshot.Release()
	if len(in.runs)+len(in.generations) == 0 {
		return left, nil
	}
	if err := t.limitStep(ctx, in); err != nil {
		return left, err
	}
	if err := t.store.space.check(in.bytes()); err != nil {
		return left, err
	}
	out, err := t.merge(ctx, in)
	if err != nil {
		return left, err
	}
	if err := t.swap(in, out); err != nil {
		t.discardRuns(out.runs)
		return left, err
	}
	t.work.count(out)
	left.why, left.into, left.runs = pick.why, out.into, in.left(out)
	return left, nil
}

// foldInput freezes the delta if it is wanted, waits until all that went into it
// is visible, and holds what is to be merged.
func (t *Table) foldInput(pick foldPick) (*foldInput, error) {
	in := &foldInput{slice: pick.slice, into: pick.into}
	if pick.delta {
		in.generations = t.freeze(pick.slice)
		if err := t.drain(); err != nil {
			return nil, err
		}
	}
	var err error
	if in.snapshot, err = t.Snapshot(); err != nil {
		return nil, err
	}
	listed := in.snapshot.version.delta.of(pick.slice)
	for _, g := range in.generations {
		if !contains(listed, g) {
			in.snapshot.Release()
			return nil, errFoldStale
		}
	}
	for _, wanted := range pick.runs {
		i := slices.IndexFunc(in.snapshot.version.runs.of(pick.slice, t.slices), func(r sliceRun) bool { return r.run.id == wanted.run.id })
		if i < 0 {
			in.snapshot.Release()
			return nil, errFoldStale
		}
		in.runs = append(in.runs, in.snapshot.version.runs.of(pick.slice, t.slices)[i])
	}
	return in, nil
}

// freeze ends the slice's generation that takes writes; the next write begins
// another. It returns all generations there are, oldest first.
func (t *Table) freeze(slice int) []*generation {
	t.commits.Lock()
	defer t.commits.Unlock()
	list := t.head.delta.of(slice)
	for _, g := range list {
		g.frozen = true
	}
	return slices.Clone(list)
}
