package run

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
)

// matcher is a filter that says of one row what it is to say.
type matcher interface {
	Filter
	matches(r row) bool
}

// noteBelow is a filter: the text is below a bound, or null if that is wanted
// too.
type noteBelow struct {
	bound string
	null  bool
}

func (f noteBelow) Columns() []uint32 { return []uint32{colText} }

func (f noteBelow) Prune(zone func(uint32) (block.Zone, bool)) bool {
	z, ok := zone(colText)
	if !ok || f.null && z.Nulls > 0 {
		return false
	}
	return z.Nulls == z.Rows || z.Min != nil && string(z.Min) >= f.bound
}

func (f noteBelow) Mask(cols []arrow.Array, rows int, keep []bool) {
	for i := range rows {
		r := row{}
		if cols[0].IsValid(i) {
			r.note = ptr(cols[0].(*array.String).Value(i))
		}
		keep[i] = keep[i] && f.matches(r)
	}
}

func (f noteBelow) matches(r row) bool {
	if r.note == nil {
		return f.null
	}
	return *r.note < f.bound
}

// allOf is true where all its parts are.
type allOf []matcher

func (f allOf) Parts() []Filter {
	var parts []Filter
	for _, part := range f {
		parts = append(parts, part)
	}
	return parts
}

func (f allOf) Columns() []uint32 {
	var ids []uint32
	for _, part := range f {
		for _, id := range part.Columns() {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

func (f allOf) Prune(zone func(uint32) (block.Zone, bool)) bool {
	return slices.ContainsFunc(f, func(part matcher) bool { return part.Prune(zone) })
}

func (f allOf) Mask(cols []arrow.Array, rows int, keep []bool) {
	ids := f.Columns()
	for _, part := range f {
		var own []arrow.Array
		for _, id := range part.Columns() {
			own = append(own, cols[slices.Index(ids, id)])
		}
		part.Mask(own, rows, keep)
	}
}

func (f allOf) matches(r row) bool {
	return !slices.ContainsFunc(f, func(part matcher) bool { return !part.matches(r) })
}

func TestMasksAreCountedAndPicked(t *testing.T) {
	for n := range 70 {
		mask := make([]bool, n)
		var want []uint32
		for i := range mask {
			if i*i%7 < 3 {
				mask[i] = true
				want = append(want, uint32(i))
			}
		}
		require.Equal(t, len(want), count(mask))
		require.Equal(t, want, append([]uint32(nil), pick([]uint32{9}, mask)...))
	}
}
