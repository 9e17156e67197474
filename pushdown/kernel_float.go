package pushdown

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// floatSpan is the floats from low to high, both included.
type floatSpan[T float32 | float64] struct{ low, high T }

func floatKernel[T float32 | float64](d domain, s set, flip byte) kernel {
	at := func(order uint64) T {
		if d.width == 4 {
			return T(math.Float32frombits(uint32(d.float.bitsAt(order))))
		}
		return T(math.Float64frombits(d.float.bitsAt(order)))
	}
	spans := make([]floatSpan[T], len(s))
	for i, span := range s {
		last := d.float.highest()
		if span.bounded {
			last = d.float.below(fromBigEndian(span.high))
		}
		spans[i] = floatSpan[T]{at(fromBigEndian(span.low)), at(last)}
	}
	switch {
	case len(spans) <= fewSpans:
		return func(column arrow.Array, keep []byte) {
			for i, v := range values[T](column) {
				member := byte(0)
				for _, in := range spans {
					member |= one(v >= in.low) & one(v <= in.high)
				}
				keep[i] &= member ^ flip
			}
		}
	case d.points(s):
		table := newIntegerSet(len(spans))
		for _, in := range spans {
			table.add(math.Float64bits(float64(in.low)))
		}
		return func(column arrow.Array, keep []byte) {
			for i, v := range values[T](column) {
				// −0.0 + 0 is 0.0; no NaN is in the table.
				keep[i] &= one(table.has(math.Float64bits(float64(v)+0))) ^ flip
			}
		}
	}
	return func(column arrow.Array, keep []byte) {
		for i, v := range values[T](column) {
			at, end := 0, len(spans)
			for at < end {
				middle := (at + end) / 2
				if spans[middle].low <= v {
					at = middle + 1
				} else {
					end = middle
				}
			}
			keep[i] &= one(at > 0 && v <= spans[max(at, 1)-1].high) ^ flip
		}
	}
}

// halfKernel compares half floats by their order: NaNs lie outside all spans.
func halfKernel(d domain, s set, flip byte) kernel {
	member := make([]uint64, 1<<16/64)
	for _, span := range s {
		last := d.float.highest()
		if span.bounded {
			last = fromBigEndian(span.high) - 1
		}
		for order := fromBigEndian(span.low); order <= last; order++ {
			bits := d.float.bitsAt(order)
			member[bits/64] |= 1 << (bits % 64)
		}
	}
	// −0.0 is a member if 0.0 is: its own order lies below that.
	const negativeZero = 1 << 15
	member[negativeZero/64] = member[negativeZero/64]&^1 | member[0]&1
	return func(column arrow.Array, keep []byte) {
		for i, v := range values[uint16](column) {
			keep[i] &= byte(member[v/64]>>(v%64)&1) ^ flip
		}
	}
}
