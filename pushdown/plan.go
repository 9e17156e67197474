package pushdown

import (
	"bytes"
	"slices"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Access says how much of a table a plan reads, from nothing to everything.
type Access uint8

// The kinds of access, narrowest first. Of several ranges the widest counts.
const (
	None        Access = iota // nothing can match
	Point                     // every range is one primary key
	RangeAccess               // sharding key and part of the sorting key are bound
	Shard                     // only the sharding key is
	Full                      // the slice is not known: every slice is read
)

// String is the word for it in plans.
func (a Access) String() string {
	return [...]string{"none", "point", "range", "shard", "full"}[a]
}

// Plan is what a query touches. The rows in Ranges for which Residual is true
// are exactly the rows of the filter.
type Plan struct {
	Access Access
	// Slices are the slice numbers touched, ascending; empty with None.
	Slices []int
	// Of is how many slices the table has.
	Of int
	// Ranges are sorted by slice and key, and disjoint. Nil is every row of
	// Slices. With Full they have Slice -1: each is for every one of Slices.
	// With None they are empty, and nothing may be scanned.
	Ranges []run.Range
	// Residual is what is still to be evaluated; nil if nothing is.
	Residual Expr
	// Pushed are the parts of the filter that the ranges answer.
	Pushed []Expr

	keys int // how many keys were listed
}

// Build plans a filter onto a table's keys; a nil filter is every row. The
// filter must have been made for this schema. An error is never the caller's.
func Build(schema *shards.Schema, e Expr) (*Plan, error) {
	if e == nil {
		e = True()
	}
	args := []Expr{e}
	if all, ok := e.(*and); ok {
		args = all.args
	}
	left := effort(maxEffort)
	total, parts := intersectAll(args, &left)
	p := &Plan{Of: schema.Slices}
	ranger, err := place(schema, total.list)
	if err != nil {
		return nil, err
	}
	if len(ranger.out) == 0 {
		p.nothing()
		p.Pushed = args
		return p, nil
	}
	var rest []Expr
	for i, arg := range args {
		switch _, isConstant := arg.(constant); {
		case isConstant:
		case parts[i].exact && !parts[i].restrictAny(ranger.loose):
			p.Pushed = append(p.Pushed, arg)
		default:
			rest = append(rest, arg)
		}
	}
	if len(rest) > 0 {
		p.Residual = And(rest...)
	}
	p.take(ranger.out)
	return p, nil
}

// restrictAny reports whether a box restricts one of the columns.
func (b boxes) restrictAny(columns map[uint32]bool) bool {
	if len(columns) == 0 {
		return false
	}
	for _, box := range b.list {
		for _, r := range box {
			if columns[r.column.id] {
				return true
			}
		}
	}
	return false
}

// nothing makes it the plan that touches nothing.
func (p *Plan) nothing() {
	p.Access, p.Slices, p.Ranges, p.Residual = None, []int{}, []run.Range{}, nil
}

// take sets ranges, slices and access.
func (p *Plan) take(ranges []planned) {
	p.Ranges = make([]run.Range, len(ranges))
	p.Slices = []int{}
	for i, r := range ranges {
		p.Ranges[i] = r.Range
		p.Access = max(p.Access, r.access)
		if len(p.Slices) == 0 || p.Slices[len(p.Slices)-1] != r.Slice {
			p.Slices = append(p.Slices, r.Slice)
		}
	}
	if p.Access != Full {
		return
	}
	p.Slices = make([]int, p.Of)
	for i := range p.Slices {
		p.Slices[i] = i
	}
	if len(ranges) == 1 && ranges[0].Low == nil && ranges[0].High == nil {
		p.Ranges = nil
	}
}

// Empty reports whether nothing is to be scanned.
func (p *Plan) Empty() bool { return p.Access == None }

// OnlySlices leaves only the given slices, which need not be sorted. A number
// that the table does not have is an error.
func (p *Plan) OnlySlices(only []int) error {
	for _, slice := range only {
		if slice < 0 || slice >= p.Of {
			return fault.Invalid("SLICE_RANGE", "there is no slice %d: the table has the slices 0 to %d", slice, p.Of-1)
		}
	}
	outside := func(slice int) bool { return !slices.Contains(only, slice) }
	p.Slices = slices.DeleteFunc(slices.Clone(p.Slices), outside)
	if len(p.Slices) == 0 {
		p.nothing()
		return nil
	}
	if p.Ranges != nil {
		p.Ranges = slices.DeleteFunc(slices.Clone(p.Ranges), func(r run.Range) bool {
			return r.Slice != everySlice && outside(r.Slice)
		})
	}
	return nil
}

// After leaves only the rows behind the row with this encoded primary key, in
// the order of keys or, if desc, the reverse.
func (p *Plan) After(encoded []byte, desc bool) {
	if p.Empty() {
		return
	}
	ranges := p.Ranges
	if ranges == nil {
		ranges = []run.Range{{Slice: everySlice}}
	}
	// No key is the beginning of another one.
	low, high := key.Next(encoded), []byte(nil)
	if desc {
		low, high = nil, slices.Clone(encoded)
	} else if low == nil {
		p.nothing()
		return
	}
	var left []run.Range
	for _, r := range ranges {
		if bytes.Compare(low, r.Low) > 0 {
			r.Low = low
		}
		if high != nil && (r.High == nil || bytes.Compare(high, r.High) < 0) {
			r.High = high
		}
		if r.High == nil || bytes.Compare(r.Low, r.High) < 0 {
			left = append(left, r)
		}
	}
	if len(left) == 0 {
		p.nothing()
		return
	}
	p.Ranges = left
	if p.Access == Full {
		return
	}
	p.Slices = []int{}
	for _, r := range left {
		if !slices.Contains(p.Slices, r.Slice) {
			p.Slices = append(p.Slices, r.Slice)
		}
	}
}

// Filter is the residual for a scan, or nil. It is safe for concurrent use.
func (p *Plan) Filter() run.Filter {
	if p.Residual == nil {
		return nil
	}
	return newFilter(p.Residual)
}
