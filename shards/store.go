package shards

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/semaphore"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Options of a store. The zero value is usable.
type Options struct {
	FS              vfs.FS           // nil: the operating system's
	Memory          budget.Shares    // of caches and memtables; zero: of 512 MiB
	Logger          *slog.Logger     // nil: nothing is logged
	ReadOnly        bool             // every write is refused, nothing is folded or removed
	FoldConcurrency int              // background folds at a time; 0: one a core; below 0: none by themselves
	FoldBytes       int64            // bytes a second that folds may move beside reads and writes; 0: 16 MiB a core; below 0: no limit
	Allocator       memory.Allocator // Arrow memory of commits and folds; nil: memory.DefaultAllocator
}

// Store is an open store: the tables of one directory. It is safe for
// concurrent use. The directory belongs to one Store at a time.
type Store struct {
	*failure
	options Options
	logger  *slog.Logger
	fs      vfs.FS // the file system as given, for run files
	tmpDir  string
	db      *pebble.DB
	lock    *pebble.Lock
	cache   *pebble.Cache
	tails   *run.Cache
	space   *diskSpace
	janitor *janitor
	folder  *folder
	policy  *foldPolicy
	pace    *pace
	pins    *pins
	reads   *reads

	tableIDs, runIDs, hiddenIDs *ids

	deltaCommitBytes int64               // limits.DeltaCommitBytes; tests make runs of little
	writing          *semaphore.Weighted // runs of commits being written at a time

	// catalog orders creation, renaming and dropping of tables; mu guards the
	// maps, for a moment at a time.
	catalog sync.Mutex
	mu      sync.Mutex
	byName  map[Name]*Table
	byID    map[uint64]*Table
	closed  bool
}

// Err is nil while the store takes writes, else the error that every write gets.
func (s *Store) Err() error {
	if s.options.ReadOnly {
		return readOnly()
	}
	return s.failure.get()
}

// Table is the table of that name; TABLE_NOT_FOUND names the nearest.
func (s *Store) Table(name Name) (*Table, error) {
	t, names := s.find(name)
	if t != nil {
		return t, nil
	}
	slices.Sort(names) // without mu, as is the search for the nearest
	return nil, fault.New(fault.NotFound, "TABLE_NOT_FOUND", "there is no table %s%s", name, suggest(name.String(), names))
}

// find is the table of that name, or the names of all tables.
func (s *Store) find(name Name) (*Table, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byName[name]; t != nil {
		return t, nil
	}
	var names []string
	for n := range s.byName {
		names = append(names, n.String())
	}
	return nil, names
}

// Tables is the tables whose name as users write it begins with prefix, in the
// order of their names.
func (s *Store) Tables(prefix string) []*Table {
	s.mu.Lock()
	var found []*Table
	for name, t := range s.byName {
		if strings.HasPrefix(name.String(), prefix) {
			found = append(found, t)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(found, func(a, b *Table) int { return strings.Compare(a.name.String(), b.name.String()) })
	return found
}

// CreateTable makes a table, durable when it returns. Errors: TABLE_EXISTS, or
// INVALID_ARGUMENT naming what is wrong with the Spec.
func (s *Store) CreateTable(ctx context.Context, name Name, spec Spec) (*Table, error) {
	e, err := newEntry(name, spec)
	if err != nil {
		return nil, err
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if err := s.space.check(0); err != nil {
		return nil, err
	}
	s.catalog.Lock()
	defer s.catalog.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := s.Table(name); err == nil {
		return nil, fault.New(fault.AlreadyExists, "TABLE_EXISTS", "table %s exists already", name)
	}
	id, err := s.tableIDs.take(1)
	if err != nil {
		return nil, err
	}
	value, err := e.encode()
	if err != nil {
		return nil, err
	}
	err = s.guard("creating a table", func() error { return s.db.Set(layout.TableKey(id), value, pebble.Sync) })
	if err != nil {
		return nil, err
	}
	t := newTable(s, id, e)
	if err := t.load(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name], s.byID[id] = t, t
	return t, nil
}

// DropTable removes a table and all its rows. Scans that run go on, everything
// later is TABLE_NOT_FOUND.
func (s *Store) DropTable(ctx context.Context, name Name) error {
	if err := s.Err(); err != nil {
		return err
	}
	s.catalog.Lock()
	defer s.catalog.Unlock()
	t, err := s.Table(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if err := t.drop(); err != nil {
		return err
	}
	s.pins.dropTable(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byName, name)
	delete(s.byID, t.id)
	return nil
}

// drop unlists everything and removes the table's keys in one batch.
func (t *Table) drop() error {
	p, batch, err := t.applyDrop()
	if err != nil {
		return err
	}
	return t.settle(p, batch)
}

func (t *Table) applyDrop() (*pendingVersion, *pebble.Batch, error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	p := &pendingVersion{version: t.head.next(), shown: make(chan struct{})}
	p.version.gone = true
	batch := t.store.db.NewBatch()
	err := t.unlistAll(batch, p)
	streamsLow, streamsHigh := layout.StreamsSpan(t.id)
	for _, fill := range []func() error{
		func() error { return batch.Delete(layout.TableKey(t.id), nil) },
		func() error { return batch.Delete(layout.CommitKey(t.id), nil) },
		func() error { return batch.Delete(layout.WorkKey(t.id), nil) },
		func() error { return batch.DeleteRange(streamsLow, streamsHigh, nil) },
	} {
		if err == nil {
			err = fill()
		}
	}
	if err == nil {
		err = t.apply(p, batch)
	}
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropped = true // whatever comes to the publish section now is refused; reads go on until the drop is durable
	return p, batch, nil
}

// Alter makes the next version of the schema, durable when it returns it.
// Commits that were prepared under the old one are refused with SCHEMA_CHANGED.
func (t *Table) Alter(ctx context.Context, c Change) (*Schema, error) {
	p, batch, err := t.applyChange(ctx, c)
	if err == nil {
		err = t.settle(p, batch)
	}
	if err != nil {
		return nil, err
	}
	return p.version.schema, nil
}

func (t *Table) applyChange(ctx context.Context, c Change) (*pendingVersion, *pebble.Batch, error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	changed, err := t.entry.apply(c)
	if err == nil {
		err = t.ready()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	p := &pendingVersion{version: t.head.next(), shown: make(chan struct{})}
	p.version.schema = changed.current()
	value, err := changed.encode()
	batch := t.store.db.NewBatch()
	if err == nil {
		err = batch.Set(layout.TableKey(t.id), value, nil)
	}
	if err == nil {
		t.setSchemas(changed)
		err = t.apply(p, batch)
	}
	if err != nil {
		return nil, nil, err
	}
	t.entry = changed
	return p, batch, nil
}
