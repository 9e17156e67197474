package shards

import (
	"context"
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/layout"
)

// garbage is a run or a generation that the visible version does not list any
// more: it leaves the disk when no held version from born up to gone is left.
type garbage struct {
	born, gone uint64
	size       uint64
	removal    removal
}

// removal says what leaves the disk: a run's range, by excise, or a
// generation's, by DeleteRange.
type removal struct {
	low, high []byte
	run       bool
}

func (t *Table) runGarbage(r *tableRun, gone uint64) garbage {
	low, high := layout.RunSpan(t.id, r.id)
	return garbage{born: r.born, gone: gone, size: r.bytes, removal: removal{low, high, true}}
}

func (t *Table) generationGarbage(g *generation, gone uint64) garbage {
	low, high := layout.GenerationSpan(t.id, g.slice, g.number)
	return garbage{born: g.born, gone: gone, size: g.size.Load(), removal: removal{low, high, false}}
}

// collectLocked takes out of t.garbage what nobody can read any more.
func (t *Table) collectLocked() []removal {
	var free []removal
	kept := t.garbage[:0]
	for _, g := range t.garbage {
		if t.live.any(g.born, g.gone) {
			kept = append(kept, g)
		} else {
			free = append(free, g.removal)
		}
	}
	t.garbage = kept
	return free
}

// janitor removes garbage in the background: an excise syncs Pebble's manifest,
// which no commit and no reader should wait for. What it has not done when the
// store closes is found unlisted by the next start.
type janitor struct {
	store *Store
	mu    sync.Mutex
	queue []removal
	busy  bool
	idle  *sync.Cond
	stop  bool
}

func newJanitor(s *Store) *janitor {
	j := &janitor{store: s}
	j.idle = sync.NewCond(&j.mu)
	return j
}

func (j *janitor) remove(list []removal) {
	if len(list) == 0 || j.store.options.ReadOnly {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stop {
		return
	}
	j.queue = append(j.queue, list...)
	if !j.busy {
		j.busy = true
		go j.work()
	}
}

// eraseAtOnce is how many removals a closing store may have to wait for.
const eraseAtOnce = 16

func (j *janitor) work() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 && !j.stop {
		list := j.queue[:min(len(j.queue), eraseAtOnce)]
		j.queue = j.queue[len(list):]
		j.mu.Unlock()
		err := j.store.erase(list)
		j.mu.Lock()
		if err != nil {
			// Unlisted as it is, the next start finds it.
			j.store.logger.Warn("garbage could not be removed now", "error", err)
		}
	}
	j.busy = false
	j.idle.Broadcast()
}

// wait returns when nothing is left to remove.
func (j *janitor) wait() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.busy {
		j.idle.Wait()
	}
}

// close ends the work after what is being removed just now.
func (j *janitor) close() {
	j.mu.Lock()
	j.stop = true
	j.mu.Unlock()
	j.wait()
}

// erase removes ranges from the disk. It need not be durable: what a crash
// brings back is still unlisted.
func (s *Store) erase(list []removal) error {
	batch := s.db.NewBatch()
	var errs []error
	for _, r := range list {
		if !r.run {
			errs = append(errs, batch.DeleteRange(r.low, r.high, nil))
			continue
		}
		errs = append(errs, s.guard("removing a run", func() error {
			return s.db.Excise(context.Background(), pebble.KeyRange{Start: r.low, End: r.high})
		}))
	}
	if !batch.Empty() {
		errs = append(errs, s.guard("removing a delta generation", func() error {
			return s.db.Apply(batch, pebble.NoSync)
		}))
	}
	return errors.Join(errs...)
}

// sweep removes at the start what nobody lists: run by run and generation by
// generation, each found by one seek behind the one before.
func (s *Store) sweep(tables map[uint64]*Table) error {
	var free []removal
	err := s.hop([]byte{layout.RegionRun}, []byte{layout.RegionEnd}, func(key []byte) ([]byte, error) {
		table, run, err := layout.SplitRunRegion(key)
		if err != nil {
			return nil, err
		}
		low, high := layout.RunSpan(table, run)
		if t := tables[table]; t == nil {
			low, high = layout.RunTableSpan(table)
			free = append(free, removal{low, high, true})
		} else if t.head.runs.find(run) == nil {
			free = append(free, removal{low, high, true})
		}
		return high, nil
	})
	if err != nil {
		return err
	}
	err = s.hop([]byte{layout.RegionDelta}, []byte{layout.RegionRun}, func(key []byte) ([]byte, error) {
		table, slice, number, err := layout.SplitDeltaRegion(key)
		if err != nil {
			return nil, err
		}
		low, high := layout.GenerationSpan(table, slice, number)
		if t := tables[table]; t == nil {
			low, high = layout.DeltaTableSpan(table)
			free = append(free, removal{low, high, false})
		} else if !t.listsGeneration(slice, number) {
			free = append(free, removal{low, high, false})
		}
		return high, nil
	})
	if err != nil {
		return err
	}
	if len(free) > 0 {
		s.logger.Info("removing what no manifest lists", "ranges", len(free))
	}
	return s.erase(free)
}

func (t *Table) listsGeneration(slice int, number uint64) bool {
	if slice >= t.slices {
		return false
	}
	for _, g := range t.head.delta.of(slice) {
		if g.number == number {
			return true
		}
	}
	return false
}

// hop walks a region in leaps: at looks at a key and says where to go on.
func (s *Store) hop(low, high []byte, at func(key []byte) (next []byte, err error)) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
	}()
	for ok := it.First(); ok; {
		next, err := at(it.Key())
		if err != nil {
			return err
		}
		ok = it.SeekGE(next)
	}
	return it.Error()
}
