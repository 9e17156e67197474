package run

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/objstorage"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// WriterOptions describe a run to be written.
type WriterOptions struct {
	Mem memory.Allocator // nil: memory.DefaultAllocator
	// File takes the sstable; objstorageprovider.NewFileWritable makes one of a
	// vfs.File. Finish syncs and closes it, Abort closes it.
	File  objstorage.Writable
	Table uint64
	Run   uint64
	Key   KeyColumns
}

// Writer writes one run. One goroutine uses it; Finish or Abort ends it.
type Writer struct {
	o       WriterOptions
	prefix  []byte
	sst     *sstable.Writer
	set     func(name, value []byte) error // of sst, or of an image
	encoder *block.Encoder
	err     error // the first error; the writer is then good for Abort only

	pending pending // rows of the block that is not full yet
	slice   *sliceWriter
	leaf    int // blocks of a leaf
	info    Info
	perRow  int // 1: rows have versions of their own; -1: they have not; 0: no row yet

	// Scratch memory.
	name, value []byte
	stored      storedBlock
	parts       []groupPart
	hashes      []uint64
}

// sstableOptions is how the sstables of runs are written: no compression, since
// chunks have their own; CRC32c checksums (Pebble's default); every value in a
// block of Pebble's of its own, so that a read loads nothing else; no separated
// values; a table format that the store's pinned format major version reads.
func sstableOptions() sstable.WriterOptions {
	return sstable.WriterOptions{
		BlockSize:            1, // any value fills it
		BlockRestartInterval: 1,
		IndexBlockSize:       8 << 10, // a lookup reads one, and the top
		Compression:          sstable.NoCompression,
		TableFormat:          sstable.TableFormatPebblev4,
		DisableValueBlocks:   true,
	}
}

// NewWriter starts a run.
func NewWriter(o WriterOptions) *Writer {
	if o.Mem == nil {
		o.Mem = memory.DefaultAllocator
	}
	w := &Writer{o: o, prefix: layout.RunPrefix(o.Table, o.Run), leaf: leafBlocks}
	w.pending.most = limits.BlockRows
	w = w.part()
	w.sst = sstable.NewWriter(o.File, sstableOptions())
	w.set = w.sst.Set
	return w
}

// part is a writer of slices of the same run, without a file.
func (w *Writer) part() *Writer {
	return &Writer{
		o: w.o, prefix: w.prefix, leaf: w.leaf, encoder: block.NewEncoder(), info: newInfo(),
		pending: pending{mem: w.o.Mem, most: w.pending.most},
	}
}

func newInfo() Info { return Info{Least: math.MaxUint64} }

// Add takes the next rows of one slice: keys strictly increasing inside a slice
// over all calls, slices increasing. cols are canonical arrays, one for each of
// ids, the key columns among them; they are not kept. A column
// block.ColumnTombstone says which rows are deletes, block.ColumnCommit what
// version each row has (either every row of a run has one or none).
func (w *Writer) Add(slice int, keys *key.Keys, ids []uint32, cols []arrow.Array) error {
	return w.add(slice, keys, ids, &arrays{cols: cols})
}

// AddRefs is Add for rows that lie scattered: row i of column c is row
// refs[i].Row of srcs[c][refs[i].Batch].
func (w *Writer) AddRefs(slice int, keys *key.Keys, ids []uint32, srcs [][]arrow.Array, refs []block.Ref) error {
	if len(refs) != keys.Len() {
		return w.fail(fmt.Errorf("BUG: %d keys for %d rows", keys.Len(), len(refs)))
	}
	return w.add(slice, keys, ids, &scattered{srcs: srcs, refs: refs})
}

// AddDeletes takes the keys of deleted rows; the key columns are decoded from
// them.
func (w *Writer) AddDeletes(slice int, keys *key.Keys) error {
	cols, err := key.Decode(w.o.Mem, w.o.Key.Types, keys)
	if err != nil {
		return w.fail(fmt.Errorf("decode the keys of deleted rows: %w", err))
	}
	defer func() {
		for _, c := range cols {
			c.Release()
		}
	}()
	b := array.NewBooleanBuilder(w.o.Mem)
	defer b.Release()
	b.Reserve(keys.Len())
	for range keys.Len() {
		b.UnsafeAppend(true)
	}
	cols = append(cols, b.NewArray())
	ids := append(append([]uint32{}, w.o.Key.IDs...), block.ColumnTombstone)
	return w.Add(slice, keys, ids, cols)
}

func (w *Writer) add(slice int, keys *key.Keys, ids []uint32, rows rowSource) error {
	if w.err != nil {
		return w.err
	}
	if err := w.enter(slice, ids, rows); err != nil {
		return w.fail(err)
	}
	for lo, n := 0, keys.Len(); lo < n; {
		take, plain := w.pending.room(rows, lo, n)
		if take == 0 {
			if err := w.cut(); err != nil {
				return w.fail(err)
			}
			continue
		}
		if err := w.pending.append(keys, rows, lo, lo+take, plain); err != nil {
			return w.fail(err)
		}
		lo += take
	}
	return nil
}

// enter makes the slice the current one and the pending block one of these
// columns.
func (w *Writer) enter(slice int, ids []uint32, rows rowSource) error {
	if err := w.begin(slice); err != nil {
		return err
	}
	if w.pending.sameColumns(ids) {
		return nil
	}
	if err := w.cut(); err != nil {
		return err
	}
	return w.pending.columns(ids, rows)
}

// begin makes the slice the current one.
func (w *Writer) begin(slice int) error {
	if slice < 0 || slice >= limits.MaxSlices {
		return fmt.Errorf("BUG: slice %d", slice)
	}
	if w.slice != nil && w.slice.number != slice {
		if slice < w.slice.number {
			return fmt.Errorf("BUG: slice %d behind slice %d", slice, w.slice.number)
		}
		if err := w.leave(); err != nil {
			return err
		}
	}
	if w.slice == nil {
		w.slice = newSliceWriter(slice, w.o.Key, w.leaf)
	}
	return nil
}

// leave ends the current slice: its last block and its tail.
func (w *Writer) leave() error {
	if err := w.cut(); err != nil {
		return err
	}
	s := w.slice
	w.slice = nil
	if s == nil || s.info.Rows == 0 {
		return nil
	}
	info, err := s.finish(w.prefix, w.set)
	if err != nil {
		return err
	}
	w.info.Slices = append(w.info.Slices, info)
	return nil
}

// cut writes the pending rows as one block.
func (w *Writer) cut() error {
	if w.pending.rows() == 0 {
		return nil
	}
	b := w.pending.take()
	defer b.release()
	return w.writeBlock(b)
}

// versioned notes the versions of some rows.
func (w *Writer) versioned(perRow bool, least, greatest uint64) error {
	has := -1
	if perRow {
		has = 1
		w.info.PerRow = true
		w.info.Least, w.info.Greatest = min(w.info.Least, least), max(w.info.Greatest, greatest)
	}
	if w.perRow == -has {
		return fmt.Errorf("BUG: some rows of a run have versions of their own, some have not")
	}
	w.perRow = has
	return nil
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// Bytes is about what the file holds so far.
func (w *Writer) Bytes() uint64 { return w.sst.Raw().EstimatedSize() }

// Finish writes the tails, syncs and closes the file. A run without rows is an
// error: it has nothing to ingest.
func (w *Writer) Finish() (Info, error) {
	if w.err == nil {
		w.err = w.leave()
	}
	if w.err == nil && len(w.info.Slices) == 0 {
		w.err = fmt.Errorf("BUG: a run without rows")
	}
	if w.err != nil {
		w.Abort()
		return Info{}, w.err
	}
	w.pending.release()
	if err := w.sst.Close(); err != nil {
		return Info{}, fmt.Errorf("close a run's file: %w", err)
	}
	meta, err := w.sst.Raw().Metadata()
	if err != nil {
		return Info{}, fmt.Errorf("close a run's file: %w", err)
	}
	w.info.Bytes = meta.Size
	if !w.info.PerRow {
		w.info.Least = 0
	}
	return w.info, nil
}

// Abort gives up and closes the file, whose content is then worthless. It may
// follow any error.
func (w *Writer) Abort() {
	w.pending.release()
	_ = w.sst.Close() // the file is thrown away
}

// Info is what a finished run holds.
type Info struct {
	Slices []SliceInfo
	Bytes  uint64 // of the file
	// PerRow is true if every row has a version of its own, between Least and
	// Greatest; else the run's commit is the version of all.
	PerRow          bool
	Least, Greatest uint64
}

// SliceInfo is what a run holds of one slice. First and Last are keys.
type SliceInfo struct {
	Slice            int
	Rows, Tombstones uint64
	Bytes            uint64 // of encoded blocks and tail
	Plain            uint64 // of the rows as plain Arrow, about
	Blocks           int
	First, Last      []byte
}
