package run

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// KeyColumns is the primary key of a table: column ids, their canonical types,
// and how many of them, from the first, are the sharding key (0: no
// sharding-key filter is written or asked). It never changes.
type KeyColumns struct {
	IDs      []uint32
	Types    []arrow.DataType
	Sharding int
}

// Types gives the canonical type of a column in one version of a table's
// schema; false if that version has no such column. Only columns of the table
// are asked for, never reserved ones.
type Types func(id uint32) (arrow.DataType, bool)

// Range is a range [Low, High) of encoded primary keys in one slice; nil is
// open. Slice -1 is every slice.
type Range struct {
	Slice     int
	Low, High []byte
}

// Filter decides which rows a scan returns. It is implemented by package
// pushdown; columns are ids. One Filter is used by several goroutines at once.
type Filter interface {
	// Columns is the ids that Mask needs.
	Columns() []uint32
	// Prune is true if no row of a piece with these zones can match; zone
	// returns false for a column whose zone is not known.
	Prune(zone func(id uint32) (block.Zone, bool)) bool
	// Mask clears keep[i] where the filter is not true for row i. cols are in
	// the order of Columns, canonical arrays of the current types; they are
	// valid during the call only.
	Mask(cols []arrow.Array, rows int, keep []bool)
}

// conjunction is what a Filter may be besides: one that is true where all its
// parts are, each of which needs fewer columns. A scan asks them one by one and
// reads the columns of the later ones where rows are left; cheap ones come first.
type conjunction interface {
	Parts() []Filter
}

// Source is the rows of one slice from one place, in key order, no key twice:
// a run's slice or the delta. It does not change while it is used, and may be
// used by several goroutines; each Cursor belongs to one.
type Source interface {
	// Versions bounds the versions of all rows; (0, MaxUint64) if not known.
	Versions() (least, greatest uint64)
	// Cursor opens a cursor. It must not read rows yet.
	Cursor(o CursorOptions) (Cursor, error)
}

// Within is a source of which it is known that every key lies between first and
// last, neither of which is empty: a scan opens no cursor for ranges that do not
// meet these.
func Within(s Source, first, last []byte) Source { return within{s, first, last} }

type within struct {
	Source
	first, last []byte
}

// CursorOptions say how one cursor is used.
type CursorOptions struct {
	Context  context.Context // for tracing of reads; the scan itself checks for cancellation
	Mem      memory.Allocator
	Desc     bool      // parts come last first; the rows inside a part always ascend
	Types    Types     // types of the current schema, the ones Append is called with
	Counters *Counters // BlocksRead and BytesRead are added to by Load
	Verify   bool      // computes each block's checksum again, though it was right before
}

// Bounds is a range of keys of a cursor's slice. If Sharded, every key in it
// has one sharding key, whose xxhash64 is Hash: a source with a filter may
// answer that it has none.
type Bounds struct {
	Low, High []byte // [Low, High); nil is open
	Sharded   bool
	Hash      uint64
}

// Part is a piece of a source's rows, as known before it is read.
type Part struct {
	// First and Last bound the keys: First <= key <= Last. They may be wider
	// than the rows and reach out of the bounds sought.
	First, Last []byte
	// Rows and Tombstones are upper bounds, exact if Whole. Bytes is about what
	// the rows take as plain Arrow.
	Rows, Tombstones int
	Bytes            int
	Whole            bool
	// Greatest is an upper bound of the rows' versions.
	Greatest uint64
}

// Cursor moves over the parts of a source inside bounds. Whatever it returns is
// valid until the next Seek, Next or Close.
type Cursor interface {
	// Seek restricts the cursor to b, whose slices stay valid and unchanged
	// until the next Seek, and stands before the first part of its direction.
	// A scan seeks in the direction of the cursor only.
	Seek(b Bounds) error
	// Next moves to the next part, whose rows it does not read; nil at the end.
	// Parts do not overlap.
	Next() (*Part, error)
	// Zone is the zone of one column over (at least) the rows of the part;
	// false if it is not known, or if the stored type is not the current one.
	Zone(id uint32) (block.Zone, bool, error)
	// Load reads the part and returns how many rows are inside the bounds; it
	// may be none. Rows are numbered from 0 below, ascending by key.
	Load() (rows int, err error)
	// Keys appends the encoded keys of all rows.
	Keys(dst *key.Keys) error
	// Append appends rows [lo, hi) of one column to v, which has the column's
	// current type: a column that was added later is null, an older, narrower
	// type is widened. block.ColumnCommit gives the rows' versions (uint64),
	// block.ColumnTombstone (bool) which are deletes; neither is ever null.
	Append(v *block.Vector, id uint32, lo, hi int) error
	// AppendRows is Append for some rows, in any order.
	AppendRows(v *block.Vector, id uint32, rows []uint32) error
	// Close releases everything. It may be called at any time, once.
	Close() error
}

// coder is what a Cursor may be besides: one that gives a column of the part as
// a list of values and each row's place in it, as block.Reader.Codes does; false
// where it has none.
type coder interface {
	Codes(v *block.Vector, codes []uint32, id uint32) ([]uint32, bool, error)
}

// Counters say what a scan did. They are plain numbers: one Scan, one
// goroutine, read them when it is done or between calls of Next.
type Counters struct {
	RowsScanned  uint64 // rows inside the ranges, of blocks that were looked at
	RowsReturned uint64
	BlocksRead   uint64
	BlocksPruned uint64 // skipped by zone maps
	BytesRead    uint64 // encoded
}

// Add adds o to c.
func (c *Counters) Add(o Counters) {
	c.RowsScanned += o.RowsScanned
	c.RowsReturned += o.RowsReturned
	c.BlocksRead += o.BlocksRead
	c.BlocksPruned += o.BlocksPruned
	c.BytesRead += o.BytesRead
}
