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

// maxBoxes bounds what planning keeps, maxEffort its steps, each about one
// comparison of two values. What would need more is left to the residual.
const (
	maxBoxes  = limits.InValues
	maxEffort = 10_000_000
)

// effort is the steps that planning has left.
type effort int

// spend takes steps; false if there are not so many left.
func (w *effort) spend(steps int) bool {
	if *w < effort(steps) {
		return false
	}
	*w -= effort(steps)
	return true
}

func anything(exact bool) boxes { return boxes{list: []box{nil}, exact: exact} }

func (e constant) boxes(*effort) boxes {
	if e {
		return anything(true)
	}
	return boxes{exact: true}
}

func (e *nullTest) boxes(*effort) boxes { return anything(false) }

func (e *comparison) boxes(*effort) boxes {
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

func (e *rowIn) boxes(*effort) boxes {
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

func (e *or) boxes(w *effort) boxes {
	out := boxes{exact: true}
	for _, arg := range e.args {
		more := arg.boxes(w)
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

func (e *and) boxes(w *effort) boxes {
	total, _ := intersectAll(e.args, w)
	return total
}

// intersectAll is the boxes of an AND, and those of each argument. An argument
// for which there is no effort left counts for nothing, and is not exact.
func intersectAll(args []Expr, w *effort) (total boxes, parts []boxes) {
	parts = make([]boxes, len(args))
	order := make([]int, len(args)) // simple ones first: the fewer boxes they meet
	for i, arg := range args {
		parts[i], order[i] = arg.boxes(w), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return parts[a].size() - parts[b].size() })
	total = anything(true)
	for _, i := range order {
		both, ok := total.intersect(parts[i], w)
		if !ok {
			parts[i].exact, total.exact = false, false
			continue
		}
		total = both
	}
	return total, parts
}

// size is how many spans the boxes have, each box counting as one besides.
func (b boxes) size() int {
	size := len(b.list)
	for _, box := range b.list {
		for _, r := range box {
			size += len(r.set)
		}
	}
	return size
}

// intersect has the boxes that are in both; false if that is too much work.
func (b boxes) intersect(other boxes, w *effort) (boxes, bool) {
	x, y := len(b.list), len(other.list)
	if x*y > maxBoxes || !w.spend(x*other.size()+y*b.size()) {
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
