package pushdown

import (
	"bytes"
	"slices"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/run"
)

// filter is a compiled residual. It implements run.Filter. Masks are bytes, one
// a row, 1 where the row is kept.
type filter struct {
	columns []uint32
	root    mask
	parts   []run.Filter
}

// mask is one node of a compiled residual.
type mask interface {
	// apply clears keep[i] where the node is not TRUE for row i. It may leave
	// out rows that are cleared already.
	apply(columns []arrow.Array, keep []byte)
	// prune reports that no row of a block with these zones can be TRUE.
	prune(zone zones) bool
	// cost orders the arguments of AND, cheapest first.
	cost() int
}

type zones func(id uint32) (block.Zone, bool)

func newFilter(e Expr) *filter {
	c := &compiler{}
	f := &filter{root: e.compile(c)}
	f.columns = c.columns
	f.parts = []run.Filter{f}
	and, ok := e.(*and)
	if _, several := f.root.(*andMask); !ok || !several {
		return f
	}
	var parts []*filter
	for _, arg := range mergeSame(and.args, intersection) {
		c := &compiler{}
		part := &filter{root: arg.compile(c)}
		part.columns = c.columns
		if _, constant := part.root.(constMask); !constant {
			parts = append(parts, part)
		}
	}
	slices.SortStableFunc(parts, func(a, b *filter) int { return a.root.cost() - b.root.cost() })
	f.parts = nil
	for _, part := range parts {
		f.parts = append(f.parts, part)
	}
	return f
}

// Parts are the arguments of an AND, cheap ones first; of anything else it is
// one part. A constant among them is TRUE, or the whole would be one.
func (f *filter) Parts() []run.Filter { return f.parts }

// Columns is the ids of the columns that Mask needs.
func (f *filter) Columns() []uint32 { return f.columns }

// Prune reports that no row of a block with these zones can match.
func (f *filter) Prune(zone func(id uint32) (block.Zone, bool)) bool { return f.root.prune(zone) }

// Mask clears keep[i] where the filter is not TRUE for row i.
func (f *filter) Mask(columns []arrow.Array, rows int, keep []bool) {
	if rows == 0 {
		return
	}
	// A bool is a byte of 0 or 1: masks are combined without branches.
	f.root.apply(columns, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(keep))), len(keep))[:rows])
}

// compiler collects the columns that masks read.
type compiler struct{ columns []uint32 }

// slot is the place of a column among those that Mask is given.
func (c *compiler) slot(column *column) int {
	at := slices.Index(c.columns, column.id)
	if at < 0 {
		at = len(c.columns)
		c.columns = append(c.columns, column.id)
	}
	return at
}

// constMask is TRUE or not for every row.
type constMask bool

func (e constant) compile(*compiler) mask { return constMask(e) }

func (m constMask) apply(_ []arrow.Array, keep []byte) {
	if !m {
		clear(keep)
	}
}

func (m constMask) prune(zones) bool { return !bool(m) }
func (m constMask) cost() int        { return 0 }

type andMask struct{ args []mask }

// compile puts the cheap arguments first, and makes one of several comparisons
// of the same column.
func (e *and) compile(c *compiler) mask {
	args, decided := compileArgs(c, mergeSame(e.args, intersection), constMask(false))
	slices.SortStableFunc(args, func(a, b mask) int { return a.cost() - b.cost() })
	switch {
	case decided:
		return constMask(false)
	case len(args) == 0:
		return constMask(true)
	case len(args) == 1:
		return args[0]
	}
	return &andMask{args}
}

// compileArgs compiles arguments and leaves out constants, unless one decides
// the outcome.
func compileArgs(c *compiler, args []Expr, decisive constMask) (out []mask, decided bool) {
	for _, arg := range args {
		compiled := arg.compile(c)
		if constant, ok := compiled.(constMask); !ok {
			out = append(out, compiled)
		} else if constant == decisive {
			decided = true
		}
	}
	return out, decided
}

// mergeSame makes one of the comparisons of each column that ask for members of
// a set; combine makes one set of several.
func mergeSame(args []Expr, combine func(sets []set) set) []Expr {
	out := make([]Expr, 0, len(args))
	place := map[uint32]int{}
	sets := map[uint32][]set{}
	for _, arg := range args {
		c, ok := arg.(*comparison)
		if !ok || c.except {
			out = append(out, arg)
			continue
		}
		if _, seen := place[c.column.id]; !seen {
			place[c.column.id] = len(out)
			out = append(out, arg)
		}
		sets[c.column.id] = append(sets[c.column.id], c.set)
	}
	for id, at := range place {
		merged := *out[at].(*comparison)
		merged.set = combine(sets[id])
		out[at] = &merged
	}
	return out
}

// intersection begins with the small sets, so that each step is about as long
// as what is left.
func intersection(sets []set) set {
	slices.SortStableFunc(sets, func(a, b set) int { return len(a) - len(b) })
	out := sets[0]
	for _, s := range sets[1:] {
		out = out.intersect(s)
	}
	return out
}

func union(sets []set) set {
	if len(sets) == 1 {
		return sets[0]
	}
	return normalise(slices.Concat(sets...))
}

func (m *andMask) apply(columns []arrow.Array, keep []byte) {
	for _, arg := range m.args {
		arg.apply(columns, keep)
		if bytes.IndexByte(keep, 1) < 0 {
			return
		}
	}
}

func (m *andMask) prune(zone zones) bool {
	return slices.ContainsFunc(m.args, func(arg mask) bool { return arg.prune(zone) })
}

func (m *andMask) cost() int { return sumCost(m.args) }

func sumCost(args []mask) int {
	sum := 1
	for _, arg := range args {
		sum += arg.cost()
	}
	return sum
}

type orMask struct{ args []mask }

func (e *or) compile(c *compiler) mask {
	args, decided := compileArgs(c, mergeSame(e.args, union), constMask(true))
	switch {
	case decided:
		return constMask(true)
	case len(args) == 0:
		return constMask(false)
	case len(args) == 1:
		return args[0]
	}
	return &orMask{args}
}

// scratch holds masks that OR works with.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

func (m *orMask) apply(columns []arrow.Array, keep []byte) {
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	if cap(*buffer) < 2*len(keep) {
		*buffer = make([]byte, 2*len(keep))
	}
	found, open := (*buffer)[:len(keep)], (*buffer)[len(keep):2*len(keep)]
	clear(found)
	for _, arg := range m.args {
		for i, k := range keep { // the rows that no argument has found yet
			open[i] = k &^ found[i]
		}
		if bytes.IndexByte(open, 1) < 0 {
			break
		}
		arg.apply(columns, open)
		for i, o := range open {
			found[i] |= o
		}
	}
	copy(keep, found)
}

func (m *orMask) prune(zone zones) bool {
	return !slices.ContainsFunc(m.args, func(arg mask) bool { return !arg.prune(zone) })
}

func (m *orMask) cost() int { return sumCost(m.args) }

// nullMask is a null test.
type nullMask struct {
	slot   int
	id     uint32
	except bool
}

func (e *nullTest) compile(c *compiler) mask {
	return &nullMask{slot: c.slot(e.column), id: e.column.id, except: e.except}
}

func (m *nullMask) apply(columns []arrow.Array, keep []byte) {
	if column := columns[m.slot]; m.except {
		clearNulls(column, keep)
	} else {
		keepNulls(column, keep)
	}
}

func (m *nullMask) prune(zone zones) bool {
	z, ok := zone(m.id)
	if !ok {
		return false
	}
	if m.except {
		return allNull(z)
	}
	return z.Rows > 0 && z.Nulls == 0
}

func (m *nullMask) cost() int { return 1 }
