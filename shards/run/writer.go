package run

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/objstorage"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

var errSkeleton = errors.New("not written yet")

type skeleton struct{}

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

// Writer writes one run. One goroutine. Either Finish or Abort ends it.
type Writer struct{ skeleton }

// NewWriter starts a run.
func NewWriter(o WriterOptions) *Writer { return nil }

// Add takes the next rows of one slice: keys strictly increasing inside a slice
// over all calls, slices increasing. cols are canonical arrays, one for each of
// ids; the key columns must be among them. They are not kept. A column
// block.ColumnTombstone or block.ColumnCommit says which rows are deletes and
// what version each row has.
func (w *Writer) Add(slice int, keys *key.Keys, ids []uint32, cols []arrow.Array) error {
	return errSkeleton
}

// AddRefs is Add for rows that lie scattered: row i of column c is row
// refs[i].Row of srcs[c][refs[i].Batch].
func (w *Writer) AddRefs(slice int, keys *key.Keys, ids []uint32, srcs [][]arrow.Array, refs []block.Ref) error {
	return errSkeleton
}

// AddDeletes takes keys alone, as tombstones: the key columns are decoded from
// them.
func (w *Writer) AddDeletes(slice int, keys *key.Keys) error { return errSkeleton }

// Bytes is what has been written so far, encoded.
func (w *Writer) Bytes() uint64 { return 0 }

// Finish writes the tails, syncs and closes the file.
func (w *Writer) Finish() (Info, error) { return Info{}, errSkeleton }

// Abort gives up and closes the file, whose content is then worthless.
func (w *Writer) Abort() {}

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
	Bytes            uint64 // of encoded blocks
	Plain            uint64 // of the same as plain Arrow, about
	Blocks           int
	First, Last      []byte
}

// FoldRequest says what a fold merges and where to.
type FoldRequest struct {
	Mem   memory.Allocator
	Key   KeyColumns
	Types Types
	// Columns is every column of the current schema.
	Columns []uint32
	Slice   int
	// DropTombstones: the sources hold every older version of every key.
	DropTombstones bool
	// MaxBytes ends a run (encoded); 0: one run.
	MaxBytes int64
	// Create starts the next run.
	Create func() (*Writer, error)
}

// Fold merges the sources of one slice, newest first, into new runs in key
// order, each row with its version. Sources without rows left give no run.
// After an error the runs already finished are worthless.
func Fold(ctx context.Context, r FoldRequest, sources []Source) ([]Info, error) {
	return nil, errSkeleton
}
