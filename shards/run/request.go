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
	// Columns are ids, in the order wanted, the engine's own allowed; none
	// gives rows without columns.
	Columns []uint32
	// Ranges are sorted ascending, disjoint, of this slice (their Slice field
	// is not looked at); nil is everything.
	Ranges []Range
	Desc   bool
	Filter Filter // nil: every row
	Limit  int64  // at most so many rows; 0 or below: no limit
	// TargetBytes cuts batches (0: limits.TargetBytes): a batch ends with the
	// part, or round of a merge, that reaches it, but before one that would make
	// it twice as large. TargetRows likewise (0: 65,536).
	TargetBytes int
	TargetRows  int
	// LastKeys asks for Batch.LastKey.
	LastKeys bool
	// Room, if not nil, is asked before a block of so many bytes as plain Arrow
	// is read, and may wait; done is called when the block has been let go. A
	// scan that holds other blocks says so: it cannot let go of them before.
	Room func(ctx context.Context, bytes int64, holding bool) (done func(), err error)
	// Verify computes each block's checksum, though it was right before.
	Verify bool
	// Tombstones keeps deleted rows, told apart by block.ColumnTombstone.
	Tombstones bool
}

const targetRows = 1 << 16

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
