package shards

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/layout"
)

// swap lists the outputs in the place of the inputs, in one synced batch. If an
// input is no longer listed the table was replaced or dropped: errFoldStale.
func (t *Table) swap(in *foldInput, out *folded) error {
	p, batch, err := t.applySwap(in, out)
	if err != nil {
		return err
	}
	return t.settle(p, batch)
}

func (t *Table) applySwap(in *foldInput, out *folded) (*pendingVersion, *pebble.Batch, error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	p, batch, err := t.prepareSwap(in, out)
	if err == nil {
		err = t.apply(p, batch)
	}
	return p, batch, err
}

func (t *Table) prepareSwap(in *foldInput, out *folded) (*pendingVersion, *pebble.Batch, error) {
	if err := t.ready(); err != nil {
		return nil, nil, err
	}
	next := t.head.next()
	p := &pendingVersion{version: next, shown: make(chan struct{})}
	batch := t.store.db.NewBatch()
	replaced := map[uint64]*tableRun{}
	for i, input := range in.runs {
		r := next.runs.find(input.run.id)
		if r == nil || r.slice(in.slice) == nil {
			return nil, nil, errFoldStale
		}
		left := r.without(func(slice int) bool { return slice == in.slice })
		if l := out.left[i]; l != nil {
			left = r.trimmed(l.info, cut{in.slice, out.into, l.low})
		}
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
	for _, l := range out.runs {
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
	if err := t.work.persist(t, batch, out); err != nil {
		return nil, nil, err
	}
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
		free = append(free, removal{low: low, high: high, run: true})
	}
	t.store.janitor.remove(free)
}
