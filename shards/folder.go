package shards

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sheaf-db/sheaf/fault"
)

// folds is a table's share of the background work.
type folds struct {
	latches latches // one fold at a time in a slice

	mu      sync.Mutex
	dirty   bool              // something was written since the last look
	retryAt map[int]time.Time // slices whose fold failed
	depth   int               // most runs over one key, at the last look
	rest    time.Time         // no look before: looks take a small share of a core
	moved   chan struct{}     // closed and replaced when a fold ends

	slowed    uint64 // commits that waited, and how long in all
	slowedFor time.Duration
}

func (f *folds) init(slices int) {
	f.latches = newLatches(slices)
	f.retryAt = map[int]time.Time{}
	f.moved = make(chan struct{})
	f.dirty = true
}

// retryFold is how long a slice whose fold failed is left alone: long enough
// that a damaged block does not keep a core busy, short enough that freed disk
// space is used.
const retryFold = 30 * time.Second

// wake tells the folder that a table was written to.
func (f *folds) wake(t *Table, prepared []*Prepared) {
	if len(prepared) == 0 {
		return
	}
	t.work.arrived(prepared)
	t.store.pace.used()
	f.touch()
	t.store.folder.signal()
}

// touch asks for a look at the table.
func (f *folds) touch() {
	f.mu.Lock()
	f.dirty = true
	f.mu.Unlock()
}

func (f *folds) ended(slice int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty = true
	if err != nil && !errors.Is(err, errFoldStale) {
		f.retryAt[slice] = time.Now().Add(retryFold)
	}
	close(f.moved)
	f.moved = make(chan struct{})
}

// lookShare is how many times as long as a look took the next one waits, if
// there was nothing to do: many small commits are not each worth a look.
const lookShare = 20

// takeDirty reports whether the table wants a look, and if not yet, when.
func (f *folds) takeDirty() (look bool, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirty {
		return false, 0
	}
	if wait = time.Until(f.rest); wait > 0 {
		return false, wait
	}
	f.dirty = false
	return true, 0
}

// folder is the background work of a store: workers that look at tables that
// were written to, ask the policy, and fold.
type folder struct {
	store   *Store
	workers sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
	work    chan struct{} // holds a token when there may be something to do
}

func newFolder(s *Store) *folder {
	f := &folder{store: s, work: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

func (f *folder) enabled() bool {
	return f.store.options.FoldConcurrency >= 0 && !f.store.options.ReadOnly
}

func (f *folder) start() {
	if !f.enabled() {
		return
	}
	n := f.store.options.FoldConcurrency
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	for range n {
		f.workers.Add(1)
		go f.loop()
	}
	f.signal()
}

func (f *folder) signal() {
	select {
	case f.work <- struct{}{}:
	default:
	}
}

func (f *folder) close() {
	f.cancel()
	f.workers.Wait()
}

func (f *folder) loop() {
	defer f.workers.Done()
	retry := time.NewTicker(retryFold)
	defer retry.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.store.failure.failed:
			return
		case <-f.work:
			f.round(false)
		case <-retry.C:
			f.round(true)
		}
	}
}

// round looks at every dirty table (or once at all), in turns, until the policy
// wants nothing.
func (f *folder) round(all bool) {
	for busy := true; busy; all = false {
		busy = false
		for _, t := range f.store.Tables("") {
			look, wait := t.folds.takeDirty()
			if wait > 0 {
				time.AfterFunc(wait, f.signal)
			}
			if !look && !all {
				continue
			}
			if f.ctx.Err() != nil || f.store.failure.get() != nil {
				return
			}
			busy = true
			f.foldTable(t)
		}
	}
}

// foldTable does one step of what the policy wants of a table now, while other
// workers do others.
func (f *folder) foldTable(t *Table) {
	picks := t.plan()
	for i, pick := range picks {
		unlock := t.folds.tryLatch(pick.slice)
		if unlock == nil {
			continue // another worker folds it and will look again
		}
		if i+1 < len(picks) {
			t.folds.touch()
			f.signal()
		}
		t.work.running.Add(1)
		_, err := t.foldStep(f.ctx, pick)
		t.work.running.Add(-1)
		unlock()
		t.folds.ended(pick.slice, err)
		switch {
		case f.ctx.Err() != nil:
		case err == nil:
			f.store.logger.Debug("folded", "table", t.name.String(), "slice", pick.slice, "runs", len(pick.runs), "why", pick.why)
		case fault.Is(err, "TABLE_NOT_FOUND"), errors.Is(err, errFoldStale):
		default:
			f.store.logger.Warn("a fold failed and will be tried again", "table", t.name.String(), "slice", pick.slice, "error", err)
		}
		return
	}
}

// plan asks the policy, leaving out slices that failed not long ago.
func (t *Table) plan() []foldPick {
	began := time.Now()
	s, err := t.Snapshot()
	if err != nil {
		return nil // dropped
	}
	defer s.Release()
	var all []slicePieces
	most := 0
	for slice := range t.slices {
		p := s.pieces(slice)
		most = max(most, len(deepest(p.runs)))
		all = append(all, p)
	}
	picks := t.store.policy.planFolds(all)
	t.folds.mu.Lock()
	defer t.folds.mu.Unlock()
	t.folds.depth = most
	picks = slices.DeleteFunc(picks, func(p foldPick) bool { return time.Now().Before(t.folds.retryAt[p.slice]) })
	if len(picks) == 0 {
		t.folds.rest = time.Now().Add(lookShare * time.Since(began))
	}
	return picks
}

// tryLatch takes a slice's fold latch if nobody has it.
func (f *folds) tryLatch(slice int) (unlock func()) {
	if !f.latches[slice].TryAcquire(latchUnits) {
		return nil
	}
	return func() { f.latches[slice].Release(latchUnits) }
}
