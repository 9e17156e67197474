package shards

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

var errSkeleton = errors.New("not written yet")

// Options of a store. The zero value is usable.
type Options struct {
	FS              vfs.FS           // nil: the operating system's
	Memory          int64            // bytes for all caches; 0: 256 MiB
	Logger          *slog.Logger     // nil: nothing is logged
	ReadOnly        bool             // refuses every write, folds nothing
	FoldConcurrency int              // background folds at a time; 0: 1, below 0: none by themselves
	Allocator       memory.Allocator // Arrow memory of commits and folds; nil: memory.DefaultAllocator
}

type Store struct{}

func Open(ctx context.Context, dir string, o Options) (*Store, error) { return nil, errSkeleton }
func (s *Store) Close() error                                          { return errSkeleton }

// Err is nil while the store takes writes, else the *fault.Error that every write gets.
func (s *Store) Err() error { return nil }

// Spec describes a table to be made.
type Spec struct {
	Schema            *arrow.Schema // declared; sheaf.* metadata is ignored
	Sharding, Sorting []string
	NoKey             bool // a hidden _sheaf_id is the key
	Slices            int  // 0: limits.DefaultSlices
}

func (s *Store) CreateTable(ctx context.Context, name Name, spec Spec) (*Table, error) {
	return nil, errSkeleton
}
func (s *Store) Table(name Name) (*Table, error)                    { return nil, errSkeleton }
func (s *Store) Tables(prefix string) []*Table                      { return nil }
func (s *Store) DropTable(ctx context.Context, name Name) error     { return errSkeleton }

type Table struct{}

// Change is one alteration of a table; exactly one field is set.
type Change struct {
	AddColumns *arrow.Schema     // new nullable columns
	Drop       []string          // not key columns
	Rename     map[string]string // old name to new name
	Widen      *arrow.Schema     // columns by name with their wider types
}

func (t *Table) Alter(ctx context.Context, c Change) (*Schema, error) { return nil, errSkeleton }
func (t *Table) Name() Name                                           { return Name{} }
func (t *Table) ID() uint64                                           { return 0 }
func (t *Table) Schema() *Schema                                      { return nil }

// LeaseIDs takes n hidden ids that nobody else ever gets: first, first+1, …
func (t *Table) LeaseIDs(n uint64) (first uint64, err error) { return 0, errSkeleton }

// Rows is what a commit brings to one slice, in strictly increasing key order.
type Rows struct {
	Slice      int
	Keys       *key.Keys
	Refs       []block.Ref // row i is Batches[Refs[i].Batch] row Refs[i].Row; unused by deletes
	Tombstones bool        // every key is deleted
}

// Commit is what Prepare takes. Batches are [batch][column of Schema], canonical
// arrays of the Schema's canonical types; they are read until Prepare returns and never kept.
// A slice may occur twice, once with rows and once with Tombstones, if no key is in both.
type Commit struct {
	Schema  *Schema
	Batches [][]arrow.Array
	Slices  []Rows
	Version uint64 // 0: the commit's own number. Else only deletes: of rows not newer than this
}

type Prepared struct{}

func (p *Prepared) Discard()     {}
func (p *Prepared) Rows() uint64 { return 0 }

// Progress is what is durable under a resume id.
type Progress struct{ Batches, Rows uint64 }

type PublishOptions struct {
	Resume   string // empty: none
	Position Progress
	Replace  bool // the prepared commits become the table's whole content
}

func (t *Table) Prepare(ctx context.Context, c Commit) (*Prepared, error) { return nil, errSkeleton }
func (t *Table) Publish(ctx context.Context, p []*Prepared, o PublishOptions) (uint64, error) {
	return 0, errSkeleton
}
func (t *Table) Latch(ctx context.Context, slices []int, exclusive bool) (unlock func(), err error) {
	return nil, errSkeleton
}
func (t *Table) ResumePosition(id string) (p Progress, commit uint64, err error) {
	return Progress{}, 0, errSkeleton
}

type Snapshot struct{}

func (t *Table) Snapshot() (*Snapshot, error) { return nil, errSkeleton }
func (s *Snapshot) Release()                  {}
func (s *Snapshot) Table() *Table             { return nil }
func (s *Snapshot) Schema() *Schema           { return nil }
func (s *Snapshot) Commit() uint64            { return 0 }

type Order uint8

const (
	Any  Order = iota // rows of one sharding key in key order, slices one behind the other
	Asc               // by the primary key, over all slices
	Desc              // the reverse of Asc
)

type ScanRequest struct {
	Columns     []uint32    // ids, block.ColumnCommit allowed; empty: rows without columns
	Ranges      []run.Range // nil: all; of one slice sorted and disjoint
	Slices      []int       // nil: all; only these are touched
	Filter      run.Filter  // nil: every row
	Order       Order
	Limit       int64 // below 0: none
	TargetBytes int   // of a batch; 0: limits.TargetBytes
	Keys        bool  // Batch.LastKey is wanted
	Mem         memory.Allocator
	Parallel    int // 0: the cores
}

func (s *Snapshot) Scan(ctx context.Context, r ScanRequest) (*Scan, error) { return nil, errSkeleton }

type Scan struct{}

// Batch is one piece of a scan's answer. The caller calls Release.
type Batch struct {
	Columns []arrow.Array
	Rows    int
	LastKey []byte // encoded primary key of the last row, if asked for
}

func (b *Batch) Release()               {}
func (sc *Scan) Next() (*Batch, error)  { return nil, errSkeleton }
func (sc *Scan) Close()                 {}
func (sc *Scan) Counters() Counters     { return Counters{} }

type Counters struct {
	RowsScanned, RowsReturned, BlocksRead, BlocksPruned, BytesRead uint64
}

type SliceStat struct {
	Slice                  int
	Rows, Bytes            uint64
	Runs                   int
	DeltaRows, DeltaBytes  uint64
}

func (s *Snapshot) Rows() (n uint64, exact bool) { return 0, false }
func (s *Snapshot) Bytes() uint64                { return 0 }
func (s *Snapshot) SliceStats() []SliceStat      { return nil }

// KeyBytes is an estimate of what the rows of one sharding key take.
type KeyBytes struct {
	Key   []byte // encoded sharding key
	Slice int
	Rows, Bytes uint64
}

// LargestKeys is the n sharding keys with the most bytes, estimated from block indexes.
func (s *Snapshot) LargestKeys(ctx context.Context, n int) ([]KeyBytes, error) { return nil, errSkeleton }

// Cuts is at most about n disjoint pieces of equal bytes that together are ranges (nil: everything), cut at primary keys.
func (s *Snapshot) Cuts(ctx context.Context, ranges []run.Range, n int) ([][]run.Range, error) {
	return nil, errSkeleton
}

// Estimate is the rows and bytes that ranges (nil: everything) hold, by block indexes.
func (s *Snapshot) Estimate(ctx context.Context, ranges []run.Range) (rows, bytes uint64, err error) {
	return 0, 0, errSkeleton
}

func (t *Table) Fold(ctx context.Context) error { return errSkeleton }

// Pin is a snapshot that outlives a request.
type Pin struct {
	ID          string
	Table       *Table
	Commit      uint64
	Age         time.Duration
	Expires     time.Time
	PinnedBytes uint64 // what only stays on disk for snapshots like this one
}

func (t *Table) Pin(ttl time.Duration) (Pin, error)                        { return Pin{}, errSkeleton }
func (s *Store) Pinned(id string) (*Snapshot, Pin, error)                  { return nil, Pin{}, errSkeleton }
func (s *Store) Renew(id string) (Pin, error)                              { return Pin{}, errSkeleton }
func (s *Store) Unpin(id string) error                                     { return errSkeleton }
func (t *Table) Pins() []Pin                                               { return nil }

// Finding is one thing that Doctor found wrong.
type Finding struct {
	Table string
	Slice int // -1: not of one slice
	What  string
}

func (s *Store) Doctor(ctx context.Context, report func(Finding)) error { return errSkeleton }
