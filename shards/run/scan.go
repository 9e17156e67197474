package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// Scan is the merged rows of one slice.
type Scan struct {
	ctx      context.Context
	r        Request
	slots    []slot
	heap     slotHeap // slots that have a part
	holding  int      // slots with a block that room was asked for
	ranges   int      // how many were begun
	out      []*block.Vector
	scratch  map[uint32]*block.Vector
	filter   []filterColumn
	parts    []filterPart
	left     int64                                // rows that may still be returned
	rows     int                                  // in out
	expect   int                                  // rows of a batch, about
	cutNow   bool                                 // the next part would make the batch too large
	pass     func(t *slot) (done bool, err error) // takes parts that are alone, if it can; of folds
	lastKey  []byte
	counters Counters
	end      error // io.EOF or what went wrong

	merge merger
	keep  []bool
	some  []bool // of the values of a list, or of the rows picked
	codes []uint32
	picks []uint32
	cols  []arrow.Array
}

// filterColumn is a column that the filter reads, and its current type.
type filterColumn struct {
	id uint32
	dt arrow.DataType
}

// NewScan starts a scan over the sources of one slice, newest first. It reads
// nothing yet. The caller calls Close.
func NewScan(ctx context.Context, r Request, sources []Source) (*Scan, error) {
	if r.Mem == nil {
		r.Mem = memory.DefaultAllocator
	}
	if r.TargetBytes <= 0 {
		r.TargetBytes = limits.TargetBytes
	}
	if r.TargetRows <= 0 {
		r.TargetRows = targetRows
	}
	if r.Ranges == nil {
		r.Ranges = []Range{{}}
	}
	s := &Scan{ctx: ctx, r: r, left: math.MaxInt64}
	if r.Limit > 0 {
		s.left = r.Limit
	}
	if err := s.prepareColumns(); err != nil {
		return nil, err
	}
	s.heap.desc = r.Desc
	s.slots = make([]slot, len(sources))
	for i, source := range sources {
		least, greatest := source.Versions()
		s.slots[i] = slot{number: i, source: source, least: least, oneVersion: least == greatest}
		if w, ok := source.(within); ok {
			s.slots[i].first, s.slots[i].last = w.first, w.last
		}
	}
	return s, nil
}

// cursor is a slot's cursor, opened when it is first needed.
func (s *Scan) cursor(t *slot) (Cursor, error) {
	if t.cur != nil {
		return t.cur, nil
	}
	cur, err := t.source.Cursor(CursorOptions{
		Context: s.ctx, Mem: s.r.Mem, Desc: s.r.Desc, Types: s.r.Types, Counters: &s.counters, Verify: s.r.Verify,
	})
	if err == nil {
		t.cur = cur
	}
	return cur, err
}

func (s *Scan) prepareColumns() error {
	s.out = make([]*block.Vector, len(s.r.Columns))
	rowSize := int64(0)
	for i, id := range s.r.Columns {
		t, ok := typeOf(s.r.Types, id)
		if !ok {
			return unknownColumn(id)
		}
		s.out[i] = block.NewVector(s.r.Mem, t)
		bits, ok := rowBits(t)
		if !ok {
			bits = 8 * guessedBytes
		}
		rowSize += bits
	}
	s.expect = s.r.TargetRows
	if n := int64(s.r.TargetBytes) * 8 / max(rowSize, 1); n < int64(s.expect) {
		s.expect = int(n)
	}
	s.expect += limits.BlockRows
	for _, id := range s.r.Key.IDs {
		if _, ok := s.r.Types(id); !ok {
			return unknownColumn(id)
		}
	}
	if s.r.Filter == nil {
		return nil
	}
	for _, id := range s.r.Filter.Columns() {
		t, ok := typeOf(s.r.Types, id)
		if !ok {
			return unknownColumn(id)
		}
		s.filter = append(s.filter, filterColumn{id, t})
	}
	s.parts = partsOf(s.r.Filter)
	return nil
}

// guessedBytes is what a value of no fixed size is taken to be.
const guessedBytes = 20

// reserve makes room for a whole batch before the first rows of what seems to
// become one: growing by doubling would copy each batch once more.
func (s *Scan) reserve(rows int) {
	if s.rows > 0 || rows < limits.BlockRows/4 {
		return
	}
	for _, v := range s.out {
		v.Reserve(int(min(int64(s.expect), s.left)))
	}
}

func unknownColumn(id uint32) error {
	return fmt.Errorf("BUG: a scan of column %d, which the schema does not have", id)
}

// vector is an empty vector for a column on its way; its rows are taken from it
// before another is asked for the same column.
func (s *Scan) vector(id uint32) *block.Vector {
	v, ok := s.scratch[id]
	if !ok {
		t, _ := typeOf(s.r.Types, id) // known: prepareColumns asked
		v = block.NewVector(s.r.Mem, t)
		if s.scratch == nil {
			s.scratch = map[uint32]*block.Vector{}
		}
		s.scratch[id] = v
	}
	return v
}

// Next is the next batch, of at least one row; io.EOF at the end. After an
// error, or when the context ends, no further batch comes.
func (s *Scan) Next() (*Batch, error) {
	for s.end == nil {
		if s.full() {
			return s.batch(), nil
		}
		more, err := s.step()
		if err == nil && !more {
			err = io.EOF
		}
		s.end = err
	}
	if s.end == io.EOF && s.rows > 0 {
		return s.batch(), nil
	}
	return nil, s.end
}

func (s *Scan) full() bool {
	return s.rows > 0 && (s.cutNow || s.rows >= s.r.TargetRows || s.bytes() >= int64(s.r.TargetBytes))
}

func (s *Scan) bytes() int64 {
	total := int64(0)
	for _, v := range s.out {
		total += v.Bytes()
	}
	return total
}

// tooLarge is true if a batch must end before so many more bytes come.
func (s *Scan) tooLarge(bytes int) bool {
	s.cutNow = s.rows > 0 && s.bytes()+int64(bytes) > 2*int64(s.r.TargetBytes)
	return s.cutNow
}

func (s *Scan) batch() *Batch {
	b := &Batch{Columns: make([]arrow.Array, len(s.out)), Rows: s.rows}
	for i, v := range s.out {
		b.Columns[i] = v.NewArray()
	}
	if s.r.LastKeys {
		b.LastKey = bytes.Clone(s.lastKey)
	}
	s.counters.RowsReturned += uint64(s.rows)
	s.rows, s.cutNow = 0, false
	return b
}

// Counters is what the scan did so far.
func (s *Scan) Counters() Counters { return s.counters }

// Close releases everything. It may be called at any time and more than once.
func (s *Scan) Close() error {
	var first error
	for i := range s.slots {
		t := &s.slots[i]
		t.drop()
		if t.cur == nil {
			continue
		}
		if err := t.cur.Close(); err != nil && first == nil {
			first = err
		}
	}
	for _, v := range s.out {
		v.Release()
	}
	for _, v := range s.scratch {
		v.Release()
	}
	s.slots, s.out, s.scratch, s.heap.slots = nil, nil, nil, nil
	if s.end == nil {
		s.end = io.EOF
	}
	s.rows = 0
	return first
}

// step reads one part or one round of a merge; false at the end.
func (s *Scan) step() (bool, error) {
	if err := s.ctx.Err(); err != nil {
		return false, context.Cause(s.ctx)
	}
	if s.left <= 0 {
		return false, nil
	}
	top := s.heap.top()
	switch {
	case s.merge.waiting:
		return true, s.endRound()
	case top == nil:
		return s.nextRange()
	case top.loaded:
		return true, s.mergeRound()
	}
	return true, s.resolve(top)
}

// nextRange moves the cursors that may have a part of it to the next range.
func (s *Scan) nextRange() (bool, error) {
	if s.ranges == len(s.r.Ranges) {
		return false, nil
	}
	r := s.r.Ranges[s.ranges]
	if s.r.Desc {
		r = s.r.Ranges[len(s.r.Ranges)-1-s.ranges]
	}
	s.ranges++
	b := boundsOf(s.r.Key, r)
	for i := range s.slots {
		t := &s.slots[i]
		if !t.meets(r) {
			continue
		}
		cur, err := s.cursor(t)
		if err != nil {
			return false, err
		}
		if err := cur.Seek(b); err != nil {
			return false, err
		}
		if err := s.advance(t); err != nil {
			return false, err
		}
	}
	return true, nil
}

// boundsOf finds out whether a range lies inside one sharding key.
func boundsOf(k KeyColumns, r Range) Bounds {
	b := Bounds{Low: r.Low, High: r.High}
	if k.Sharding == 0 || r.Low == nil || r.High == nil {
		return b
	}
	n, err := key.Prefix(k.Types, r.Low, k.Sharding)
	if err != nil { // the bound is only part of a key
		return b
	}
	shard := r.Low[:n]
	if !bytes.HasPrefix(r.High, shard) {
		end := key.Next(shard)
		if end == nil || bytes.Compare(r.High, end) > 0 {
			return b
		}
	}
	b.Sharded, b.Hash = true, key.Hash(shard)
	return b
}

// advance moves a slot, which is not in the heap, to its next part, and puts it
// there if it has one.
func (s *Scan) advance(t *slot) error {
	t.drop()
	part, err := t.cur.Next()
	if err != nil {
		return err
	}
	if part == nil {
		return nil
	}
	t.part = part
	if s.r.Desc {
		t.setHead(part.Last)
	} else {
		t.setHead(part.First)
	}
	s.heap.push(t)
	return nil
}
