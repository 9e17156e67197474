package shards

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Snapshot is one version of a table, held: what it lists stays on disk until
// Release. It is safe for concurrent use.
type Snapshot struct {
	table   *Table
	version *version
	release sync.Once
	made    time.Time

	released bool // guarded by the table's mu
	// Of reads (reads.go): when it was used last, and of a scan's own hold the
	// scan and the snapshot that it was started on.
	used   atomic.Int64
	read   atomic.Bool
	scan   *Scan
	parent *Snapshot
}

// Snapshot holds the newest visible version. The caller calls Release. After
// DropTable the error is TABLE_NOT_FOUND.
func (t *Table) Snapshot() (*Snapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.visible.gone {
		return nil, t.gone()
	}
	return t.holdLocked(t.visible), nil
}

// holdLocked refers to a version that is live already; the caller holds t.mu,
// so that no garbage leaves between the look at the version and the hold.
func (t *Table) holdLocked(v *version) *Snapshot {
	t.live.add(v.epoch)
	return &Snapshot{table: t, version: v, made: time.Now()}
}

// hold is one more hold of the same version, released on its own; nil if s was
// released, or given up since nobody used it.
func (s *Snapshot) hold() *Snapshot {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.released {
		return nil
	}
	return s.table.holdLocked(s.version)
}

// Release gives the snapshot up. It may be called more than once.
func (s *Snapshot) Release() {
	s.release.Do(func() {
		var free []removal
		if s.read.Load() {
			s.table.store.reads.remove(s)
		}
		s.table.mu.Lock()
		s.released = true
		if s.table.live.remove(s.version.epoch) {
			free = s.table.collectLocked()
		}
		s.table.mu.Unlock()
		s.table.store.janitor.remove(free)
	})
}

// Table is the table that this is a snapshot of.
func (s *Snapshot) Table() *Table { return s.table }

// Schema is the schema as of the snapshot.
func (s *Snapshot) Schema() *Schema { return s.version.schema }

// Commit is the number of the newest commit that the snapshot sees, 0 if none.
func (s *Snapshot) Commit() uint64 { return s.version.commit }

// liveEpochs counts the holds of each version, sorted by epoch.
type liveEpochs struct {
	epochs []uint64
	holds  []int
}

func (l *liveEpochs) at(epoch uint64) int {
	return sort.Search(len(l.epochs), func(i int) bool { return l.epochs[i] >= epoch })
}

func (l *liveEpochs) add(epoch uint64) {
	i := l.at(epoch)
	if i == len(l.epochs) || l.epochs[i] != epoch {
		l.epochs = append(l.epochs, 0)
		l.holds = append(l.holds, 0)
		copy(l.epochs[i+1:], l.epochs[i:])
		copy(l.holds[i+1:], l.holds[i:])
		l.epochs[i], l.holds[i] = epoch, 0
	}
	l.holds[i]++
}

// remove reports whether that was the last hold of the version.
func (l *liveEpochs) remove(epoch uint64) bool {
	i := l.at(epoch)
	l.holds[i]--
	if l.holds[i] > 0 {
		return false
	}
	l.epochs = append(l.epochs[:i], l.epochs[i+1:]...)
	l.holds = append(l.holds[:i], l.holds[i+1:]...)
	return true
}

// any reports whether a version in [born, gone) is held.
func (l *liveEpochs) any(born, gone uint64) bool {
	i := l.at(born)
	return i < len(l.epochs) && l.epochs[i] < gone
}
