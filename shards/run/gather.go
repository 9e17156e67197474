package run

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
)

// A part of which less than one row in sparse is wanted is not decoded as a
// whole, its rows are picked.
const (
	sparse    = 8
	fewRounds = 4
)

// gather appends the rows of stretches, column by column: upwards in stretches
// of whatever length, downwards row by row.
type gather struct {
	s         *Scan
	stretches []stretch
	rows      int
	slots     []*slot // that occur

	// base is the slot, if there is one, whose rows from first on are those
	// gathered, but for some that rows of others replace: an upsert seldom adds
	// any. Columns of fixed width are then decoded in place and patched.
	base  *slot
	first int
}

func newGather(s *Scan, stretches []stretch, rows int) *gather {
	g := &gather{s: s, stretches: stretches, rows: rows, slots: s.merge.slots[:0]}
	for _, st := range stretches {
		if st.slot.count == 0 {
			g.slots = append(g.slots, st.slot)
		}
		st.slot.count += st.hi - st.lo
	}
	s.merge.slots = g.slots
	for _, t := range g.slots {
		t.sparse = g.isSparse(t)
	}
	if s.r.Desc {
		g.reference()
	} else {
		g.locate()
		g.align()
	}
	return g
}

// align finds the base, and notes the patches.
func (g *gather) align() {
	base := g.slots[0]
	for _, t := range g.slots {
		if t.count > base.count {
			base = t
		}
	}
	if len(g.slots) == 1 || base.sparse || base.count*2 < g.rows {
		return
	}
	m := &g.s.merge
	m.patches = m.patches[:0]
	first, at, met := 0, 0, false
	for i, st := range g.stretches {
		if st.slot != base {
			p := m.places[i]
			m.patches = append(m.patches, block.Patch{Batch: p.Batch, Lo: p.Lo, Hi: p.Hi, At: uint32(at)})
		} else if !met {
			first, met = st.lo-at, true
		} else if first != st.lo-at {
			return
		}
		at += st.hi - st.lo
	}
	if first >= 0 && first+g.rows <= base.rows {
		g.base, g.first = base, first
	}
}

func (g *gather) release() {
	for _, t := range g.slots {
		t.count, t.picks = 0, t.picks[:0]
	}
}

// isSparse guesses from the present round what will be wanted of the whole part:
// decoding it pays off over the rounds to come, if these are more than fewRounds
// in any case: every pick may unpack a chunk of text anew. In the last round of a
// limited scan nothing is to come.
func (g *gather) isSparse(t *slot) bool {
	if int64(g.rows) >= g.s.left {
		return t.count*sparse <= t.rows
	}
	return t.count*sparse <= t.seen && t.seen*fewRounds >= t.rows
}

// pick notes that a row of a sparse slot is wanted, and gives its place among
// those picked.
func (t *slot) pick(row int) uint32 {
	t.picks = append(t.picks, uint32(row))
	return uint32(len(t.picks) - 1)
}

// locate says where the stretches lie: those of a sparse slot in the rows
// picked, else in all rows of its part.
func (g *gather) locate() {
	m := &g.s.merge
	m.places = m.places[:0]
	for _, st := range g.stretches {
		t := st.slot
		place := block.Stretch{Batch: uint32(t.number), Lo: uint32(st.lo), Hi: uint32(st.hi)}
		if t.sparse {
			place.Lo = uint32(len(t.picks))
			for row := st.lo; row < st.hi; row++ {
				t.pick(row)
			}
			place.Hi = uint32(len(t.picks))
		}
		m.places = append(m.places, place)
	}
}

// reference is locate row by row, downwards.
func (g *gather) reference() {
	m := &g.s.merge
	m.refs = m.refs[:0]
	for _, st := range g.stretches {
		t := st.slot
		for row := st.hi - 1; row >= st.lo; row-- {
			at := uint32(row)
			if t.sparse {
				at = t.pick(row)
			}
			m.refs = append(m.refs, block.Ref{Batch: uint32(t.number), Row: at})
		}
	}
}

// append appends one column. Where no part has two stretches each is decoded to
// where it belongs; else parts are decoded first and stretches copied.
func (g *gather) append(v *block.Vector, id uint32) error {
	if len(g.stretches) == len(g.slots) && !g.s.r.Desc {
		return g.appendSingly(v, id)
	}
	m := &g.s.merge
	m.srcs = m.srcs[:0]
	for range g.s.slots {
		m.srcs = append(m.srcs, nil)
	}
	patched := g.base != nil && v.Patches()
	for _, t := range g.slots {
		if patched && t == g.base {
			continue
		}
		if !t.sparse {
			arr, err := g.s.column(t, id)
			if err != nil {
				return err
			}
			m.srcs[t.number] = arr
			continue
		}
		arr, err := g.pick(t, id)
		if err != nil {
			return err
		}
		defer arr.Release()
		m.srcs[t.number] = arr
	}
	switch {
	case g.s.r.Desc:
		v.AppendRefs(m.srcs, m.refs)
	case patched:
		before := v.Len()
		if arr, decoded := g.base.columns[id]; decoded {
			v.AppendArray(arr, g.first, g.first+g.rows)
		} else if err := g.base.cur.Append(v, id, g.first, g.first+g.rows); err != nil {
			return err
		}
		v.Patch(before, m.srcs, m.patches)
	default:
		v.AppendStretches(m.srcs, m.places)
	}
	return nil
}

func (g *gather) appendSingly(v *block.Vector, id uint32) error {
	for _, st := range g.stretches {
		if arr, decoded := st.slot.columns[id]; decoded {
			v.AppendArray(arr, st.lo, st.hi)
		} else if err := st.slot.cur.Append(v, id, st.lo, st.hi); err != nil {
			return err
		}
	}
	return nil
}

// pick is the picked rows of a column, which the caller releases.
func (g *gather) pick(t *slot, id uint32) (arrow.Array, error) {
	v := g.s.vector(id)
	if arr, ok := t.columns[id]; ok {
		v.AppendRows(arr, t.picks)
	} else if err := t.cur.AppendRows(v, id, t.picks); err != nil {
		v.Reset()
		return nil, err
	}
	return v.NewArray(), nil
}
