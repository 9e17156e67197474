package shards

import (
	"slices"
	"sync"
	"time"

	"github.com/sheaf-db/sheaf/fault"
)

// reads is the snapshots of a store that scans were started on, and those that
// scans hold themselves. One on which nothing happens for patience is given up: a
// client that vanished, or takes no rows, must not keep runs on disk for ever.
type reads struct {
	patience time.Duration
	mu       sync.Mutex
	open     map[*Snapshot]struct{}
	stop     chan struct{}
	ended    sync.WaitGroup
}

// readsLook is how often idle reads are looked for.
const readsLook = 10 * time.Second

func newReads() *reads {
	return &reads{patience: DefaultPinTime, open: map[*Snapshot]struct{}{}, stop: make(chan struct{})}
}

func (r *reads) start() {
	r.ended.Add(1)
	go func() {
		defer r.ended.Done()
		ticker := time.NewTicker(readsLook)
		defer ticker.Stop()
		for {
			select {
			case <-r.stop:
				return
			case now := <-ticker.C:
				r.sweep(now)
			}
		}
	}()
}

func (r *reads) close() {
	close(r.stop)
	r.ended.Wait()
}

func (r *reads) add(s *Snapshot) {
	s.used.Store(time.Now().UnixNano())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[s] = struct{}{}
}

func (r *reads) remove(s *Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, s)
}

// sweep gives up what was not used for patience.
func (r *reads) sweep(now time.Time) {
	r.mu.Lock()
	var idle []*Snapshot
	for s := range r.open {
		if now.Sub(s.lastUse()) >= r.patience {
			idle = append(idle, s)
		}
	}
	r.mu.Unlock()
	for _, s := range idle {
		switch {
		case s.scan == nil:
			s.Release()
		default:
			s.scan.expire()
		}
	}
}

func (s *Snapshot) lastUse() time.Time { return time.Unix(0, s.used.Load()) }

// use notes that a scan of the snapshot is at work.
func (s *Snapshot) use() {
	now := time.Now().UnixNano()
	for ; s != nil; s = s.parent {
		s.used.Store(now)
	}
}

func expired() error {
	return fault.New(fault.Aborted, "SCAN_EXPIRED",
		"nobody took rows of this read for %v, so its snapshot was given up: ask again", DefaultPinTime)
}

// expire gives up a scan that nobody uses; one that is at work is left alone.
func (sc *Scan) expire() {
	if !sc.mu.TryLock() {
		return
	}
	defer sc.mu.Unlock()
	if sc.closed {
		return
	}
	sc.stop(expired())
	sc.snapshot.Release()
}

// Hold is one reason why runs and delta that the table does not list any more
// stay on disk.
type Hold struct {
	By          string // "ticket": a pinned snapshot; "scan": a running read
	ID          string // of a pinned snapshot
	Commit      uint64
	Age         time.Duration
	Expires     time.Time // unless it is used before
	PinnedBytes uint64    // runs and delta on disk only for snapshots held
}

// Holds is the table's pinned snapshots and running reads, oldest first.
func (t *Table) Holds() []Hold {
	var list []Hold
	for _, p := range t.Pins() {
		list = append(list, Hold{"ticket", p.ID, p.Commit, p.Age, p.Expires, p.PinnedBytes})
	}
	r := t.store.reads
	r.mu.Lock()
	var open []*Snapshot
	for s := range r.open {
		if s.table == t && s.parent == nil {
			open = append(open, s)
		}
	}
	r.mu.Unlock()
	for _, s := range open {
		list = append(list, Hold{"scan", "", s.version.commit, time.Since(s.made), s.lastUse().Add(r.patience), t.pinnedBytes(s.version.epoch)})
	}
	slices.SortFunc(list, func(a, b Hold) int { return int(b.Age - a.Age) })
	return list
}
