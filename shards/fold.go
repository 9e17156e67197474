package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"

	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// errFoldStale: an input left the table while it was being merged (a drop, a
// replace). Nothing was changed; what the fold wrote is garbage.
var errFoldStale = errors.New("the fold's inputs are no longer listed")

// foldInput is what one fold of a slice merges, held by its snapshot.
type foldInput struct {
	snapshot    *Snapshot
	slice       int
	runs        []sliceRun
	generations []*generation
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

// foldSlice does one fold: freeze, wait, merge, write, swap. The caller holds
// the slice's fold latch. A bug in a decoder must not end the process, on whose
// goroutines nobody else recovers.
func (t *Table) foldSlice(ctx context.Context, pick foldPick) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: folding slice %d of %s: %v\n%s", pick.slice, t.label(), r, debug.Stack())
		}
	}()
	in, err := t.foldInput(pick)
	if err != nil {
		return err
	}
	defer in.snapshot.Release()
	if len(in.runs)+len(in.generations) == 0 {
		return nil
	}
	if err := t.store.space.check(in.bytes()); err != nil {
		return err
	}
	outputs, err := t.merge(ctx, in)
	if err != nil {
		return err
	}
	if err := t.swap(in, outputs); err != nil {
		t.discardRuns(outputs)
		return err
	}
	return nil
}

// foldInput freezes the delta if it is wanted, waits until all that went into it
// is visible, and holds what is to be merged.
func (t *Table) foldInput(pick foldPick) (*foldInput, error) {
	in := &foldInput{slice: pick.slice}
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

func (in *foldInput) bytes() int64 {
	var n uint64
	for _, r := range in.runs {
		n += r.info.Bytes
	}
	for _, g := range in.generations {
		n += g.size.Load()
	}
	return int64(n)
}

// merge writes the outputs, ingests them, and returns their manifest entries.
// On an error nothing of them is left.
func (t *Table) merge(ctx context.Context, in *foldInput) ([]*listing, error) {
	s := in.snapshot
	var sources []run.Source
	for i := len(in.generations) - 1; i >= 0; i-- {
		sources = append(sources, t.deltaSource(in.generations[i], s.version.commit, in.rows()))
	}
	for _, r := range s.version.runs.of(in.slice, t.slices) { // newest listed first
		if slices.ContainsFunc(in.runs, func(other sliceRun) bool { return other.run.id == r.run.id }) {
			sources = append(sources, r.run.run.Source(in.slice))
		}
	}
	first, last, err := deltaRange(t, in.generations, s.version.commit)
	if err != nil {
		return nil, err
	}
	keeps := keepsTombstones(s.version, in.slice, t.slices, in.runs, in.generations, first, last)
	var files []*runFile
	infos, err := run.Fold(ctx, run.FoldRequest{
		Mem: t.store.options.Allocator, Key: t.key,
		Types: s.version.schema.CanonicalByID, Columns: s.version.schema.IDs(), Slice: in.slice,
		DropTombstones: !keeps,
		MaxBytes:       foldedRunBytes,
		Create: func() (*run.Writer, error) {
			f, err := t.createRun()
			if err != nil {
				return nil, err
			}
			files = append(files, f)
			return f.Writer, nil
		},
	}, sources)
	if err != nil || len(files) == 0 {
		for _, f := range files {
			_ = t.store.fs.Remove(f.path) // the next start removes what is left
		}
		return nil, t.store.space.met(err)
	}
	var paths []string
	var outputs []*listing
	for i, f := range files {
		paths = append(paths, f.path)
		outputs = append(outputs, listingOf(f.id, s.version.schema, infos[i]))
		outputs[i].sequence = files[0].id
	}
	if err := t.store.ingest(ctx, paths); err != nil {
		return nil, err
	}
	return outputs, nil
}

func (in *foldInput) rows() uint64 {
	var n uint64
	for _, r := range in.runs {
		n += r.info.Rows
	}
	return n
}

// swap lists the outputs in the place of the inputs, in one synced batch. If an
// input is no longer listed the table was replaced or dropped: errFoldStale.
func (t *Table) swap(in *foldInput, outputs []*listing) error {
	p, batch, err := t.applySwap(in, outputs)
	if err != nil {
		return err
	}
	return t.settle(p, batch)
}

func (t *Table) applySwap(in *foldInput, outputs []*listing) (*pendingVersion, *pebble.Batch, error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	p, batch, err := t.prepareSwap(in, outputs)
	if err == nil {
		err = t.apply(p, batch)
	}
	return p, batch, err
}

func (t *Table) prepareSwap(in *foldInput, outputs []*listing) (*pendingVersion, *pebble.Batch, error) {
	if err := t.ready(); err != nil {
		return nil, nil, err
	}
	next := t.head.next()
	p := &pendingVersion{version: next, shown: make(chan struct{})}
	batch := t.store.db.NewBatch()
	replaced := map[uint64]*tableRun{}
	for _, input := range in.runs {
		r := next.runs.find(input.run.id)
		if r == nil || r.slice(in.slice) == nil {
			return nil, nil, errFoldStale
		}
		left := r.without(func(slice int) bool { return slice == in.slice })
		if left == nil {
			replaced[r.id] = nil
			p.garbage = append(p.garbage, t.runGarbage(r, next.epoch))
			if err := batch.Delete(layout.RunKey(t.id, r.id), nil); err != nil {
				return nil, nil, err
			}
			continue
		}
		replaced[r.id] = &tableRun{listing: left, born: r.born, run: r.run}
		if err := batch.Set(layout.RunKey(t.id, r.id), left.encode(), nil); err != nil {
			return nil, nil, err
		}
	}
	var added []*tableRun
	for _, l := range outputs {
		r, err := t.open(l, next.epoch)
		if err != nil {
			return nil, nil, err
		}
		added = append(added, r)
		if err := batch.Set(layout.RunKey(t.id, l.id), l.encode(), nil); err != nil {
			return nil, nil, err
		}
	}
	next.runs = next.runs.with(replaced, added)
	if len(in.generations) == 0 {
		return p, batch, nil
	}
	return p, batch, t.unlistGenerations(in, p, batch)
}

func (t *Table) unlistGenerations(in *foldInput, p *pendingVersion, batch *pebble.Batch) error {
	next := p.version
	var kept []*generation
	var counts []generationCount
	gone := 0
	for _, g := range next.delta.of(in.slice) {
		if contains(in.generations, g) {
			gone++
			next.entries -= g.entries.Load()
			next.tombstones -= g.tombstones.Load()
			p.garbage = append(p.garbage, t.generationGarbage(g, next.epoch))
			continue
		}
		kept = append(kept, g)
		counts = append(counts, g.count())
	}
	if gone != len(in.generations) {
		return errFoldStale
	}
	next.delta = next.delta.clone()
	next.delta.bySlice[in.slice] = kept
	if len(kept) == 0 {
		return batch.Delete(layout.GensKey(t.id, in.slice), nil)
	}
	return batch.Set(layout.GensKey(t.id, in.slice), encodeGenerations(counts), nil)
}

func (t *Table) discardRuns(list []*listing) {
	var free []removal
	for _, l := range list {
		low, high := layout.RunSpan(t.id, l.id)
		free = append(free, removal{low, high, true})
	}
	t.store.janitor.remove(free)
}
