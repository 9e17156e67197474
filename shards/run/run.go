package run

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/block"
)

// Options describe a run that is listed in a store.
type Options struct {
	DB     pebble.Reader
	Cache  *Cache // of tails; shared by all runs of a store
	Table  uint64
	Run    uint64
	Key    KeyColumns
	Stored Types // of the schema version that the run was written under
	// Version is the version of all rows, unless the run has a version per row
	// (PerRow): then Least and Greatest of Info bound them.
	Version         uint64
	PerRow          bool
	Least, Greatest uint64
	// Label says in an error which table it is about: `table "trips"`.
	Label string
}

// Run is one run, open for reading. It holds no resources: it needs no Close,
// and must not be used any more once the run may leave the disk.
type Run struct{ o Options }

// Open makes a Run. It reads nothing.
func Open(o Options) *Run { return &Run{o: o} }

// Source is the rows of one slice. A run that does not hold the slice is an
// error when a cursor looks into it: the caller knows which slices there are.
func (r *Run) Source(slice int) Source { return nil }

// Piece is about one block (or, in huge runs, one part of the index) of a
// slice: every key is <= Last and greater than the Last of the piece before.
type Piece struct {
	Last    []byte // the caller must not change it
	Rows    uint64
	Encoded uint64 // bytes on disk
	Plain   uint64 // bytes as plain Arrow, about
}

// Pieces appends the pieces of one slice that overlap [low, high), by the block
// index only: to cut scans into equal parts and to estimate.
func (r *Run) Pieces(ctx context.Context, dst []Piece, slice int, low, high []byte) ([]Piece, error) {
	return nil, errSkeleton
}

// Verify reads everything a slice has in this run: checksums, order, index,
// zones and filter against the rows. report gets one text for each thing wrong;
// the error is for what stops the verification itself.
func (r *Run) Verify(ctx context.Context, slice int, report func(what string)) error {
	return errSkeleton
}

// NewCache makes a cache of decoded run tails of at most so many bytes.
func NewCache(bytes int64) *Cache { return nil }

// Cache holds decoded tails (block indexes, zone maps, filters) of all runs of
// a store, least recently used out first. It is safe for concurrent use.
type Cache struct{}

// Bytes is what the cache holds now.
func (c *Cache) Bytes() int64 { return 0 }

// Widener appends columns of blocks written under an older schema version to
// vectors of the current types. One goroutine. The zero value is ready;
// Release it.
type Widener struct{ skeleton }

// Append appends rows [lo, hi) of column id of r to v. stored is the column's
// canonical type when r was written; nil: it did not exist, v gets nulls.
func (w *Widener) Append(v *block.Vector, r *block.Reader, id uint32, stored arrow.DataType, lo, hi int) error {
	return errSkeleton
}

// AppendRows is Append for some rows in any order.
func (w *Widener) AppendRows(v *block.Vector, r *block.Reader, id uint32, stored arrow.DataType, rows []uint32) error {
	return errSkeleton
}

// Release gives back scratch memory.
func (w *Widener) Release() {}
