package shards

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/layout"
)

// foldWork counts the bytes that commits brought to a table and those that folds
// wrote for them, both as encoded, since the table was made: every fold's batch
// has them, so a crash loses the count of what came after the last fold.
type foldWork struct {
	ingested, folded atomic.Uint64
	steps            atomic.Uint64 // since the store was opened
	passed           atomic.Uint64 // blocks that folds copied as they were stored
	running          atomic.Int32
}

// arrived counts commits.
func (w *foldWork) arrived(prepared []*Prepared) {
	for _, p := range prepared {
		if p.listing != nil {
			w.ingested.Add(p.listing.bytes)
		}
		for i := range p.pieces {
			piece := &p.pieces[i]
			w.ingested.Add(uint64(len(piece.payload) + len(piece.keys.Data) + piece.keys.Len()*rowSuffix))
		}
	}
}

// rowSuffix is what a delta row's key has besides the primary key, and its value.
const rowSuffix = 8 + 2

func (w *foldWork) count(out *folded) {
	w.folded.Add(out.bytes())
	w.steps.Add(1)
}

func (o *folded) bytes() (n uint64) {
	for _, l := range o.runs {
		n += l.bytes
	}
	return n
}

const workFormat byte = 1

// persist puts the counts, as they are after a step, into its batch.
func (w *foldWork) persist(t *Table, batch *pebble.Batch, out *folded) error {
	value := newRecord(workFormat).number(w.ingested.Load()).number(w.folded.Load() + out.bytes()).seal()
	return batch.Set(layout.WorkKey(t.id), value, nil)
}

func (w *foldWork) load(t *Table) error {
	value, closer, err := t.store.db.Get(layout.WorkKey(t.id))
	if err == pebble.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	r := readRecord("work of folds", workFormat, value)
	w.ingested.Store(r.number())
	w.folded.Store(r.number())
	return r.done()
}

// FoldStats says what folds did for a table, how far they are behind, and how
// that slows its writes.
type FoldStats struct {
	Depth      int    // most runs over one key, at the folds' last look
	DeltaBytes uint64 // not folded yet
	Running    int    // steps that are being done now
	Steps      uint64 // since the store was opened
	// Bytes that commits brought, and that folds wrote, since the table was made.
	Ingested, Folded uint64
	// Commits that waited since the store was opened, how long in all, how long
	// one would wait now, and why; empty if it would not.
	Slowed    uint64
	SlowedFor time.Duration
	Delay     time.Duration
	Why       string
}

// Amplification is how often a byte that arrived was written in all; 0 if none
// did.
func (s FoldStats) Amplification() float64 {
	if s.Ingested == 0 {
		return 0
	}
	return float64(s.Ingested+s.Folded) / float64(s.Ingested)
}

// FoldStats is as of now. Nothing is read.
func (t *Table) FoldStats() FoldStats {
	s := FoldStats{
		Running: int(t.work.running.Load()), Steps: t.work.steps.Load(),
		Ingested: t.work.ingested.Load(), Folded: t.work.folded.Load(),
	}
	t.mu.Lock()
	delta := t.visible.delta
	t.mu.Unlock()
	var largest uint64
	for slice := range t.slices {
		_, size := delta.sizeOf(slice)
		s.DeltaBytes += size
		largest = max(largest, size)
	}
	t.folds.mu.Lock()
	defer t.folds.mu.Unlock()
	s.Depth = t.folds.depth
	s.Slowed, s.SlowedFor = t.folds.slowed, t.folds.slowedFor
	if t.store.folder.enabled() {
		s.Delay, s.Why = t.store.policy.delay(s.Depth, largest)
	}
	return s
}
