package run

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
)

// roundRows bounds what one round of a merge gathers, so that batches can be
// cut between rounds and a filter sees a block's worth of rows at a time.
const roundRows = 2048

// stretch is rows [lo, hi) of one slot's part; downwards they are taken from
// hi-1 to lo.
type stretch struct {
	slot   *slot
	lo, hi int
}

// merger is the scratch memory of merge rounds.
type merger struct {
	stretches []stretch
	all       []stretch // before a filter
	rows      int       // in stretches
	bytes     float64   // about what they take as plain Arrow
	equal     []*slot
	drained   []*slot // slots whose part is used up
	waiting   bool    // endRound is to be called again
	places    []block.Stretch
	patches   []block.Patch
	refs      []block.Ref
	srcs      []arrow.Array
	slots     []*slot // of a gather
}

// mergeRound takes winners from the loaded parts, in key order, until a part is
// used up, an unread one comes to the top, or there are enough, and appends
// them to the output. Parts move on only after that: rows taken from them are
// read where they lie.
func (s *Scan) mergeRound() error {
	m := &s.merge
	m.stretches, m.rows, m.bytes, m.drained = m.stretches[:0], 0, 0, m.drained[:0]
	limit := int(min(roundRows, s.left))
	for len(m.drained) == 0 && m.rows < limit && m.bytes < float64(s.r.TargetBytes) {
		top := s.heap.top()
		if top == nil || !top.loaded {
			break
		}
		second := s.heap.second()
		if second != nil && s.heap.compare(top.head, second.head) == 0 {
			if err := s.takeNewest(); err != nil {
				return err
			}
			continue
		}
		s.takeStretch(top, second, limit)
	}
	return s.endRound()
}

// endRound appends what a round took, now or, if that would make the batch too
// large, behind it.
func (s *Scan) endRound() error {
	m := &s.merge
	m.waiting = s.tooLarge(int(m.bytes))
	if m.waiting {
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	for i := range s.slots {
		s.slots[i].seen = 0
	}
	for _, t := range m.drained {
		if err := s.advance(t); err != nil {
			return err
		}
	}
	return nil
}

// takeStretch takes the top's rows before the second's key.
func (s *Scan) takeStretch(top, second *slot, limit int) {
	var bound []byte
	if second != nil {
		bound = second.head
	}
	from, to := top.next, top.until(bound, s.r.Desc)
	room := limit - s.merge.rows
	if s.r.Desc {
		to = max(to, from-room)
		s.take(top, to+1, from+1)
	} else {
		to = min(to, from+room)
		s.take(top, from, to)
	}
	top.seen += max(to-from, from-to)
	if top.moveTo(to) {
		s.heap.fix()
		return
	}
	s.merge.drained = append(s.merge.drained, s.heap.pop())
}

// takeNewest takes the newest of the rows that have the top's key.
func (s *Scan) takeNewest() error {
	m := &s.merge
	m.equal = append(m.equal[:0], s.heap.pop())
	k := m.equal[0].head
	for t := s.heap.top(); t != nil && s.heap.compare(k, t.head) == 0; t = s.heap.top() {
		m.equal = append(m.equal, s.heap.pop())
	}
	newest := m.equal[0]
	for _, t := range m.equal[1:] {
		wins, err := s.newer(t, newest)
		if err != nil {
			return err
		}
		if wins {
			newest = t
		}
	}
	s.take(newest, newest.next, newest.next+1)
	for _, t := range m.equal {
		t.seen++
		next := t.next + 1
		if s.r.Desc {
			next = t.next - 1
		}
		if t.moveTo(next) {
			s.heap.push(t)
		} else {
			m.drained = append(m.drained, t)
		}
	}
	return nil
}

// newer is true if a's next row hides b's, which has the same key: it has the
// greater version, or the same and is a delete, or comes from a newer source.
func (s *Scan) newer(a, b *slot) (bool, error) {
	va, err := a.version(s, a.next)
	if err != nil {
		return false, err
	}
	vb, err := b.version(s, b.next)
	if err != nil {
		return false, err
	}
	if va != vb {
		return va > vb, nil
	}
	if da, db := a.isDead(a.next), b.isDead(b.next); da != db {
		return da, nil
	}
	return a.number < b.number, nil
}

// take notes winners, without those that are deleted or cannot match.
func (s *Scan) take(t *slot, lo, hi int) {
	if t.masked {
		return
	}
	if len(t.dead) == 0 || s.r.Tombstones {
		s.merge.add(t, lo, hi, s.r.Desc)
		return
	}
	for row := lo; row < hi; row++ {
		at := row
		if s.r.Desc {
			at = lo + hi - 1 - row
		}
		if !t.dead[at] {
			s.merge.add(t, at, at+1, s.r.Desc)
		}
	}
}

func (m *merger) add(t *slot, lo, hi int, desc bool) {
	m.rows += hi - lo
	if t.part.Rows > 0 {
		m.bytes += float64(hi-lo) * float64(t.part.Bytes) / float64(t.part.Rows)
	}
	if n := len(m.stretches); n > 0 && m.stretches[n-1].slot == t {
		last := &m.stretches[n-1]
		if !desc && last.hi == lo {
			last.hi = hi
			return
		}
		if desc && last.lo == hi {
			last.lo = lo
			return
		}
	}
	m.stretches = append(m.stretches, stretch{t, lo, hi})
}

// flush filters the round's rows and appends them to the output.
func (s *Scan) flush() error {
	m := &s.merge
	if m.rows == 0 {
		return nil
	}
	if s.r.Filter != nil {
		if err := s.filterStretches(); err != nil {
			return err
		}
	}
	if m.rows == 0 {
		return nil
	}
	g := newGather(s, m.stretches, m.rows)
	defer g.release()
	s.reserve(m.rows)
	for i, v := range s.out {
		if err := g.append(v, s.r.Columns[i]); err != nil {
			return err
		}
	}
	s.returned(m.rows)
	if s.r.LastKeys {
		last := m.stretches[len(m.stretches)-1]
		row := last.hi - 1
		if s.r.Desc {
			row = last.lo
		}
		s.lastKey = append(s.lastKey[:0], last.slot.keys.At(row)...)
	}
	return nil
}

// filterStretches leaves the rows for which the filter is true. Only its columns
// are decoded, of parts that can match.
func (s *Scan) filterStretches() error {
	m := &s.merge
	g := newGather(s, m.stretches, m.rows)
	defer g.release()
	defer func() {
		for _, c := range s.cols {
			c.Release()
		}
		s.cols = s.cols[:0]
	}()
	for _, c := range s.filter {
		v := block.NewVector(s.r.Mem, c.dt)
		err := g.append(v, c.id)
		if err == nil {
			s.cols = append(s.cols, v.NewArray())
		}
		v.Release()
		if err != nil {
			return err
		}
	}
	s.keep = slices.Grow(s.keep[:0], m.rows)[:m.rows]
	fill(s.keep)
	s.r.Filter.Mask(s.cols, m.rows, s.keep)
	s.picks = pick(s.picks, s.keep)
	if len(s.picks) == m.rows {
		return nil
	}
	m.all = append(m.all[:0], m.stretches...)
	m.stretches, m.rows, m.bytes = m.stretches[:0], 0, 0
	picks, from := s.picks, 0
	for _, st := range m.all { // whose rows are those from from on
		n := st.hi - st.lo
		for len(picks) > 0 && int(picks[0]) < from+n {
			row := st.lo + int(picks[0]) - from
			if s.r.Desc {
				row = st.hi - 1 - (int(picks[0]) - from)
			}
			m.add(st.slot, row, row+1, s.r.Desc)
			picks = picks[1:]
		}
		from += n
	}
	return nil
}
