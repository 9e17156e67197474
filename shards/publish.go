package shards

import (
	"context"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// Progress is what a client's stream has brought so far under a resume id.
type Progress struct{ Batches, Rows uint64 }

// Position is how far the stream with a resume id has come.
type Position struct {
	Resume string // not empty; see CheckResume
	Progress
}

// PublishOptions go with a commit into its batch.
type PublishOptions struct {
	// Positions become durable together with the commit: several streams may share
	// one. An id occurs at most once.
	Positions []Position
	// Replace makes the prepared commits the table's whole content.
	Replace bool
	// Applied, if not nil, is called when the commit has its place behind all
	// before it and only its sync is waited for.
	Applied func()
}

// maxResumeBytes bounds a resume id, which becomes part of a key.
const maxResumeBytes = 1024

// CheckResume refuses a resume id that is too long: RESUME_INVALID.
func CheckResume(id string) error {
	if len(id) > maxResumeBytes {
		return fault.Invalid("RESUME_INVALID", "a resume id has at most %d bytes, not %d", maxResumeBytes, len(id))
	}
	return nil
}

// pendingVersion is a version that is applied and waits for its sync.
type pendingVersion struct {
	version *version
	garbage []garbage
	synced  bool
	shown   chan struct{} // closed when the version is visible
}

// Publish makes prepared commits one step of the table: durable and visible, all
// at once, when it returns. Each prepared commit gets a number of its own, rows
// of later ones win; the last is returned. With nothing prepared and neither
// Positions nor Replace it does nothing and returns the newest commit.
//
// Errors: TABLE_NOT_FOUND after a drop; SCHEMA_CHANGED (Aborted) if the schema
// moved on since Prepare: prepare again; STORE_READ_ONLY, after which it is not
// known whether the commit will be there after a restart. ctx ends only waits
// before the commit is applied. After success the Prepared are used up, after an
// error they are still the caller's to Discard.
func (t *Table) Publish(ctx context.Context, prepared []*Prepared, o PublishOptions) (commit uint64, err error) {
	for _, position := range o.Positions {
		if err := CheckResume(position.Resume); err != nil {
			return 0, err
		}
	}
	if err := t.folds.slowDown(ctx, t, prepared); err != nil {
		return 0, err
	}
	if len(prepared) == 0 && len(o.Positions) == 0 && !o.Replace {
		return t.applied(), t.ready()
	}
	p, batch, err := t.applyCommit(prepared, o)
	if err != nil {
		return 0, err
	}
	if o.Applied != nil {
		o.Applied()
	}
	if err := t.settle(p, batch); err != nil {
		return 0, err
	}
	for _, one := range prepared {
		one.published = true
	}
	t.folds.wake(t, prepared)
	if len(o.Positions) > 0 {
		if err := t.forgetPositions(len(o.Positions)); err != nil {
			t.store.logger.Warn("old resume ids could not be forgotten now", "table", t.name.String(), "error", err)
		}
	}
	return p.version.commit, nil
}

// ready says whether commits can be taken at all.
func (t *Table) ready() error {
	t.mu.Lock()
	dropped := t.dropped
	t.mu.Unlock()
	switch {
	case dropped:
		return t.gone()
	case t.store.options.ReadOnly:
		return readOnly()
	}
	return t.store.failure.get()
}

func readOnly() error {
	return fault.New(fault.FailedPrecondition, "STORE_READ_ONLY", "the store was opened read-only: it takes no writes")
}

// applied is the newest commit applied, visible or not.
func (t *Table) applied() uint64 {
	t.commits.Lock()
	defer t.commits.Unlock()
	return t.head.commit
}

// applyCommit is the publish section of a commit.
func (t *Table) applyCommit(prepared []*Prepared, o PublishOptions) (*pendingVersion, *pebble.Batch, error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	if err := t.ready(); err != nil {
		return nil, nil, err
	}
	for _, one := range prepared {
		if one.table != t {
			return nil, nil, fmt.Errorf("BUG: a commit prepared for %s is published to %s", one.table.label(), t.label())
		}
		if one.schema.Version != t.head.schema.Version {
			return nil, nil, fault.New(fault.Aborted, "SCHEMA_CHANGED",
				"the schema of table %s was altered meanwhile: nothing of this commit was written, send it again", t.name)
		}
	}
	p := &pendingVersion{version: t.head.next(), shown: make(chan struct{})}
	batch := t.store.db.NewBatch()
	delta := &deltaWriter{table: t, batch: batch, version: p.version}
	err := t.fillBatch(batch, p, delta, prepared, o)
	if err == nil {
		err = t.apply(p, batch)
	}
	if err != nil {
		return nil, nil, err
	}
	delta.count()
	return p, batch, nil
}

func (t *Table) fillBatch(batch *pebble.Batch, p *pendingVersion, delta *deltaWriter, prepared []*Prepared, o PublishOptions) error {
	next := p.version
	if o.Replace {
		if err := t.unlistAll(batch, p); err != nil {
			return err
		}
		if len(prepared) == 0 {
			next.commit++ // emptying a table is a commit too
		}
	}
	var added []*tableRun
	for _, one := range prepared {
		next.commit++
		if one.listing == nil {
			if err := delta.write(one, next.commit); err != nil {
				return err
			}
			continue
		}
		r, err := t.list(batch, one, next)
		if err != nil {
			return err
		}
		added = append(added, r)
	}
	if len(added) > 0 {
		next.runs = next.runs.with(nil, added)
	}
	if err := delta.finish(); err != nil {
		return err
	}
	for _, position := range o.Positions {
		if err := batch.Set(layout.StreamKey(t.id, position.Resume), encodeStream(position.Progress, next.commit), nil); err != nil {
			return err
		}
	}
	return batch.Set(layout.CommitKey(t.id), encodeCommit(next.commit), nil)
}

// list puts a prepared run's manifest entry into the batch.
func (t *Table) list(batch *pebble.Batch, one *Prepared, next *version) (*tableRun, error) {
	l := *one.listing
	l.commit = next.commit
	if one.asOf != 0 {
		l.commit = one.asOf
	}
	if !l.perRow {
		l.least, l.greatest = l.commit, l.commit
	}
	r, err := t.open(&l, next.epoch)
	if err != nil {
		return nil, err
	}
	return r, batch.Set(layout.RunKey(t.id, l.id), l.encode(), nil)
}

// unlistAll empties the version: runs and generations become garbage.
func (t *Table) unlistAll(batch *pebble.Batch, p *pendingVersion) error {
	v := p.version
	for _, r := range v.runs.list {
		p.garbage = append(p.garbage, t.runGarbage(r, v.epoch))
		if err := batch.Delete(layout.RunKey(t.id, r.id), nil); err != nil {
			return err
		}
	}
	empty := &deltaSet{bySlice: make([][]*generation, t.slices)}
	for slice, list := range v.delta.bySlice {
		if len(list) == 0 {
			continue
		}
		for _, g := range list {
			g.frozen = true
			p.garbage = append(p.garbage, t.generationGarbage(g, v.epoch))
		}
		if err := batch.Delete(layout.GensKey(t.id, slice), nil); err != nil {
			return err
		}
	}
	v.runs, v.delta, v.entries, v.tombstones = &runSet{}, empty, 0, 0
	return nil
}

// apply writes a batch to Pebble's log and memtable without waiting for the
// disk, and makes its version the head. The caller holds t.commits.
func (t *Table) apply(p *pendingVersion, batch *pebble.Batch) error {
	err := t.store.guard("applying a commit", func() error {
		return t.store.db.ApplyNoSyncWait(batch, pebble.Sync)
	})
	if err != nil {
		// Whatever the reason, the log may hold the batch or a part of it.
		t.store.failure.latch(err)
		return t.store.failure.get()
	}
	t.head = p.version
	t.mu.Lock()
	t.pending = append(t.pending, p)
	t.mu.Unlock()
	return nil
}

// settle waits until the batch is on disk and its version visible. Batches of a
// table lie in the log in the order of their versions, so a later sync covers
// the earlier ones; they become visible in that order too.
func (t *Table) settle(p *pendingVersion, batch *pebble.Batch) error {
	err := t.store.guard("syncing a commit", batch.SyncWait)
	if err != nil {
		t.store.failure.latch(err)
		return t.store.failure.get()
	}
	_ = batch.Close() // only gives memory back
	t.mu.Lock()
	p.synced = true
	free := t.showLocked()
	t.mu.Unlock()
	t.store.janitor.remove(free)
	select {
	case <-p.shown:
		return nil
	case <-t.store.failure.failed:
		return t.store.failure.get()
	}
}

// showLocked makes synced versions visible, oldest first.
func (t *Table) showLocked() []removal {
	n := 0
	for n < len(t.pending) && t.pending[n].synced {
		p := t.pending[n]
		t.live.add(p.version.epoch)
		t.live.remove(t.visible.epoch)
		t.visible = p.version
		t.garbage = append(t.garbage, p.garbage...)
		close(p.shown)
		n++
	}
	t.pending = slices.Delete(t.pending, 0, n)
	if n == 0 {
		return nil
	}
	return t.collectLocked()
}

// drain returns when everything applied so far is visible.
func (t *Table) drain() error {
	t.mu.Lock()
	var last *pendingVersion
	if n := len(t.pending); n > 0 {
		last = t.pending[n-1]
	}
	t.mu.Unlock()
	if last == nil {
		return nil
	}
	select {
	case <-last.shown:
		return nil
	case <-t.store.failure.failed:
		return t.store.failure.get()
	}
}

// ResumePosition is what is durable under a resume id, and the commit that made
// it so; zeros if the id was never used. What is not synced yet is waited for:
// it is read first, and all that was applied when it was read is drained after.
func (t *Table) ResumePosition(id string) (p Progress, commit uint64, err error) {
	if p, commit, err = t.appliedPosition(id); err == nil {
		err = t.drain()
	}
	if err != nil {
		return Progress{}, 0, err
	}
	return p, commit, nil
}

func (t *Table) appliedPosition(id string) (p Progress, commit uint64, err error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	value, closer, err := t.store.db.Get(layout.StreamKey(t.id, id))
	if err == pebble.ErrNotFound {
		return Progress{}, 0, nil
	}
	if err != nil {
		return Progress{}, 0, err
	}
	defer closer.Close()
	return decodeStream(value)
}
