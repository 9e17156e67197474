package shards

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Order is the order of a scan's rows.
type Order uint8

// The orders. In any order the slices come one behind the other, each in key
// order, so rows of one sharding key are always in the order of their keys.
const (
	Any  Order = iota
	Asc        // by the primary key, over all slices
	Desc       // the reverse of Asc
)

// ScanRequest says what a Scan returns.
type ScanRequest struct {
	// Columns are ids, block.ColumnCommit allowed; none: rows without columns.
	Columns []uint32
	// Ranges are those of a plan: of each slice sorted and disjoint, a Slice of
	// -1 meaning all. nil is everything; empty but not nil is nothing.
	Ranges []run.Range
	Slices []int // nil: all; else only these are touched
	Filter run.Filter
	Order  Order
	Limit  int64 // below 0: none
	// TargetBytes of a batch; 0: limits.TargetBytes. A batch may exceed it by a
	// block.
	TargetBytes int
	Keys        bool             // Batch.LastKey is wanted
	Mem         memory.Allocator // nil: the store's
	Parallel    int              // goroutines; 0: the cores
	Memory      *budget.Read     // bounds what the scan holds; nil: nothing does
}

// Batch is a piece of a scan's answer: at least one row, canonical columns in
// the order of ScanRequest.Columns. The caller calls Release.
type Batch struct {
	Columns []arrow.Array
	Rows    int
	LastKey []byte // encoded primary key of the last row, if asked for
}

// Release releases the arrays.
func (b *Batch) Release() {
	releaseAll(b.Columns)
	b.Columns = nil
}

// Counters say what a scan did.
type Counters = run.Counters

// Scan is a running scan. One goroutine uses it; the caller calls Close.
type Scan struct {
	snapshot *Snapshot
	cancel   context.CancelFunc
	source   batchSource
	left     int64 // of the limit; below 0: none
	returned uint64
	mu       sync.Mutex // an idle scan is given up by another goroutine
	failed   error
	closed   bool
}

// batchSource is what a Scan draws from: one slice's pieces one behind the other
// (pieces.go), or several slices merged by key (merge.go).
type batchSource interface {
	next() (*Batch, error) // io.EOF at the end
	close()
	counters() Counters
}

// Scan starts a scan of the snapshot, which stays held until the scan is
// closed, even if it is released before. Nothing is read yet. When ctx ends the
// scan stops at once and Next returns ctx's error.
func (s *Snapshot) Scan(ctx context.Context, r ScanRequest) (*Scan, error) {
	for _, id := range r.Columns {
		if _, ok := s.version.schema.CanonicalByID(id); !ok {
			return nil, fmt.Errorf("%s has no column with id %d", s.table.label(), id)
		}
	}
	if r.TargetBytes <= 0 {
		r.TargetBytes = limits.TargetBytes
	}
	if r.Mem == nil {
		r.Mem = s.table.store.options.Allocator
	}
	if r.Parallel <= 0 {
		r.Parallel = runtime.GOMAXPROCS(0)
	}
	held := s.hold()
	if held == nil {
		return nil, expired()
	}
	bySlice := s.split(r.Ranges, r.Slices)
	ctx, cancel := context.WithCancel(ctx)
	sc := &Scan{snapshot: held, cancel: cancel, left: r.Limit}
	sc.register(s)
	p := &scanPlan{ctx: ctx, snapshot: sc.snapshot, request: r, shelf: &shelf{}}
	// Without columns and keys nobody can tell the order.
	if r.Order != Any && len(bySlice) > 1 && (len(r.Columns) > 0 || r.Keys) {
		sc.source = newMerge(p, bySlice)
	} else {
		sc.source = newPieces(p, bySlice)
	}
	return sc, nil
}

// Next is the next batch; io.EOF at the end. After an error no batch follows.
func (sc *Scan) Next() (*Batch, error) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.failed != nil {
		return nil, sc.failed
	}
	if sc.left == 0 {
		sc.stop(io.EOF)
		return nil, io.EOF
	}
	sc.work()
	b, err := sc.source.next()
	sc.work()
	if err != nil {
		sc.stop(err)
		return nil, err
	}
	if sc.left > 0 {
		sc.left -= int64(b.Rows)
	}
	sc.returned += uint64(b.Rows)
	return b, nil
}

// register lists the scan's hold, and the snapshot it was started on, among the
// reads of the store.
func (sc *Scan) register(of *Snapshot) {
	open := of.table.store.reads
	held := sc.snapshot
	held.scan, held.parent = sc, of
	held.read.Store(true)
	open.add(held)
	of.use()
	if !of.read.Swap(true) {
		open.add(of)
	}
}

// work notes that the scan is at work.
func (sc *Scan) work() {
	sc.snapshot.table.store.pace.used()
	sc.snapshot.use()
}

// stop ends the work below as soon as it is known that no more is wanted.
func (sc *Scan) stop(err error) {
	sc.failed = err
	sc.cancel()
	sc.source.close()
}

// Counters is what the scan did so far; exact once Next has returned io.EOF.
func (sc *Scan) Counters() Counters {
	c := sc.source.counters()
	c.RowsReturned = sc.returned
	return c
}

// Close stops the scan and waits until its goroutines have ended. It may be
// called more than once.
func (sc *Scan) Close() {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.closed {
		return
	}
	sc.closed = true
	sc.stop(errScanClosed)
	sc.snapshot.Release()
}

var errScanClosed = fmt.Errorf("the scan is closed")

// sliceRanges is what is wanted of one slice; nil ranges: all of it.
type sliceRanges struct {
	slice  int
	ranges []run.Range
}

// split sorts ranges by slice, in slice order.
func (s *Snapshot) split(ranges []run.Range, only []int) []sliceRanges {
	wanted := make([]*sliceRanges, s.table.slices)
	if ranges == nil {
		ranges = []run.Range{{Slice: -1}}
	}
	add := func(slice int, r run.Range) {
		if slice < 0 || slice >= len(wanted) || only != nil && !slices.Contains(only, slice) {
			return
		}
		if wanted[slice] == nil {
			wanted[slice] = &sliceRanges{slice: slice}
		}
		r.Slice = slice
		wanted[slice].ranges = append(wanted[slice].ranges, r)
	}
	for _, r := range ranges {
		if r.Slice >= 0 {
			add(r.Slice, r)
			continue
		}
		for slice := range wanted {
			add(slice, r)
		}
	}
	var list []sliceRanges
	for _, w := range wanted {
		if w != nil && s.holds(w.slice) {
			list = append(list, *w)
		}
	}
	return list
}

// holds reports whether a slice has anything to read.
func (s *Snapshot) holds(slice int) bool {
	return len(s.version.runs.of(slice, s.table.slices)) > 0 || len(s.version.delta.of(slice)) > 0
}

// scanPlan is what all parts of one scan share.
type scanPlan struct {
	ctx      context.Context
	snapshot *Snapshot
	request  ScanRequest
	shelf    *shelf
	merging  bool // the rows of other slices must be held meanwhile
}

// sources is the sources of one slice that may have keys in the ranges (nil:
// all), newest first.
func (s *Snapshot) sources(slice int, ranges []run.Range, kept *shelf) []run.Source {
	runs := s.version.runs.of(slice, s.table.slices)
	generations := s.version.delta.of(slice)
	list := make([]run.Source, 0, min(len(generations)+len(runs), 16))
	if len(generations) > 0 {
		var rows uint64
		for _, r := range runs {
			rows += r.info.Rows
		}
		for i := len(generations) - 1; i >= 0; i-- {
			list = append(list, s.table.deltaSource(generations[i], s.version.commit, rows, kept))
		}
	}
	for _, r := range runs {
		if r.meetsAny(ranges) {
			list = append(list, run.Within(r.source(), r.info.First, r.info.Last))
		}
	}
	return list
}

// meetsAny reports whether keys of the run's slice may be in one of the ranges,
// which are sorted and disjoint.
func (r *sliceRun) meetsAny(ranges []run.Range) bool {
	if ranges == nil {
		return true
	}
	// The first range that does not end before the run begins.
	at := sort.Search(len(ranges), func(i int) bool {
		return ranges[i].High == nil || bytes.Compare(ranges[i].High, r.info.First) > 0
	})
	return at < len(ranges) && bytes.Compare(ranges[at].Low, r.info.Last) <= 0
}

// room is run.Request's.
func (p *scanPlan) room(wanted <-chan struct{}) func(context.Context, int64, bool) (func(), error) {
	if p.request.Memory == nil {
		return nil
	}
	return func(ctx context.Context, bytes int64, holding bool) (func(), error) {
		return p.request.Memory.Block(ctx, bytes, wanted, holding || p.merging)
	}
}

// open starts the scan of some ranges of one slice, of at most limit rows.
// wanted is closed when the client waits for its rows; nil: it does.
func (p *scanPlan) open(of sliceRanges, columns []uint32, limit int64, wanted <-chan struct{}) (*run.Scan, error) {
	return run.NewScan(p.ctx, run.Request{
		Mem:         p.request.Mem,
		Key:         p.snapshot.table.key,
		Types:       p.snapshot.version.schema.CanonicalByID,
		Columns:     columns,
		Ranges:      of.ranges,
		Desc:        p.request.Order == Desc,
		Filter:      p.request.Filter,
		Limit:       max(limit, 0),
		TargetBytes: p.request.TargetBytes,
		LastKeys:    p.request.Keys,
		Room:        p.room(wanted),
	}, p.snapshot.sources(of.slice, of.ranges, p.shelf))
}
