package shards

import (
	"bytes"
	"container/heap"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// merge scans several slices in key order: each slice is a stream in that order
// already, and the streams are merged row by row on their encoded keys. A stream
// holds one batch, and while there are few streams a second one in the making;
// so what is in memory is a batch or two a slice, whatever the slices hold.
type merge struct {
	plan    *scanPlan
	columns []uint32 // wanted, and key columns behind them that were not
	keyAt   []int    // where the key columns are in columns
	streams []*stream
	heads   heads
	opened  bool
	closed  bool
	rows    int64 // handed out
}

// prefetchStreams is the number of slices up to which each has a goroutine.
const prefetchStreams = 64

// mergedRows bounds a merged batch.
const mergedRows = 64 << 10

func newMerge(p *scanPlan, of []sliceRanges) *merge {
	m := &merge{plan: p}
	m.columns, m.keyAt = withKeys(p.request.Columns, p.snapshot.table.key.IDs)
	prefetch := len(of) <= prefetchStreams && p.request.Parallel > 1
	for _, o := range of {
		s := &stream{merge: m}
		q := *p
		q.request.Columns, q.request.Keys = m.columns, false
		q.request.TargetBytes /= len(of) // a stream holds at least a block
		// The parallelism is across the streams.
		q.request.Parallel = 1
		s.source = newPieces(&q, []sliceRanges{o})
		if prefetch {
			s.ahead = make(chan streamItem, 1)
		}
		m.streams = append(m.streams, s)
	}
	return m
}

// stream is one slice's rows. Its fields belong to the merging goroutine, its
// source to the prefetching one if there is one.
type stream struct {
	merge  *merge
	source *pieces
	ahead  chan streamItem // nil: read when needed

	batch *Batch
	keys  key.Keys
	row   int // next, in batch, whose rows are in the order of the scan
}

type streamItem struct {
	batch *Batch
	err   error
}

func (s *stream) prefetch() {
	defer close(s.ahead)
	for {
		b, err := s.read()
		select {
		case s.ahead <- streamItem{b, err}:
		case <-s.merge.plan.ctx.Done():
			if b != nil {
				b.Release()
			}
			return
		}
		if err != nil {
			return
		}
	}
}

// read is source.next; a bug in a decoder must not end the process.
func (s *stream) read() (b *Batch, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: scanning %s: %v\n%s", s.merge.plan.snapshot.table.label(), r, debug.Stack())
		}
	}()
	return s.source.next()
}

// advance takes the next batch; false at the end.
func (s *stream) advance() (bool, error) {
	var item streamItem
	if s.ahead == nil {
		item.batch, item.err = s.source.next()
	} else {
		var open bool
		if item, open = <-s.ahead; !open {
			return false, s.merge.plan.ctx.Err()
		}
	}
	if item.err == io.EOF {
		return false, nil
	}
	if item.err != nil {
		return false, item.err
	}
	s.batch, s.row = item.batch, 0
	columns := make([]arrow.Array, len(s.merge.keyAt))
	for i, at := range s.merge.keyAt {
		columns[i] = s.batch.Columns[at]
	}
	s.keys.Reset()
	return true, key.Encode(&s.keys, columns)
}

func (s *stream) key() []byte { return s.keys.At(s.row) }

func (m *merge) open() error {
	m.opened = true
	for _, s := range m.streams {
		if s.ahead != nil {
			go s.prefetch()
		}
	}
	m.heads.desc = m.plan.request.Order == Desc
	for _, s := range m.streams {
		ok, err := s.advance()
		if err != nil {
			return err
		}
		if ok {
			m.heads.list = append(m.heads.list, s)
		}
	}
	heap.Init(&m.heads)
	return nil
}

// next merges rows until a batch is full. A batch that is used up is kept until
// the rows have been gathered from it.
func (m *merge) next() (*Batch, error) {
	if !m.opened {
		if err := m.open(); err != nil {
			return nil, err
		}
	}
	out := mergedBatch{merge: m}
	defer out.release()
	for len(m.heads.list) > 0 && !out.full() {
		s := m.heads.list[0]
		out.take(s)
		s.row++
		if s.row < s.batch.Rows {
			heap.Fix(&m.heads, 0)
			continue
		}
		out.used = append(out.used, s.batch)
		s.batch = nil
		ok, err := s.advance()
		if err != nil {
			return nil, err
		}
		if ok {
			heap.Fix(&m.heads, 0)
		} else {
			heap.Pop(&m.heads)
		}
	}
	return out.gather()
}

// mergedBatch is a batch in the making: where its rows are.
type mergedBatch struct {
	merge   *merge
	sources []*Batch
	number  map[*Batch]uint32
	sizers  [][]arrow.Array // of each source: the columns of no fixed width
	fixed   int
	refs    []block.Ref
	bytes   int
	lastKey []byte
	used    []*Batch // to be released
}

func (o *mergedBatch) full() bool {
	m := o.merge
	limit := m.plan.request.Limit
	return o.bytes >= m.plan.request.TargetBytes || len(o.refs) >= mergedRows ||
		limit >= 0 && m.rows+int64(len(o.refs)) >= limit
}

func (o *mergedBatch) take(s *stream) {
	number, known := o.number[s.batch]
	if !known {
		number = o.add(s.batch)
	}
	row := uint32(s.row)
	o.refs = append(o.refs, block.Ref{Batch: number, Row: row})
	o.bytes += o.fixed
	for _, column := range o.sizers[number] {
		o.bytes += valueBytes(column, int(row))
	}
	if o.merge.plan.request.Keys {
		o.lastKey = append(o.lastKey[:0], s.key()...)
	}
}

func (o *mergedBatch) add(b *Batch) uint32 {
	if o.number == nil {
		o.number = map[*Batch]uint32{}
	}
	number := uint32(len(o.sources))
	o.number[b] = number
	o.sources = append(o.sources, b)
	var sizers []arrow.Array
	o.fixed = 1
	for _, column := range b.Columns[:len(o.merge.plan.request.Columns)] {
		if width, ok := column.DataType().(arrow.FixedWidthDataType); ok {
			o.fixed += (width.BitWidth() + 7) / 8
		} else {
			sizers = append(sizers, column)
		}
	}
	o.sizers = append(o.sizers, sizers)
	return number
}

// gather copies the rows together; io.EOF if there are none.
func (o *mergedBatch) gather() (*Batch, error) {
	if len(o.refs) == 0 {
		return nil, io.EOF
	}
	m := o.merge
	b := &Batch{Rows: len(o.refs), LastKey: bytes.Clone(o.lastKey)}
	columns := make([]arrow.Array, len(o.sources))
	for i := range m.plan.request.Columns {
		for j, source := range o.sources {
			columns[j] = source.Columns[i]
		}
		b.Columns = append(b.Columns, gather(m.plan.request.Mem, columns[0].DataType(), columns, o.refs))
	}
	m.rows += int64(b.Rows)
	return b, nil
}

func (o *mergedBatch) release() {
	for _, b := range o.used {
		b.Release()
	}
}

// valueBytes is about what one value of a column without fixed width takes.
func valueBytes(column arrow.Array, row int) int {
	offsets := column.Data().Buffers()
	switch dt := column.DataType().(type) {
	case *arrow.StringType, *arrow.BinaryType:
		lo, hi := offsetPair(offsets[1].Bytes(), row)
		return 4 + hi - lo
	case *arrow.ListType, *arrow.MapType:
		lo, hi := offsetPair(offsets[1].Bytes(), row)
		return 4 + rowsBytes(column.Data().Children()[0], hi-lo)
	case *arrow.FixedSizeListType:
		return rowsBytes(column.Data().Children()[0], int(dt.Len()))
	case *arrow.StructType:
		n := 0
		for _, child := range column.Data().Children() {
			n += rowsBytes(child, 1)
		}
		return n
	}
	return 1
}

// rowsBytes is what so many rows take at the average of the whole.
func rowsBytes(data arrow.ArrayData, rows int) int {
	return int(arrayBytes(data)) * rows / max(data.Len(), 1)
}

func (m *merge) close() {
	if m.closed {
		return
	}
	m.closed = true
	for _, s := range m.streams {
		if s.ahead != nil && m.opened {
			for item := range s.ahead {
				if item.batch != nil {
					item.batch.Release()
				}
			}
		}
		s.source.close()
		if s.batch != nil {
			s.batch.Release()
			s.batch = nil
		}
	}
}

func (m *merge) counters() Counters {
	var c Counters
	for _, s := range m.streams {
		if s.ahead == nil || m.closed {
			c.Add(s.source.counters())
		}
	}
	return c
}

// heads is the streams as a heap by their next key.
type heads struct {
	list []*stream
	desc bool
}

func (h *heads) Len() int { return len(h.list) }

func (h *heads) Less(i, j int) bool {
	c := bytes.Compare(h.list[i].key(), h.list[j].key())
	if h.desc {
		return c > 0
	}
	return c < 0
}

func (h *heads) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *heads) Push(x any)    { h.list = append(h.list, x.(*stream)) }

func (h *heads) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
