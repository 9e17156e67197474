package run

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Request is what one Scan returns of one slice.
type Request struct {
	Mem   memory.Allocator // nil: memory.DefaultAllocator
	Key   KeyColumns
	Types Types // of the current schema
	// Columns are ids, in the order wanted, reserved ones allowed; none gives
	// rows without columns.
	Columns []uint32
	// Ranges are sorted ascending, disjoint, of this slice (their Slice field
	// is not looked at); nil is everything.
	Ranges []Range
	Desc   bool
	Filter Filter // nil: every row
	Limit  int64  // at most so many rows; 0 or below: no limit
	// TargetBytes cuts batches (0: limits.TargetBytes): a batch ends at the
	// first block border behind it. TargetRows likewise (0: 65,536).
	TargetBytes int
	TargetRows  int
	// LastKeys asks for Batch.LastKey.
	LastKeys bool
	// Tombstones keeps deleted rows, told apart by block.ColumnTombstone.
	Tombstones bool
}

// Batch is a piece of a scan's answer: canonical arrays of the current types in
// the order of Request.Columns. The caller calls Release.
type Batch struct {
	Columns []arrow.Array
	Rows    int
	LastKey []byte // encoded primary key of the last row, if asked for; the caller's
}

// Release releases the arrays.
func (b *Batch) Release() {
	for _, c := range b.Columns {
		c.Release()
	}
	b.Columns = nil
}

// Scan is the merged rows of one slice.
type Scan struct{ skeleton }

// NewScan starts a scan over the sources of one slice, newest first. The caller
// calls Close. It reads nothing yet.
func NewScan(ctx context.Context, r Request, sources []Source) (*Scan, error) {
	return nil, errSkeleton
}

// Next is the next batch, of at least one row; io.EOF at the end. After an
// error, or when ctx ends, no further batch comes.
func (s *Scan) Next() (*Batch, error) { return nil, errSkeleton }

// Counters is what the scan did so far.
func (s *Scan) Counters() Counters { return Counters{} }

// Close releases everything. It may be called at any time and more than once.
func (s *Scan) Close() error { return errSkeleton }
