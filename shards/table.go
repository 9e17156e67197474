package shards

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Table is an open table. It is safe for concurrent use; after DropTable every
// method fails with TABLE_NOT_FOUND while scans that run go on.
type Table struct {
	store   *Store
	id      uint64
	name    Name
	slices  int
	latches latches
	key     run.KeyColumns

	// commits is the publish section: it orders commit numbers and batches.
	// entry, head and frozen flags of generations change under it.
	commits sync.Mutex
	entry   *entry
	head    *version // newest applied, maybe not yet durable

	schemas atomic.Pointer[map[uint32]*Schema] // by version

	// mu guards what follows. It is never held over I/O.
	mu      sync.Mutex
	visible *version // newest durable
	pending []*pendingVersion
	live    liveEpochs
	garbage []garbage
	dropped bool // takes no more commits; the visible version tells readers

	folds folds
	work  foldWork

	resumed atomic.Uint64 // positions of streams that commits brought
}

func newTable(s *Store, id uint64, e *entry) *Table {
	schema := e.current()
	t := &Table{store: s, id: id, name: e.name, slices: schema.Slices, latches: newLatches(schema.Slices), entry: e}
	for _, c := range schema.KeyColumns() {
		t.key.IDs = append(t.key.IDs, schema.Columns[c].ID)
	}
	t.key.Types = schema.KeyTypes()
	if !schema.HiddenID { // hidden ids never overlap, so a filter would tell nothing
		t.key.Sharding = len(schema.Sharding)
	}
	t.setSchemas(e)
	t.folds.init(schema.Slices)
	return t
}

func (t *Table) setSchemas(e *entry) {
	byVersion := make(map[uint32]*Schema, len(e.schemas))
	for _, s := range e.schemas {
		byVersion[s.Version] = s
	}
	t.schemas.Store(&byVersion)
}

// ID is the table's id, never reused.
func (t *Table) ID() uint64 { return t.id }

// Name is the table's name.
func (t *Table) Name() Name { return t.name }

// Schema is the newest schema.
func (t *Table) Schema() *Schema {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visible.schema
}

// LeaseIDs takes n hidden ids that nobody else ever gets: first, first+1, …
func (t *Table) LeaseIDs(n uint64) (first uint64, err error) { return t.store.hiddenIDs.take(n) }

// Latch takes the latches of slices, in slice order: shared for upserts and
// deletes, exclusive for modes that look first, from the look until Publish has
// returned. The error is ctx's.
func (t *Table) Latch(ctx context.Context, slices []int, exclusive bool) (unlock func(), err error) {
	return t.latches.lock(ctx, slices, exclusive)
}

// label names the table in errors of lower layers.
func (t *Table) label() string { return fmt.Sprintf("table %q", t.name) }

func (t *Table) gone() error {
	return fault.New(fault.NotFound, "TABLE_NOT_FOUND", "table %s was dropped", t.name)
}

// schemaVersion is a version of the schema that something on disk names.
func (t *Table) schemaVersion(version uint32) (*Schema, error) {
	if s := (*t.schemas.Load())[version]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%s has no schema version %d, which its data names", t.label(), version)
}

// open makes a listed run readable.
func (t *Table) open(l *listing, born uint64) (*tableRun, error) {
	schema, err := t.schemaVersion(l.schema)
	if err != nil {
		return nil, err
	}
	r := run.Open(run.Options{
		DB: t.store.db, Cache: t.store.tails, Table: t.id, Run: l.id, Key: t.key, Stored: schema.CanonicalByID,
		Version: l.commit, PerRow: l.perRow, Least: l.least, Greatest: l.greatest, Label: t.label(),
	})
	return &tableRun{listing: l, born: born, run: r}, nil
}

// load reads what is listed at the start.
func (t *Table) load() error {
	v := &version{epoch: 1, schema: t.entry.current(), runs: &runSet{}, delta: &deltaSet{bySlice: make([][]*generation, t.slices)}}
	value, closer, err := t.store.db.Get(layout.CommitKey(t.id))
	switch {
	case err == nil:
		v.commit, err = decodeCommit(value)
		closer.Close()
		if err != nil {
			return err
		}
	case err != pebble.ErrNotFound:
		return err
	}
	low, high := layout.RunsSpan(t.id)
	err = t.store.each(low, high, func(key, value []byte) error {
		_, id, err := layout.SplitRunKey(key)
		if err != nil {
			return err
		}
		l, err := decodeListing(id, value)
		if err == nil && l.of != t.slices {
			err = fmt.Errorf("it was written with %d slices, the table has %d", l.of, t.slices)
		}
		if err != nil {
			return fmt.Errorf("%s, run %d: %w", t.label(), id, err)
		}
		r, err := t.open(l, v.epoch)
		v.runs.list = append(v.runs.list, r)
		return err
	})
	if err != nil {
		return err
	}
	for slice := range t.slices {
		if err := t.loadGenerations(v, slice); err != nil {
			return err
		}
	}
	t.head, t.visible = v, v
	t.live.add(v.epoch)
	return t.work.load(t)
}

func (t *Table) loadGenerations(v *version, slice int) error {
	value, closer, err := t.store.db.Get(layout.GensKey(t.id, slice))
	if err == pebble.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	list, err := decodeGenerations(value)
	if err != nil {
		return fmt.Errorf("%s, slice %d: %w", t.label(), slice, err)
	}
	for i, c := range list {
		g := &generation{slice: slice, number: c.number, born: v.epoch, frozen: i < len(list)-1}
		g.entries.Store(c.entries)
		g.tombstones.Store(c.tombstones)
		g.size.Store(c.size)
		v.delta.bySlice[slice] = append(v.delta.bySlice[slice], g)
		v.entries += c.entries
		v.tombstones += c.tombstones
	}
	return nil
}

// each calls do for every key-value in [low, high); both alias Pebble's memory.
func (s *Store) each(low, high []byte, do func(key, value []byte) error) (err error) {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: low, UpperBound: high})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := it.Close(); err == nil {
			err = closeErr
		}
	}()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := do(it.Key(), value); err != nil {
			return err
		}
	}
	return it.Error()
}
