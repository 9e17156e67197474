package shards

import (
	"bytes"
	"encoding/binary"
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
	vectors []*block.Vector
	done    func() // gives back the room for a row of each slice; nil: not taken
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
		q.merging = true
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

	batch  *Batch
	keys   key.Keys
	row    int    // next, in batch, whose rows are in the order of the scan
	prefix uint64 // first bytes of its key
	number int    // of batch in the merged batch that is being made, from 1; 0: not in it
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
	if err := key.Encode(&s.keys, columns); err != nil {
		return false, err
	}
	s.setHead()
	return true, nil
}

// hold asks for room for a row of each slice, twice: of large rows that is most
// of what a merge holds.
func (m *merge) hold() (err error) {
	if m.plan.request.Memory == nil {
		return nil
	}
	var bytes int64
	for _, s := range m.streams {
		bytes += 2 * s.source.rowBytes()
	}
	m.done, err = m.plan.request.Memory.Hold(m.plan.ctx, bytes)
	return err
}

func (s *stream) setHead() {
	var first [8]byte
	copy(first[:], s.key())
	s.prefix = binary.BigEndian.Uint64(first[:])
}

func (s *stream) key() []byte { return s.keys.At(s.row) }

func (m *merge) open() error {
	if err := m.hold(); err != nil {
		return err
	}
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
	m.heads.init()
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
	for len(m.heads.list) > 0 {
		s := m.heads.list[0]
		room := out.room(s)
		if room == 0 {
			break
		}
		out.take(s, s.before(m.heads.second(), room, m.heads.desc))
		if s.row < s.batch.Rows {
			s.setHead()
			m.heads.fix()
			continue
		}
		out.used = append(out.used, s.batch)
		s.batch, s.number = nil, 0
		ok, err := s.advance()
		if err != nil {
			return nil, err
		}
		if !ok {
			m.heads.pop()
		}
		m.heads.fix()
	}
	b, err := out.gather()
	for _, s := range m.streams {
		s.number = 0
	}
	return b, err
}

// before is how many rows of the stream, most at most, come before the next row
// of another one; nil: there is none. Mostly it is a sharding key's rows.
func (s *stream) before(other *stream, most int, desc bool) int {
	most = min(most, s.batch.Rows-s.row)
	if other == nil {
		return most
	}
	bound := other.key()
	n := 1 // the first row is on top
	for n < most {
		c := bytes.Compare(s.keys.At(s.row+n), bound)
		if c < 0 == desc {
			break
		}
		n++
	}
	return n
}

// mergedBatch is a batch in the making: where its rows are.
type mergedBatch struct {
	merge   *merge
	sources []*Batch
	sizes   []int // about the bytes of a row of each source
	list    []block.Stretch
	rows    int
	bytes   int
	lastKey []byte
	used    []*Batch // to be released
}

// room is how many rows of a stream may be added, at least one to an empty batch.
func (o *mergedBatch) room(s *stream) int {
	m := o.merge
	room := mergedRows - o.rows
	if limit := m.plan.request.Limit; limit >= 0 {
		room = int(min(int64(room), limit-m.rows-int64(o.rows)))
	}
	target := m.plan.request.TargetBytes
	if o.bytes >= target {
		return 0
	}
	if s.number == 0 {
		o.add(s)
	}
	return max(min(room, 1+(target-o.bytes)/o.sizes[s.number-1]), 0)
}

func (o *mergedBatch) add(s *stream) {
	o.sources = append(o.sources, s.batch)
	s.number = len(o.sources)
	bytes := int64(0)
	for _, column := range s.batch.Columns[:len(o.merge.plan.request.Columns)] {
		bytes += arrayBytes(column.Data())
	}
	o.sizes = append(o.sizes, 1+int(bytes)/s.batch.Rows)
}

// take adds the next n rows of a stream.
func (o *mergedBatch) take(s *stream, n int) {
	o.list = append(o.list, block.Stretch{Batch: uint32(s.number - 1), Lo: uint32(s.row), Hi: uint32(s.row + n)})
	o.rows += n
	o.bytes += n * o.sizes[s.number-1]
	s.row += n
	if o.merge.plan.request.Keys {
		o.lastKey = append(o.lastKey[:0], s.keys.At(s.row-1)...)
	}
}

// gather copies the rows together; io.EOF if there are none.
func (o *mergedBatch) gather() (*Batch, error) {
	if o.rows == 0 {
		return nil, io.EOF
	}
	m := o.merge
	b := &Batch{Rows: o.rows, LastKey: bytes.Clone(o.lastKey)}
	columns := make([]arrow.Array, len(o.sources))
	for i := range m.plan.request.Columns {
		for j, source := range o.sources {
			columns[j] = source.Columns[i]
		}
		if len(m.vectors) == i {
			m.vectors = append(m.vectors, block.NewVector(m.plan.request.Mem, columns[0].DataType()))
		}
		m.vectors[i].Reserve(o.rows)
		m.vectors[i].AppendStretches(columns, o.list)
		b.Columns = append(b.Columns, m.vectors[i].NewArray())
	}
	m.rows += int64(b.Rows)
	return b, nil
}

func (o *mergedBatch) release() {
	for _, b := range o.used {
		b.Release()
	}
}

func (m *merge) close() {
	if m.closed {
		return
	}
	m.closed = true
	if m.done != nil {
		m.done()
	}
	for _, v := range m.vectors {
		v.Release()
	}
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

// heads is the streams as a heap by their next key, whose first bytes decide
// most comparisons.
type heads struct {
	list []*stream
	desc bool
}

func (h *heads) less(a, b *stream) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix != h.desc
	}
	c := bytes.Compare(a.key(), b.key())
	return c != 0 && c < 0 != h.desc
}

// second is the stream that would be on top without the top.
func (h *heads) second() *stream {
	switch {
	case len(h.list) < 2:
		return nil
	case len(h.list) > 2 && h.less(h.list[2], h.list[1]):
		return h.list[2]
	}
	return h.list[1]
}

// down puts the stream at i, and those below it, in their places.
func (h *heads) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.list) {
			return
		}
		if right := child + 1; right < len(h.list) && h.less(h.list[right], h.list[child]) {
			child = right
		}
		if !h.less(h.list[child], h.list[i]) {
			return
		}
		h.list[i], h.list[child] = h.list[child], h.list[i]
		i = child
	}
}

// fix puts the top, whose key changed, in its place.
func (h *heads) fix() { h.down(0) }

// pop takes the top away; what comes up in its place is to be fixed.
func (h *heads) pop() {
	last := len(h.list) - 1
	h.list[0] = h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
}

func (h *heads) init() {
	for i := len(h.list)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}
