package block

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// zoneBytes is how much of a text Min and Max keep: enough to tell keys of
// most tables apart, little beside a block.
const zoneBytes = 32

// Zone says what is in one column of a block. Min and Max bound its values in
// the order-preserving bytes of ZoneValue: every value that is neither null
// nor NaN is at least Min and at most Max. A nil Min or Max is no bound: none
// is known. The empty text's bytes are empty, not nil.
type Zone struct {
	Rows, Nulls        int
	NaN                bool   // some value is NaN
	Min, Max           []byte // at most 32 bytes; not aliased to the column
	MinExact, MaxExact bool   // the bound is a value, not cut or rounded
}

// ZoneOf is the zone of a canonical array. Nested types, intervals and types
// null have no bounds; text is cut to 32 bytes, Max rounded up, which is
// impossible, so that Max is nil, if all of them are FF.
func ZoneOf(arr arrow.Array) Zone {
	k, ok := kindOf(arr.DataType())
	z := Zone{Rows: arr.Len()}
	if !ok {
		return z
	}
	s := sourceOf(k, arr.Data(), 0)
	z.Nulls = s.nulls(0, z.Rows)
	if k.shape == shapeNull {
		z.Nulls = z.Rows
	}
	if z.Nulls == z.Rows {
		return z
	}
	switch {
	case k.shape == shapeBool:
		z.bools(&s)
	case k.shape == shapeText, k.tag == tagFixedBinary:
		z.texts(&s, k)
	case k.shape == shapeFixed && ordered(k):
		z.numbers(&s, k)
	}
	return z
}

// ZoneValue is the bytes of one value as they compare with Min and Max of its
// column's zones, uncut; false if it is null or NaN or of a type without
// order. They may alias the array's memory.
func ZoneValue(arr arrow.Array, row int) ([]byte, bool) {
	k, ok := kindOf(arr.DataType())
	if !ok || row < 0 || row >= arr.Len() {
		return nil, false
	}
	s := sourceOf(k, arr.Data(), 0)
	if s.null(row) {
		return nil, false
	}
	switch {
	case k.shape == shapeBool:
		if bit(s.values, s.off+row) {
			return []byte{1}, true
		}
		return []byte{0}, true
	case k.shape == shapeText, k.tag == tagFixedBinary:
		return s.textOf(k, row), true
	case k.shape == shapeFixed && ordered(k):
		value := s.values[(s.off+row)*k.width : (s.off+row+1)*k.width]
		if k.width > 8 {
			return wideBytes(value), true
		}
		number := s.sortable(k, row)
		if k.order == floating && isNaN(number, k.width) {
			return nil, false
		}
		return sortableBytes(number, k.width), true
	}
	return nil, false
}

// ordered reports whether a fixed-width type is a number with an order: all
// but intervals.
func ordered(k kind) bool { return k.order != opaque && k.tag != tagMonths }

func (z *Zone) bools(s *source) {
	seen := [2]bool{}
	for i := range z.Rows {
		if s.null(i) {
			continue
		}
		if bit(s.values, s.off+i) {
			seen[1] = true
		} else {
			seen[0] = true
		}
		if seen[0] && seen[1] {
			break
		}
	}
	z.Min, z.Max = []byte{1}, []byte{0}
	if seen[0] {
		z.Min[0] = 0
	}
	if seen[1] {
		z.Max[0] = 1
	}
	z.MinExact, z.MaxExact = true, true
}

// textOf is value i of text or fixed-size binary, never nil.
func (s *source) textOf(k kind, i int) []byte {
	value := []byte{}
	if k.shape == shapeText {
		if text := s.text(i); len(text) > 0 {
			value = text
		}
	} else if k.width > 0 {
		value = s.values[(s.off+i)*k.width : (s.off+i+1)*k.width]
	}
	return value
}

func (z *Zone) texts(s *source, k kind) {
	// The heads settle most comparisons; the texts are looked at where they tie.
	least, most := -1, -1
	var leastHead, mostHead uint64
	for i := range z.Rows {
		if z.Nulls > 0 && s.null(i) {
			continue
		}
		head := s.textHead(k, i)
		if least < 0 {
			least, most, leastHead, mostHead = i, i, head, head
			continue
		}
		if head < leastHead || head == leastHead && bytes.Compare(s.textOf(k, i), s.textOf(k, least)) < 0 {
			least, leastHead = i, head
		}
		if head > mostHead || head == mostHead && bytes.Compare(s.textOf(k, i), s.textOf(k, most)) > 0 {
			most, mostHead = i, head
		}
	}
	low, high := s.textOf(k, least), s.textOf(k, most)
	z.MinExact, z.MaxExact = len(low) <= zoneBytes, len(high) <= zoneBytes
	z.Min = append([]byte{}, low[:min(len(low), zoneBytes)]...)
	z.Max = append([]byte{}, high[:min(len(high), zoneBytes)]...)
	if !z.MaxExact {
		z.Max = roundUp(z.Max)
	}
}

// roundUp is the least short text greater than all that begin with the given
// one, nil if there is none. It works in place.
func roundUp(text []byte) []byte {
	for len(text) > 0 && text[len(text)-1] == 0xFF {
		text = text[:len(text)-1]
	}
	if len(text) == 0 {
		return nil
	}
	text[len(text)-1]++
	return text
}

// textHead is the first 8 bytes of text i as a number that orders like them;
// equal heads say nothing.
func (s *source) textHead(k kind, i int) uint64 {
	start, size := (s.off+i)*k.width, k.width
	if k.shape == shapeText {
		start = int(s.offs[s.off+i])
		size = int(s.offs[s.off+i+1]) - start
	}
	if start+8 <= len(s.values) { // what follows the text is cut off
		head := binary.BigEndian.Uint64(s.values[start:])
		if size < 8 {
			head &^= ^uint64(0) >> (8 * size)
		}
		return head
	}
	head := uint64(0)
	for j, b := range s.values[start:][:min(size, 8)] {
		head |= uint64(b) << (56 - 8*j)
	}
	return head
}

func (z *Zone) numbers(s *source, k kind) {
	z.MinExact, z.MaxExact = true, true
	if k.width > 8 {
		z.wide(s, k)
		return
	}
	if k.order == floating || z.Nulls > 0 {
		z.slow(s, k)
		return
	}
	least, most := uint64(0), uint64(0)
	values := s.values[s.off*k.width : (s.off+z.Rows)*k.width]
	switch {
	case k.width == 1 && k.order == signed:
		least, most = minMaxOf(words[int8](values))
	case k.width == 1:
		least, most = minMaxOf(values)
	case k.width == 2 && k.order == signed:
		least, most = minMaxOf(words[int16](values))
	case k.width == 2:
		least, most = minMaxOf(words[uint16](values))
	case k.width == 4 && k.order == signed:
		least, most = minMaxOf(words[int32](values))
	case k.width == 4:
		least, most = minMaxOf(words[uint32](values))
	case k.order == signed:
		least, most = minMaxOf(words[int64](values))
	default:
		least, most = minMaxOf(words[uint64](values))
	}
	flip := uint64(0)
	if k.order == signed {
		flip = 1 << (8*k.width - 1)
	}
	z.Min, z.Max = sortableBytes(least^flip, k.width), sortableBytes(most^flip, k.width)
}

// minMaxOf is the least and the greatest value, as the low bits of words.
func minMaxOf[T integer](values []T) (least, most uint64) {
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	return uint64(low), uint64(high)
}

// slow compares row by row: with nulls, and floats.
func (z *Zone) slow(s *source, k kind) {
	least, most, found := uint64(math.MaxUint64), uint64(0), false
	for i := range z.Rows {
		if s.null(i) {
			continue
		}
		number := s.sortable(k, i)
		if k.order == floating && isNaN(number, k.width) {
			z.NaN = true
			continue
		}
		found = true
		least, most = min(least, number), max(most, number)
	}
	if !found {
		z.MinExact, z.MaxExact = false, false
		return
	}
	z.Min, z.Max = sortableBytes(least, k.width), sortableBytes(most, k.width)
}

// wide compares decimals of 16 and 32 bytes.
func (z *Zone) wide(s *source, k kind) {
	limbs := k.width / 8
	values := words[uint64](s.values[s.off*k.width : (s.off+z.Rows)*k.width])
	if limbs == 2 && z.Nulls == 0 {
		if low, high, ok := minMaxNarrow(values); ok {
			z.Min, z.Max = signedWide(low), signedWide(high)
			return
		}
	}
	least, most := -1, -1
	for i := range z.Rows {
		if z.Nulls > 0 && s.null(i) {
			continue
		}
		value := values[i*limbs : (i+1)*limbs]
		if least < 0 || lessWide(value, values[least*limbs:(least+1)*limbs]) {
			least = i
		}
		if most < 0 || lessWide(values[most*limbs:(most+1)*limbs], value) {
			most = i
		}
	}
	at := func(i int) []byte { return s.values[(s.off+i)*k.width : (s.off+i+1)*k.width] }
	z.Min, z.Max = wideBytes(at(least)), wideBytes(at(most))
}

// minMaxNarrow is the least and the greatest of 128-bit numbers that all fit
// 64 bits; false if one does not.
func minMaxNarrow(values []uint64) (low, high int64, ok bool) {
	low, high = math.MaxInt64, math.MinInt64
	var odd uint64
	for len(values) >= 2 {
		v := int64(values[0])
		odd |= values[1] ^ uint64(v>>63)
		low, high = min(low, v), max(high, v)
		values = values[2:]
	}
	return low, high, odd == 0
}

// signedWide is wideBytes of a 128-bit number that fits 64 bits.
func signedWide(v int64) []byte {
	var value [16]byte
	binary.LittleEndian.PutUint64(value[:], uint64(v))
	binary.LittleEndian.PutUint64(value[8:], uint64(v>>63))
	return wideBytes(value[:])
}

// lessWide compares two's complement numbers, lowest limb first.
func lessWide(a, b []uint64) bool {
	top := len(a) - 1
	b = b[:len(a)]
	if a[top] != b[top] {
		return int64(a[top]) < int64(b[top])
	}
	for i := top - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// wideBytes is a little-endian two's complement number in bytes that order
// like it: big-endian with the sign flipped.
func wideBytes(value []byte) []byte {
	out := make([]byte, len(value))
	for i, b := range value {
		out[len(out)-1-i] = b
	}
	out[0] ^= 0x80
	return out
}

// sortable is value i of at most 8 bytes as a number that orders like it: the
// sign flipped; of floats, all bits flipped below zero, and −0.0 as 0.0.
func (s *source) sortable(k kind, i int) uint64 {
	at := (s.off + i) * k.width
	var number uint64
	switch k.width {
	case 1:
		number = uint64(s.values[at])
	case 2:
		number = uint64(binary.LittleEndian.Uint16(s.values[at:]))
	case 4:
		number = uint64(binary.LittleEndian.Uint32(s.values[at:]))
	default:
		number = binary.LittleEndian.Uint64(s.values[at:])
	}
	sign := uint64(1) << (8*k.width - 1)
	switch {
	case k.order == unsigned:
		return number
	case k.order == signed:
		return number ^ sign
	case number == sign:
		return sign
	case number&sign != 0:
		return ^number & (sign<<1 - 1)
	}
	return number | sign
}

// isNaN reports whether a sortable number stands for NaN: its bits lie beyond
// those of the infinities.
func isNaN(sortable uint64, width int) bool {
	infinity := uint64(0x7FF0000000000000)
	switch width {
	case 2:
		infinity = 0x7C00
	case 4:
		infinity = 0x7F800000
	}
	sign := uint64(1) << (8*width - 1)
	return sortable > infinity|sign || sortable < ^(infinity|sign)&(sign<<1-1)
}

// sortableBytes is the number big-endian in width bytes.
func sortableBytes(number uint64, width int) []byte {
	out := make([]byte, 8)
	binary.BigEndian.PutUint64(out, number<<(64-8*width))
	return out[:width:width]
}
