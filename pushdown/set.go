package pushdown

import (
	"slices"
	"strings"
)

// span is the values from one cut up to another of one domain; it is never
// empty. bounded is false if it has no end.
type span struct {
	low     string
	high    string
	bounded bool
}

// set is a set of values of one domain: spans in order, none of which overlap.
// Neighbours may touch: the values of an IN list stay apart, each a span.
type set []span

func newSpan(from, behind cut) (span, bool) {
	if from.end || !behind.end && behind.at <= from.at {
		return span{}, false
	}
	return span{low: from.at, high: behind.at, bounded: !behind.end}, true
}

// setOf is the set of one span, or the empty set if that is empty.
func setOf(from, behind cut) set {
	if s, ok := newSpan(from, behind); ok {
		return set{s}
	}
	return nil
}

// full reports whether the set has every value in one span.
func (d domain) full(s set) bool {
	return len(s) == 1 && !s[0].bounded && s[0].low == d.least().at
}

// endsBefore reports whether a's end is not behind b's.
func (a span) endsBefore(b span) bool {
	return a.bounded && (!b.bounded || a.high < b.high)
}

// normalise sorts spans, drops repeated ones and joins those that overlap. It
// takes the slice over.
func normalise(spans []span) set {
	inOrder := slices.IsSortedFunc(spans, func(a, b span) int { return strings.Compare(a.low, b.low) })
	if !inOrder {
		slices.SortFunc(spans, func(a, b span) int { return strings.Compare(a.low, b.low) })
	}
	out := spans[:0]
	for _, s := range spans {
		if len(out) > 0 {
			last := &out[len(out)-1]
			if !last.bounded || s.low < last.high {
				if last.endsBefore(s) {
					last.high, last.bounded = s.high, s.bounded
				}
				continue
			}
		}
		out = append(out, s)
	}
	return set(out)
}

// intersect has the values that are in both sets.
func (s set) intersect(other set) set {
	var out set
	for len(s) > 0 && len(other) > 0 {
		a, b := s[0], other[0]
		both := span{low: max(a.low, b.low), high: b.high, bounded: b.bounded}
		if a.endsBefore(b) {
			both.high, both.bounded = a.high, a.bounded
		}
		if !both.bounded || both.low < both.high {
			out = append(out, both)
		}
		if a.endsBefore(b) {
			s = s[1:]
		} else {
			other = other[1:]
		}
	}
	return out
}

// complement has the values of the domain that are not in the set.
func (d domain) complement(s set) set {
	var out set
	from := d.least()
	for _, span := range s {
		if gap, ok := newSpan(from, cut{at: span.low}); ok {
			out = append(out, gap)
		}
		if !span.bounded {
			return out
		}
		from = cut{at: span.high}
	}
	if rest, ok := newSpan(from, endCut); ok {
		out = append(out, rest)
	}
	return out
}

// point reports whether a span is one value.
func (d domain) point(s span) bool {
	if d.width == 0 {
		return s.bounded && len(s.high) == len(s.low)+1 && s.high[len(s.low)] == 0 && s.high[:len(s.low)] == s.low
	}
	if d.kind == float {
		order := fromBigEndian(s.low)
		if !s.bounded {
			return order == d.float.highest()
		}
		return fromBigEndian(s.high) == d.float.above(order)
	}
	if d.kind == boolean && s.low == "\x01" {
		return true
	}
	next := successor(s.low)
	return next.end == !s.bounded && next.at == s.high
}

// points reports whether every span of the set is one value.
func (d domain) points(s set) bool {
	for _, span := range s {
		if !d.point(span) {
			return false
		}
	}
	return true
}
