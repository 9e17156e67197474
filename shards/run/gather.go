package run

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
)

// Stretches of at least longStretch rows on average are appended one by one,
// shorter ones row by row. A part of which less than one row in sparse is wanted
// is not decoded as a whole, its rows are picked.
const (
	longStretch = 16
	sparse      = 8
	fewRounds   = 4
)

// gather appends the rows of stretches, column by column.
type gather struct {
	s         *Scan
	stretches []stretch
	rows      int
	slots     []*slot // that occur
	scattered bool    // row by row, by refs into arrays of each slot
}

func newGather(s *Scan, stretches []stretch, rows int) *gather {
	g := &gather{s: s, stretches: stretches, rows: rows}
	for _, st := range stretches {
		if st.slot.count == 0 {
			g.slots = append(g.slots, st.slot)
		}
		st.slot.count += st.hi - st.lo
	}
	g.scattered = s.r.Desc || rows < longStretch*len(stretches)
	if g.scattered {
		g.reference()
	}
	return g
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

// reference makes refs: of a sparse slot into the rows picked, else into all
// rows of its part.
func (g *gather) reference() {
	m := &g.s.merge
	m.refs = m.refs[:0]
	for _, st := range g.stretches {
		t := st.slot
		for n := range st.hi - st.lo {
			row := uint32(st.lo + n)
			if g.s.r.Desc {
				row = uint32(st.hi - 1 - n)
			}
			if g.isSparse(t) {
				t.picks = append(t.picks, row)
				row = uint32(len(t.picks) - 1)
			}
			m.refs = append(m.refs, block.Ref{Batch: uint32(t.number), Row: row})
		}
	}
}

func (g *gather) append(v *block.Vector, id uint32) error {
	if g.scattered {
		return g.appendRefs(v, id)
	}
	for _, st := range g.stretches {
		_, decoded := st.slot.columns[id]
		// One stretch of a part is decoded where it goes; several share one
		// decoding of the part.
		if !decoded && (st.hi-st.lo == st.slot.count || g.isSparse(st.slot)) {
			if err := st.slot.cur.Append(v, id, st.lo, st.hi); err != nil {
				return err
			}
			continue
		}
		arr, err := g.s.column(st.slot, id)
		if err != nil {
			return err
		}
		v.AppendArray(arr, st.lo, st.hi)
	}
	return nil
}

func (g *gather) appendRefs(v *block.Vector, id uint32) error {
	m := &g.s.merge
	m.srcs = m.srcs[:0]
	for range g.s.slots {
		m.srcs = append(m.srcs, nil)
	}
	for _, t := range g.slots {
		if !g.isSparse(t) {
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
	v.AppendRefs(m.srcs, m.refs)
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
