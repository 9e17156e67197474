package run

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// slot is one source's place in a scan: its cursor, the part it stands on and,
// once that is being merged, its keys.
type slot struct {
	number     int // place in the list of sources, newest first
	source     Source
	cur        Cursor // nil until a range needs it
	first      []byte // nil, or bounds of the source's keys: first <= key <= last
	last       []byte
	least      uint64 // of the source's versions
	oneVersion bool   // all its rows have version least

	part   *Part
	masked bool   // no row of the part matches the filter: only its keys count
	rows   int    // once it is loaded
	done   func() // tells that the block is let go; nil if nobody asked for room
	// While it is streamed: rows that are done, and that are not.
	streamed, left int

	// While it is merged: next is the next row, rows (downwards: -1) behind the
	// last. versions and dead are nil until needed.
	loaded   bool
	next     int
	keys     key.Keys
	versions []uint64
	dead     []bool
	columns  map[uint32]arrow.Array // decoded, all rows of the part

	// The heap goes by the next key, or the near bound of an unread part.
	head   []byte
	prefix uint64 // first 8 bytes of head

	seen   int  // rows that the present round went past
	count  int  // and that are wanted of them
	sparse bool // they are few: picks has their numbers
	picks  []uint32
}

// meets is false if the source has no key in a range.
func (t *slot) meets(r Range) bool {
	return t.first == nil ||
		(r.High == nil || bytes.Compare(t.first, r.High) < 0) && (r.Low == nil || bytes.Compare(t.last, r.Low) >= 0)
}

func (t *slot) setHead(k []byte) {
	t.head = k
	if len(k) >= 8 {
		t.prefix = binary.BigEndian.Uint64(k)
		return
	}
	var padded [8]byte
	copy(padded[:], k)
	t.prefix = binary.BigEndian.Uint64(padded[:])
}

// prepareMerge reads the keys of the loaded part.
func (t *slot) prepareMerge(s *Scan) error {
	t.keys.Reset()
	if err := t.cur.Keys(&t.keys); err != nil {
		return err
	}
	if t.keys.Len() != t.rows {
		return fmt.Errorf("BUG: %d keys of %d rows", t.keys.Len(), t.rows)
	}
	if t.part.Tombstones > 0 {
		arr, err := s.column(t, block.ColumnTombstone)
		if err != nil {
			return err
		}
		t.dead = t.dead[:0]
		for row := range t.rows {
			t.dead = append(t.dead, arr.(*array.Boolean).Value(row))
		}
	}
	t.loaded = true
	t.next = 0
	if s.r.Desc {
		t.next = t.rows - 1
	}
	t.setHead(t.keys.At(t.next))
	return nil
}

// pinned is what a Cursor may be besides: one whose loaded part lies in memory
// that nothing else counts until Unpin, the next Load or Close.
type pinned interface{ Unpin() error }

// largePart is worth a new iterator to let go of it at once.
const largePart = 1 << 20

// drop forgets the part.
func (t *slot) drop() {
	if t.done != nil {
		if c, ok := t.cur.(pinned); ok && t.part != nil && t.part.Bytes > largePart {
			_ = c.Unpin() // closes iterators over what was read
		}
		t.done()
		t.done = nil
	}
	for id, arr := range t.columns {
		arr.Release()
		delete(t.columns, id)
	}
	t.part, t.masked, t.loaded, t.rows, t.left = nil, false, false, 0, 0
	t.versions, t.dead = nil, t.dead[:0]
}

func (t *slot) isDead(row int) bool { return len(t.dead) > 0 && t.dead[row] }

// version is the version of a row.
func (t *slot) version(s *Scan, row int) (uint64, error) {
	if t.oneVersion {
		return t.least, nil
	}
	if t.versions == nil {
		arr, err := s.column(t, block.ColumnCommit)
		if err != nil {
			return 0, err
		}
		t.versions = arr.(*array.Uint64).Uint64Values()
	}
	return t.versions[row], nil
}

// column is a whole column of the part, decoded; the slot owns it.
func (s *Scan) column(t *slot, id uint32) (arrow.Array, error) {
	if arr, ok := t.columns[id]; ok {
		return arr, nil
	}
	v := s.vector(id)
	if err := t.cur.Append(v, id, 0, t.rows); err != nil {
		v.Reset()
		return nil, err
	}
	arr := v.NewArray()
	if t.columns == nil {
		t.columns = map[uint32]arrow.Array{}
	}
	t.columns[id] = arr
	return arr, nil
}

// until is the end of the rows, from next on in the scan's direction, whose
// keys come before bound; nil: all rows. The search gallops: most stretches are
// either one row or many.
func (t *slot) until(bound []byte, desc bool) int {
	if bound == nil {
		if desc {
			return -1
		}
		return t.rows
	}
	// before(i): the i-th row from next comes before bound.
	before := func(i int) bool { return bytes.Compare(t.keys.At(t.next+i), bound) < 0 }
	left := t.rows - t.next
	if desc {
		before = func(i int) bool { return bytes.Compare(t.keys.At(t.next-i), bound) > 0 }
		left = t.next + 1
	}
	step := 1
	for step < left && before(step) {
		step *= 2
	}
	from := step / 2
	n := from + sort.Search(min(step, left)-from, func(i int) bool { return !before(from + i) })
	if desc {
		return t.next - n
	}
	return t.next + n
}

// moveTo makes row the next one; false if there are no more.
func (t *slot) moveTo(row int) bool {
	t.next = row
	if row < 0 || row >= t.rows {
		return false
	}
	t.setHead(t.keys.At(row))
	return true
}

// slotHeap is a heap of slots by head; among equal heads unread parts come
// first, so that no key is decided before all its rows are there.
type slotHeap struct {
	slots []*slot
	desc  bool
}

// compare compares keys in the scan's direction.
func (h *slotHeap) compare(a, b []byte) int {
	if h.desc {
		return bytes.Compare(b, a)
	}
	return bytes.Compare(a, b)
}

func (h *slotHeap) less(a, b *slot) bool {
	if a.prefix != b.prefix {
		return a.prefix < b.prefix != h.desc
	}
	if c := h.compare(a.head, b.head); c != 0 {
		return c < 0
	}
	return !a.loaded && b.loaded
}

func (h *slotHeap) top() *slot {
	if len(h.slots) == 0 {
		return nil
	}
	return h.slots[0]
}

// second is the slot that would be on top without the top.
func (h *slotHeap) second() *slot {
	switch {
	case len(h.slots) < 2:
		return nil
	case len(h.slots) > 2 && h.less(h.slots[2], h.slots[1]):
		return h.slots[2]
	}
	return h.slots[1]
}

func (h *slotHeap) push(t *slot) {
	h.slots = append(h.slots, t)
	for i := len(h.slots) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(h.slots[i], h.slots[up]) {
			return
		}
		h.slots[i], h.slots[up] = h.slots[up], h.slots[i]
		i = up
	}
}

func (h *slotHeap) pop() *slot {
	t, last := h.slots[0], len(h.slots)-1
	h.slots[0] = h.slots[last]
	h.slots[last] = nil
	h.slots = h.slots[:last]
	h.fix()
	return t
}

// fix puts the top, whose head changed, in its place.
func (h *slotHeap) fix() {
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h.slots) {
			return
		}
		if right := down + 1; right < len(h.slots) && h.less(h.slots[right], h.slots[down]) {
			down = right
		}
		if !h.less(h.slots[down], h.slots[i]) {
			return
		}
		h.slots[i], h.slots[down] = h.slots[down], h.slots[i]
		i = down
	}
}
