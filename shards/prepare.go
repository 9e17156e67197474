package shards

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Rows is what a commit brings to one slice, in strictly increasing key order.
// Either Refs say where the rows are, or they lie together in Columns; deletes
// (every key is deleted) have neither.
type Rows struct {
	Slice int
	Keys  *key.Keys
	Refs  []block.Ref // row i is Batches[Refs[i].Batch], row Refs[i].Row
	// Columns are canonical arrays as in Commit.Batches. Row i of the slice is row
	// Order[i] of them and of Keys, or row i where Order is nil.
	Columns    []arrow.Array
	Order      []uint32
	Tombstones bool
}

// Len is the number of rows.
func (r *Rows) Len() int {
	if r.Order != nil {
		return len(r.Order)
	}
	return r.Keys.Len()
}

// check is about what cannot be read as it is said.
func (r *Rows) check(columns int) error {
	n := r.Keys.Len()
	switch {
	case r.Tombstones && (r.Order != nil || r.Columns != nil):
		return fmt.Errorf("slice %d of a commit has columns for its deletes", r.Slice)
	case r.Tombstones:
	case r.Columns == nil:
		if r.Order != nil || len(r.Refs) != n {
			return fmt.Errorf("slice %d of a commit has %d keys for %d rows", r.Slice, n, len(r.Refs))
		}
	case len(r.Columns) != columns:
		return fmt.Errorf("slice %d of a commit has %d columns, its schema %d", r.Slice, len(r.Columns), columns)
	default:
		for _, column := range r.Columns {
			if column.Len() != n {
				return fmt.Errorf("slice %d of a commit has %d keys for %d rows", r.Slice, n, column.Len())
			}
		}
	}
	return nil
}

// Commit is what Prepare takes. Batches are [batch][column of Schema]: canonical
// arrays of the Schema's canonical types; they are read until Prepare returns
// and never kept. A slice occurs at most once in Slices.
type Commit struct {
	Schema  *Schema
	Batches [][]arrow.Array
	Slices  []Rows
	// Version, if not 0, makes this a delete of rows that are not newer than
	// that commit: rows written meanwhile survive. Only tombstones may be in it.
	Version uint64
}

// Prepared is an encoded commit without a number: a run that is on disk but not
// listed, or pieces of delta in memory. It either goes to Publish or is
// discarded.
type Prepared struct {
	table     *Table
	schema    *Schema
	listing   *listing // of a run; nil: delta pieces
	pieces    []deltaPiece
	asOf      uint64
	rows      uint64
	published bool
}

// Rows is how many rows and deletes the commit brings.
func (p *Prepared) Rows() uint64 { return p.rows }

// Discard gives up a commit that was not published; after Publish succeeded it
// does nothing.
func (p *Prepared) Discard() {
	if p.published || p.listing == nil {
		return
	}
	p.published = true
	low, high := layout.RunSpan(p.table.id, p.listing.id)
	p.table.store.janitor.remove([]removal{{low: low, high: high, run: true}})
}

// entryOverhead is about what a delta row costs besides its key and columns:
// Pebble's key-value, in log, memtable and sstable.
const entryOverhead = 48

// Prepare encodes a commit: a large one (limits.DeltaCommitBytes) becomes a run
// with all its slices, written, synced and ingested; a small one delta pieces.
// It may run beside other commits and folds. The caller either publishes or
// discards the result. RESOURCE_EXHAUSTED DISK_FULL if space is short.
func (t *Table) Prepare(ctx context.Context, c Commit) (*Prepared, error) {
	if err := t.ready(); err != nil {
		return nil, err
	}
	slices.SortFunc(c.Slices, func(a, b Rows) int { return a.Slice - b.Slice })
	p := &Prepared{table: t, schema: c.Schema, asOf: c.Version}
	cost, err := c.measure(t)
	if err != nil {
		return nil, err
	}
	for _, rows := range c.Slices {
		p.rows += uint64(rows.Len())
	}
	if err := t.store.space.check(cost); err != nil {
		return nil, err
	}
	// A delete as of a version needs a version apart from its visibility, which
	// the delta has not.
	if cost < t.store.deltaCommitBytes && c.Version == 0 {
		p.pieces, err = t.encodePieces(ctx, c.scattered())
	} else if p.rows > 0 {
		p.listing, err = t.writeRun(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// scattered is the commit with refs instead of columns.
func (c Commit) scattered() Commit {
	batches, list := slices.Clip(c.Batches), slices.Clone(c.Slices)
	for i, rows := range list {
		if rows.Columns == nil {
			continue
		}
		refs := make([]block.Ref, rows.Len())
		for at := range refs {
			refs[at] = block.Ref{Batch: uint32(len(batches)), Row: uint32(at)}
			if rows.Order != nil {
				refs[at].Row = rows.Order[at]
			}
		}
		keys := rows.Keys
		if rows.Order != nil {
			keys = &key.Keys{}
			keys.AppendRows(rows.Keys, rows.Order)
		}
		batches = append(batches, rows.Columns)
		list[i] = Rows{Slice: rows.Slice, Keys: keys, Refs: refs}
	}
	c.Batches, c.Slices = batches, list
	return c
}

// measure checks the shape of a commit and estimates what it takes as delta.
func (c *Commit) measure(t *Table) (int64, error) {
	var batchBytes, batchRows, cost int64
	for _, batch := range c.Batches {
		if len(batch) != len(c.Schema.Columns) {
			return 0, fmt.Errorf("a batch of a commit has %d columns, its schema %d", len(batch), len(c.Schema.Columns))
		}
		for _, column := range batch {
			batchBytes += arrayBytes(column.Data())
		}
		if len(batch) > 0 {
			batchRows += int64(batch[0].Len())
		}
	}
	rowBytes := batchBytes / max(batchRows, 1)
	for i, rows := range c.Slices {
		n := int64(rows.Keys.Len())
		switch {
		case rows.Slice < 0 || rows.Slice >= t.slices || i > 0 && c.Slices[i-1].Slice == rows.Slice:
			return 0, fmt.Errorf("slice %d of a commit does not exist or occurs twice", rows.Slice)
		case !rows.Tombstones && c.Version != 0:
			return 0, fmt.Errorf("a commit as of version %d brings rows: only deletes can be back-dated", c.Version)
		}
		if err := rows.check(len(c.Schema.Columns)); err != nil {
			return 0, err
		}
		cost += n*entryOverhead + int64(len(rows.Keys.Data))
		switch {
		case rows.Tombstones:
		case rows.Columns != nil:
			for _, column := range rows.Columns {
				cost += arrayBytes(column.Data())
			}
		default:
			cost += n * rowBytes
		}
	}
	return cost, nil
}

// arrayBytes is the buffers of an array, children included.
func arrayBytes(data arrow.ArrayData) int64 {
	var n int64
	for _, b := range data.Buffers() {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, child := range data.Children() {
		n += arrayBytes(child)
	}
	return n
}

// writeRun writes, syncs and ingests one run. Its file is written past the
// handling of a full disk: its failure is the commit's, not the store's.
func (t *Table) writeRun(ctx context.Context, c Commit) (*listing, error) {
	// Each uses all cores, and holds a few slices encoded.
	if err := t.store.writing.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer t.store.writing.Release(1)
	w, err := t.createRun()
	if err != nil {
		return nil, err
	}
	columns := make([][]arrow.Array, len(c.Schema.Columns))
	for i := range columns {
		for _, batch := range c.Batches {
			columns[i] = append(columns[i], batch[i])
		}
	}
	var rows []run.SliceRows
	for _, r := range c.Slices {
		if r.Len() > 0 {
			rows = append(rows, run.SliceRows{
				Slice: r.Slice, Keys: r.Keys, Columns: r.Columns, Order: r.Order, Refs: r.Refs, Deletes: r.Tombstones,
			})
		}
	}
	err = w.AddSlices(ctx, c.Schema.IDs(), columns, rows, runtime.GOMAXPROCS(0))
	if err != nil {
		w.abort()
		return nil, t.store.space.met(err)
	}
	info, err := w.finish()
	if err != nil {
		return nil, t.store.space.met(err)
	}
	if err := t.store.ingest(ctx, []string{w.path}); err != nil {
		return nil, err
	}
	return listingOf(w.id, c.Schema, info), nil
}

// runFile is a run being written to the tmp directory.
type runFile struct {
	*run.Writer
	store *Store
	id    uint64
	path  string
}

func (t *Table) createRun() (*runFile, error) {
	id, err := t.store.runIDs.take(1)
	if err != nil {
		return nil, err
	}
	path := t.store.fs.PathJoin(t.store.tmpDir, fmt.Sprintf("%d.sst", id))
	file, err := t.store.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, t.store.space.met(fmt.Errorf("creating a run: %w", err))
	}
	w := run.NewWriter(run.WriterOptions{
		Mem: t.store.options.Allocator, File: objstorageprovider.NewFileWritable(reservedFile{file, t.store.space}),
		Table: t.id, Run: id, Key: t.key,
	})
	return &runFile{Writer: w, store: t.store, id: id, path: path}, nil
}

func (w *runFile) abort() {
	w.Abort()
	_ = w.store.fs.Remove(w.path) // the next start removes what is left
}

// finish ends the file; what fails is removed.
func (w *runFile) finish() (run.Info, error) {
	info, err := w.Finish()
	if err != nil {
		_ = w.store.fs.Remove(w.path)
		return run.Info{}, fmt.Errorf("writing a run: %w", err)
	}
	return info, nil
}

// ingest hands finished run files to Pebble, which links them, syncs directory
// and manifest, and deletes the originals. They are durable but not listed.
func (s *Store) ingest(ctx context.Context, paths []string) error {
	err := s.guard("ingesting a run", func() error { return s.db.Ingest(context.WithoutCancel(ctx), paths) })
	if err != nil {
		for _, path := range paths {
			_ = s.fs.Remove(path)
		}
		return s.space.met(fmt.Errorf("ingesting a run: %w", err))
	}
	return nil
}
