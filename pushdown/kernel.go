package pushdown

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// A kernel is keep[i] &= (value i is a member of the set) ^ flip over one whole
// array, without a call per row. It looks at values only: what it makes of the
// place of a null is cleared by its caller.
type kernel func(column arrow.Array, keep []byte)

// fewSpans is how many spans a kernel tries one after the other; for more it
// looks values up.
const fewSpans = 8

// setMask tests one column against a set.
type setMask struct {
	slot   int
	column *column
	set    set
	except bool
	kernel kernel
	zones  func() zoneSet
}

func (e *comparison) compile(c *compiler) mask {
	switch {
	case e.except && e.withNull, !e.except && len(e.set) == 0:
		return constMask(false)
	case e.column.domain.full(e.set) && e.column.domain.kind != float:
		if e.except {
			return constMask(false)
		}
		return (&nullTest{column: e.column, except: true}).compile(c)
	case len(e.set) == 0: // of a literal that no value equals
		return (&nullTest{column: e.column, except: true}).compile(c)
	}
	return &setMask{
		slot: c.slot(e.column), column: e.column, set: e.set, except: e.except,
		kernel: newKernel(e.column.domain, e.set, e.except),
		zones:  zonesOf(e.column, e.set),
	}
}

func (m *setMask) apply(columns []arrow.Array, keep []byte) {
	column := columns[m.slot]
	if column.NullN() == column.Len() {
		clear(keep)
		return
	}
	m.kernel(column, keep)
	clearNulls(column, keep)
}

func (m *setMask) cost() int {
	cost := 2
	if m.column.domain.bytewise() || m.column.domain.width > 8 {
		cost = 6
	}
	if len(m.set) > 1 {
		cost *= 2
	}
	return cost
}

func newKernel(d domain, s set, except bool) kernel {
	flip := byte(0)
	if except {
		flip = 1
	}
	switch {
	case d.kind == boolean:
		return boolKernel(s, flip)
	case d.kind == float && d.width == 2:
		return halfKernel(d, s, flip)
	case d.kind == float && d.width == 4:
		return floatKernel[float32](d, s, flip)
	case d.kind == float:
		return floatKernel[float64](d, s, flip)
	case d.bytewise():
		return bytesKernel(d, s, flip)
	case d.width == 16 && len(s) == 1:
		return decimalKernel(s[0], flip)
	case d.width > 8:
		return wideKernel(d, s, flip)
	case d.kind == unsignedInteger && d.width == 1:
		return integerKernel[uint8](d, s, flip)
	case d.kind == unsignedInteger && d.width == 2:
		return integerKernel[uint16](d, s, flip)
	case d.kind == unsignedInteger && d.width == 4:
		return integerKernel[uint32](d, s, flip)
	case d.kind == unsignedInteger:
		return integerKernel[uint64](d, s, flip)
	case d.width == 1:
		return integerKernel[int8](d, s, flip)
	case d.width == 2:
		return integerKernel[int16](d, s, flip)
	case d.width == 4:
		return integerKernel[int32](d, s, flip)
	}
	return integerKernel[int64](d, s, flip)
}

// values is the column's values of fixed width.
func values[T any](column arrow.Array) []T {
	return valuesOf[T](column, int(unsafe.Sizeof(*new(T))))
}

// valuesOf is the column's values of so many bytes each, as pieces of type T.
func valuesOf[T any](column arrow.Array, width int) []T {
	data := column.Data()
	if column.Len() == 0 {
		return nil
	}
	raw := data.Buffers()[1].Bytes()
	raw = raw[data.Offset()*width : (data.Offset()+column.Len())*width]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/int(unsafe.Sizeof(*new(T))))
}

// one is 1 for true: the compiler makes no branch of it.
func one(truth bool) byte {
	if truth {
		return 1
	}
	return 0
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// integerAt is the value that is written as order, extended to 64 bits.
func (d domain) integerAt(order uint64) uint64 {
	if d.kind == unsignedInteger {
		return order
	}
	shift := 64 - 8*d.width
	return uint64(int64((order^1<<(8*d.width-1))<<shift) >> shift)
}

// interval is the integers from low to low+width.
type interval struct{ low, width uint64 }

func (d domain) interval(s span) interval {
	low := d.integerAt(fromBigEndian(s.low))
	last := uint64(math.MaxUint64) >> (64 - 8*d.width)
	if s.bounded {
		last = fromBigEndian(s.high) - 1
	}
	return interval{low, d.integerAt(last) - low}
}

func integerKernel[T integer](d domain, s set, flip byte) kernel {
	intervals := make([]interval, len(s))
	for i, span := range s {
		intervals[i] = d.interval(span)
	}
	switch {
	case len(intervals) == 1:
		low, width := intervals[0].low, intervals[0].width
		return func(column arrow.Array, keep []byte) {
			for i, v := range values[T](column) {
				keep[i] &= one(uint64(v)-low <= width) ^ flip
			}
		}
	case len(intervals) <= fewSpans:
		return func(column arrow.Array, keep []byte) {
			for i, v := range values[T](column) {
				member := byte(0)
				for _, in := range intervals {
					member |= one(uint64(v)-in.low <= in.width)
				}
				keep[i] &= member ^ flip
			}
		}
	case d.points(s):
		table := newIntegerSet(len(intervals))
		for _, in := range intervals {
			table.add(in.low)
		}
		return func(column arrow.Array, keep []byte) {
			for i, v := range values[T](column) {
				keep[i] &= one(table.has(uint64(v))) ^ flip
			}
		}
	}
	return func(column arrow.Array, keep []byte) {
		for i, v := range values[T](column) {
			// The last interval that begins at or below v.
			at, end := 0, len(intervals)
			for at < end {
				middle := (at + end) / 2
				if T(intervals[middle].low) <= v {
					at = middle + 1
				} else {
					end = middle
				}
			}
			member := byte(0)
			if at > 0 {
				member = one(uint64(v)-intervals[at-1].low <= intervals[at-1].width)
			}
			keep[i] &= member ^ flip
		}
	}
}

// integerSet is an open-addressing hash set.
type integerSet struct {
	slots []uint64
	used  []bool
	shift int
}

func newIntegerSet(n int) *integerSet {
	size := bits.Len(uint(2 * n))
	return &integerSet{make([]uint64, 1<<size), make([]bool, 1<<size), 64 - size}
}

// place is where the search for a value begins (Fibonacci hashing).
func (t *integerSet) place(v uint64) int { return int(v * 0x9E3779B97F4A7C15 >> t.shift) }

func (t *integerSet) add(v uint64) {
	at := t.place(v)
	for t.used[at] && t.slots[at] != v {
		at = (at + 1) & (len(t.slots) - 1)
	}
	t.slots[at], t.used[at] = v, true
}

func (t *integerSet) has(v uint64) bool {
	at := t.place(v)
	for t.used[at] {
		if t.slots[at] == v {
			return true
		}
		at = (at + 1) & (len(t.slots) - 1)
	}
	return false
}

func boolKernel(s set, flip byte) kernel {
	var member [2]byte
	for _, span := range s {
		for value, at := range []string{"\x00", "\x01"} {
			if at >= span.low && (!span.bounded || at < span.high) {
				member[value] = 1
			}
		}
	}
	return func(column arrow.Array, keep []byte) {
		values, offset := column.Data().Buffers()[1].Bytes(), column.Data().Offset()
		for i := range keep {
			at := offset + i
			keep[i] &= member[values[at>>3]>>(at&7)&1] ^ flip
		}
	}
}
