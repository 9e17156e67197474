package block

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

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

// texts finds the bounds of text. The heads, 8 bytes of each, settle most
// comparisons; the texts are looked at where they tie.
func (z *Zone) texts(s *source, k kind) {
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
		if head < leastHead || head == leastHead && s.compareTails(k, i, least) < 0 {
			least, leastHead = i, head
		}
		if head > mostHead || head == mostHead && s.compareTails(k, i, most) > 0 {
			most, mostHead = i, head
		}
	}
	z.cut(s.textOf(k, least), s.textOf(k, most))
}

// cut sets the bounds to the least and the greatest text.
func (z *Zone) cut(low, high []byte) {
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
	start, end := s.where(k, i)
	return wordAt(s.values, start, end)
}

// where is where text i lies.
func (s *source) where(k kind, i int) (start, end int) {
	if k.shape == shapeText {
		return int(s.offs[s.off+i]), int(s.offs[s.off+i+1])
	}
	return (s.off + i) * k.width, (s.off + i + 1) * k.width
}

// compareTails compares texts whose first 8 bytes, filled with zeros, are equal:
// 8 bytes at a time, as texts that repeat in a column are mostly short.
func (s *source) compareTails(k kind, i, j int) int {
	a, aEnd := s.where(k, i)
	b, bEnd := s.where(k, j)
	for {
		if aEnd-a <= 8 || bEnd-b <= 8 { // one goes on behind the other, or none
			return cmp.Compare(aEnd-a, bEnd-b)
		}
		a, b = a+8, b+8
		if aEnd-a > compareLong && bEnd-b > compareLong {
			return bytes.Compare(s.values[a:aEnd], s.values[b:bEnd])
		}
		x, y := wordAt(s.values, a, aEnd), wordAt(s.values, b, bEnd)
		if x != y {
			return cmp.Compare(x, y)
		}
	}
}

// compareLong bytes are worth a call.
const compareLong = 24

// wordAt is the first 8 bytes of values[start:end] as a number that orders like
// them, filled with zeros.
func wordAt(values []byte, start, end int) uint64 {
	if start+8 <= len(values) { // what follows the text is cut off
		word := binary.BigEndian.Uint64(values[start:])
		if size := end - start; size < 8 {
			word &^= ^uint64(0) >> (8 * size)
		}
		return word
	}
	return lastWord(values[start:min(end, start+8)])
}

func lastWord(text []byte) (word uint64) {
	for j, b := range text {
		word |= uint64(b) << (56 - 8*j)
	}
	return word
}
