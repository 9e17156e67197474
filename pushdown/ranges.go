package pushdown

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

const (
	// maxRanges bounds the key ranges of one plan, a seek each.
	maxRanges = limits.InValues
	// maxEverywhere bounds the ranges that every slice is asked for, because the
	// slice is not known: beyond, one wide range costs less than the seeks.
	maxEverywhere = 1024
	everySlice    = -1
	// maxRangeBytes bounds about what the ends of all ranges take: a product of
	// short lists of long texts is large.
	maxRangeBytes = 32 << 20
	// maxEnd is how much of an end is kept: it compares with every key, which
	// has one byte less at most, as the whole does.
	maxEnd = limits.KeyBytes + 1
)

// planned is one key range on its way into a plan.
type planned struct {
	run.Range
	access Access
}

// ranger turns boxes into key ranges of one table.
type ranger struct {
	schema *shards.Schema
	budget int // ranges that one box may give
	bytes  int // about what these may take
	out    []planned
	// loose has the columns that some box restricts and its ranges do not: what
	// is said about these is not answered by the ranges.
	loose map[uint32]bool
}

// place plans boxes, none of which is empty. An error is a fault of ours.
func place(schema *shards.Schema, list []box) (*ranger, error) {
	r := &ranger{schema: schema, budget: max(1, maxRanges/max(1, len(list))), bytes: maxRangeBytes / max(1, len(list)), loose: map[uint32]bool{}}
	for _, b := range list {
		if err := r.place(b); err != nil {
			return nil, err
		}
	}
	r.gather()
	return r, nil
}

// prefix is the encoded values of the first key columns, one value each.
type prefix struct {
	bytes []byte
	slice int
}

// place adds the ranges of one box: the product of the leading key columns that
// have single values, each cut by the first column that has not.
func (r *ranger) place(b box) error {
	sets := make([]set, len(r.schema.KeyColumns()))
	domains := make([]domain, len(sets))
	for _, restricted := range b {
		if at := restricted.column.key; at >= 0 {
			sets[at], domains[at] = restricted.set, restricted.column.domain
		} else {
			r.loose[restricted.column.id] = true
		}
	}
	sharding := len(r.schema.Sharding)
	budget := r.budget
	for at := range sharding {
		if sets[at] == nil || !domains[at].points(sets[at]) {
			budget = min(budget, maxEverywhere)
		}
	}
	prefixes := []prefix{{slice: everySlice}}
	at := 0
	for ; at < len(sets) && sets[at] != nil && domains[at].points(sets[at]); at++ {
		values, err := shortEnds(domains[at], sets[at])
		if err != nil {
			return err
		}
		if !r.affords(prefixes, values, budget) {
			break
		}
		if prefixes = r.extend(prefixes, values, at); len(prefixes) == 0 {
			return nil
		}
	}
	access := RangeAccess
	switch {
	case at < sharding:
		access = Full
	case at == len(sets):
		access = Point
	case at == sharding && sets[at] == nil:
		access = Shard
	}
	answered := at // the columns before it are said by the ranges
	if at < len(sets) && sets[at] != nil {
		values, err := shortEnds(domains[at], sets[at])
		if err != nil {
			return err
		}
		if r.affords(prefixes, values, budget) {
			answered++
		} else if values, err = shortEnds(domains[at], hull(sets[at])); err != nil {
			return err
		}
		r.cut(prefixes, values, access)
	} else {
		for _, p := range prefixes {
			r.add(p.slice, p.bytes, key.Next(p.bytes), access)
		}
	}
	for ; answered < len(sets); answered++ {
		if sets[answered] != nil {
			r.loose[r.schema.Columns[r.schema.KeyColumns()[answered]].ID] = true
		}
	}
	return nil
}

// affords reports whether every prefix may be followed by every value.
func (r *ranger) affords(prefixes []prefix, values []bounds, budget int) bool {
	ranges := len(prefixes) * len(values)
	if ranges <= 1 {
		return true
	}
	bytes := 0
	for _, p := range prefixes {
		bytes += len(p.bytes) * len(values)
	}
	for _, v := range values {
		bytes += max(len(v.low), len(v.high)) * len(prefixes)
	}
	return ranges <= budget && 2*bytes <= r.bytes
}

// hull is the span from the set's first value to its last.
func hull(s set) set {
	last := s[len(s)-1]
	return set{{low: s[0].low, high: last.high, bounded: last.bounded}}
}

// extend appends every value of the key column at to every prefix. What is
// longer than any key is left out.
func (r *ranger) extend(prefixes []prefix, values []bounds, at int) []prefix {
	out := make([]prefix, 0, len(prefixes)*len(values))
	for _, p := range prefixes {
		for _, v := range values {
			if len(p.bytes)+len(v.low) > limits.KeyBytes {
				continue
			}
			next := prefix{slices.Concat(p.bytes, v.low), p.slice}
			if at+1 == len(r.schema.Sharding) {
				next.slice = r.schema.SliceOf(next.bytes)
			}
			out = append(out, next)
		}
	}
	return out
}

// cut adds, for every prefix, the ranges of the next column.
func (r *ranger) cut(prefixes []prefix, values []bounds, access Access) {
	for _, p := range prefixes {
		for _, v := range values {
			high := key.Next(p.bytes)
			if v.high != nil {
				high = slices.Concat(p.bytes, v.high)
			}
			r.add(p.slice, slices.Concat(p.bytes, v.low), high, access)
		}
	}
}

func (r *ranger) add(slice int, low, high []byte, access Access) {
	low, high = low[:min(len(low), maxEnd)], high[:min(len(high), maxEnd)]
	if len(low) == 0 {
		low = nil
	}
	if high != nil && bytes.Compare(low, high) >= 0 {
		return // no key is that long
	}
	r.out = append(r.out, planned{run.Range{Slice: slice, Low: low, High: high}, access})
}

// gather sorts the ranges and joins those that overlap, so that no row is read
// twice. If one range is for every slice, all are.
func (r *ranger) gather() {
	everywhere := slices.ContainsFunc(r.out, func(p planned) bool { return p.Slice == everySlice })
	if everywhere {
		for i := range r.out {
			r.out[i].Slice, r.out[i].access = everySlice, Full
		}
	}
	slices.SortFunc(r.out, func(a, b planned) int {
		return cmp.Or(cmp.Compare(a.Slice, b.Slice), bytes.Compare(a.Low, b.Low))
	})
	joined := r.out[:0]
	for _, next := range r.out {
		if len(joined) > 0 && joined[len(joined)-1].join(next) {
			continue
		}
		joined = append(joined, next)
	}
	r.out = joined
	if everywhere && len(r.out) > maxEverywhere {
		last := r.out[len(r.out)-1]
		r.out[0].High = last.High
		r.out = r.out[:1]
		for _, c := range r.schema.KeyColumns() {
			r.loose[r.schema.Columns[c].ID] = true
		}
	}
}

// join adds a range that begins no earlier, if it overlaps. Ranges that only
// touch are joined too, but for single keys and whole sharding keys: each of
// those can be looked up by itself.
func (p *planned) join(next planned) bool {
	if p.Slice != next.Slice {
		return false
	}
	if p.High != nil {
		order := bytes.Compare(p.High, next.Low)
		parts := p.access == next.access && (p.access == RangeAccess || p.access == Full)
		if order < 0 || order == 0 && !parts {
			return false
		}
		if next.High == nil || bytes.Compare(p.High, next.High) < 0 {
			p.High = next.High
		}
	}
	p.access = max(p.access, next.access)
	return true
}

// bounds is a span of one key column in the key's encoding; high is nil if the
// span is unbounded.
type bounds struct{ low, high []byte }

// shortEnds is encodeSet with no more of each end than maxEnd.
func shortEnds(d domain, s set) ([]bounds, error) {
	out, err := encodeSet(d, s)
	for i := range out {
		out[i].low, out[i].high = out[i].low[:min(len(out[i].low), maxEnd)], out[i].high[:min(len(out[i].high), maxEnd)]
	}
	return out, err
}

// encodeSet encodes a set of a key column. All domains but strings and binary
// are written as in keys already.
func encodeSet(d domain, s set) ([]bounds, error) {
	out := make([]bounds, len(s))
	if d.width > 0 {
		for i, span := range s {
			out[i].low = []byte(span.low)
			if span.bounded {
				out[i].high = []byte(span.high)
			}
		}
		return out, nil
	}
	values := make([]string, 0, 2*len(s))
	for _, span := range s {
		values = append(values, span.low, span.high)
	}
	column := binaryArray(values)
	defer column.Release()
	for i, span := range s {
		var err error
		if out[i].low, err = key.AppendValue(nil, column, 2*i); err != nil {
			return nil, err
		}
		if !span.bounded {
			continue
		}
		if out[i].high, err = key.AppendValue(nil, column, 2*i+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func binaryArray(values []string) arrow.Array {
	builder := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	defer builder.Release()
	builder.Reserve(len(values))
	for _, value := range values {
		builder.Append([]byte(value))
	}
	return builder.NewArray()
}
