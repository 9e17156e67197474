package shards

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

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
	size      uint64 // of a generation, about
}

func (t *Table) runGarbage(r *tableRun, gone uint64) garbage {
	low, high := layout.RunSpan(t.id, r.id)
	return garbage{born: r.born, gone: gone, size: r.bytes, removal: removal{low: low, high: high, run: true}}
}

func (t *Table) generationGarbage(g *generation, gone uint64) garbage {
	low, high := layout.GenerationSpan(t.id, g.slice, g.number)
	return garbage{born: g.born, gone: gone, size: g.size.Load(), removal: removal{low: low, high: high, size: g.size.Load()}}
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

	// What was removed of the delta still lies in memtable, log and upper levels
	// until a flush has written that it is gone.
	unflushed uint64
	flush     *time.Timer
	flushing  bool
	low, high []byte // around what was removed since the last compaction
	ctx       context.Context
	cancel    context.CancelFunc
}

const (
	// flushAfter so much of the delta was removed a memtable is flushed at once, of
	// less, above flushIdle, when nothing was removed for flushWait.
	flushAfter = memtableBytes
	flushIdle  = 256 << 10
	flushWait  = time.Second
)

func newJanitor(s *Store) *janitor {
	j := &janitor{store: s}
	j.ctx, j.cancel = context.WithCancel(context.Background())
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
		for _, r := range list {
			j.note(r)
		}
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
	j.flushLocked()
}

// note keeps in mind what is removed of the delta; the caller holds mu.
func (j *janitor) note(r removal) {
	if r.run {
		return
	}
	j.unflushed += r.size
	if j.low == nil || bytes.Compare(r.low, j.low) < 0 {
		j.low = r.low
	}
	if bytes.Compare(r.high, j.high) > 0 {
		j.high = r.high
	}
}

// flushLocked sees to it that what was removed of the delta leaves the disk.
func (j *janitor) flushLocked() {
	switch {
	case j.stop || j.unflushed < flushIdle:
	case j.unflushed >= flushAfter:
		j.unflushed = 0
		go j.flushNow(nil, nil)
	case j.flush == nil:
		j.flush = time.AfterFunc(flushWait, func() {
			j.mu.Lock()
			due := !j.stop && !j.busy && j.unflushed >= flushIdle
			low, high := j.low, j.high
			if due {
				j.unflushed, j.low, j.high = 0, nil, nil
			}
			j.mu.Unlock()
			if due {
				j.flushNow(low, high)
			}
		})
	default:
		j.flush.Reset(flushWait)
	}
}

// flushNow starts a flush; with a span of removed delta, when nothing else goes
// on, it also compacts what is left of it below.
func (j *janitor) flushNow(low, high []byte) {
	j.mu.Lock()
	if j.stop || j.flushing {
		j.mu.Unlock()
		return
	}
	j.flushing = true // close waits
	j.mu.Unlock()
	err := j.store.guard("flushing removed delta", func() error {
		done, err := j.store.db.AsyncFlush()
		if err != nil || low == nil {
			return err
		}
		select {
		case <-done:
		case <-j.ctx.Done():
			return nil
		}
		return j.store.db.Compact(j.ctx, low, high, false)
	})
	if err != nil && j.ctx.Err() == nil {
		j.store.logger.Warn("removed delta could not be flushed now", "error", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.flushing = false
	j.idle.Broadcast()
}

// wait returns when nothing is left to remove.
func (j *janitor) wait() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.busy || j.flushing {
		j.idle.Wait()
	}
}

// close ends the work after what is being removed just now.
func (j *janitor) close() {
	j.mu.Lock()
	j.stop = true
	j.cancel()
	if j.flush != nil {
		j.flush.Stop()
	}
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
			free = append(free, removal{low: low, high: high, run: true})
		} else if t.head.runs.find(run) == nil {
			free = append(free, removal{low: low, high: high, run: true})
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
			free = append(free, removal{low: low, high: high})
		} else if !t.listsGeneration(slice, number) {
			free = append(free, removal{low: low, high: high})
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
