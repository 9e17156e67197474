package pushdown

import (
	"slices"

	"github.com/sheaf-db/sheaf/limits"
)

// A box restricts columns one by one: it holds the rows whose column i has a
// value of set i, for each restriction. A box without restriction holds every
// row. Nulls are in no set.
type box []restriction

type restriction struct {
	column *column
	set    set
}

// boxes are a union of boxes that has every row for which an expression is
// TRUE; if exact, only those. No box is empty.
type boxes struct {
	list  []box
	exact bool
}

// maxBoxes bounds the work of planning. What would need more is left to the
// residual.
const maxBoxes = limits.InValues

func anything(exact bool) boxes { return boxes{list: []box{nil}, exact: exact} }

func (e constant) boxes() boxes {
	if e {
		return anything(true)
	}
	return boxes{exact: true}
}

func (e *nullTest) boxes() boxes { return anything(false) }

func (e *comparison) boxes() boxes {
	switch {
	case e.except && e.withNull:
		return boxes{exact: true} // unknown or FALSE for every row
	case e.except:
		return anything(false)
	case len(e.set) == 0:
		return boxes{exact: true}
	case e.column.notNull && e.column.domain.full(e.set):
		return anything(true)
	}
	return boxes{list: []box{{{e.column, e.set}}}, exact: true}
}

func (e *rowIn) boxes() boxes {
	if e.except {
		return anything(false)
	}
	out := boxes{exact: true}
	for _, row := range e.rows {
		b, possible := box(nil), true
		for i, c := range e.columns {
			if c.unknown(row[i]) {
				possible = false
				break
			}
			var ok bool
			if b, ok = b.with(restriction{c, c.domain.compared(Equal, row[i])}); !ok {
				possible = false
				break
			}
		}
		if possible {
			out.list = append(out.list, b)
		}
	}
	return out
}

func (e *or) boxes() boxes {
	out := boxes{exact: true}
	for _, arg := range e.args {
		more := arg.boxes()
		if len(out.list)+len(more.list) > maxBoxes {
			return anything(false)
		}
		out.list = append(out.list, more.list...)
		out.exact = out.exact && more.exact
	}
	for _, b := range out.list {
		if len(b) == 0 {
			return anything(out.exact)
		}
	}
	return out
}

func (e *and) boxes() boxes {
	out := anything(true)
	for _, arg := range e.args {
		more := arg.boxes()
		both, ok := out.intersect(more)
		if !ok {
			out.exact = false
			continue
		}
		out = both
	}
	return out
}

// intersect has the boxes that are in both; false if those would be too many.
func (b boxes) intersect(other boxes) (boxes, bool) {
	if len(b.list)*len(other.list) > maxBoxes {
		return b, false
	}
	out := boxes{exact: b.exact && other.exact}
	for _, x := range b.list {
		for _, y := range other.list {
			both, ok := x, true
			for _, r := range y {
				if both, ok = both.with(r); !ok {
					break
				}
			}
			if ok {
				out.list = append(out.list, both)
			}
		}
	}
	return out, true
}

// with is the box with one more restriction; false if nothing is left.
func (b box) with(r restriction) (box, bool) {
	for i, have := range b {
		if have.column.id == r.column.id {
			r.set = have.set.intersect(r.set)
			b = slices.Clone(b)
			b[i] = r
			return b, len(r.set) > 0
		}
	}
	return append(slices.Clip(b), r), len(r.set) > 0
}
