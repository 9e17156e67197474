package block

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
)

// text appends the body of n texts, of which some but not all may be null: one
// value, a dictionary if values repeat, else lengths and bytes.
func (e *Encoder) text(dst []byte, s *source, lo, n, nulls int) ([]byte, byte, error) {
	plain := e.lengths(s, lo, n)
	if !spend(&e.plain, plain) {
		return nil, 0, errTooLarge
	}
	if nulls == 0 && sameText(s, lo, n) {
		return append(dst, s.text(lo)...), encConstant, nil
	}
	if e.dictText(s, lo, n) {
		return e.appendDictText(dst, n), encDict, nil
	}
	first, last := s.span(lo, lo+n)
	body := s.values[first:last]
	if last-first != plain { // nulls hide text
		body = e.visible(s, lo, n, plain)
	}
	dst, compressed := e.appendText(dst, e.words, body)
	if compressed {
		return dst, encTextLZ4, nil
	}
	return dst, encText, nil
}

// lengths puts the lengths of texts or lists in e.words, nulls as 0, and
// returns their sum.
func (e *Encoder) lengths(s *source, lo, n int) int {
	lengths := grown(&e.words, n)
	offs := s.offs[s.off+lo : s.off+lo+n+1]
	last := offs[0]
	for i, off := range offs[1:] {
		lengths[i] = uint64(off - last)
		last = off
	}
	total := int(last - offs[0])
	if s.valid != nil {
		eachZero(s.valid, s.off+lo, n, func(i int) {
			total -= int(lengths[i])
			lengths[i] = 0
		})
	}
	return total
}

func sameText(s *source, lo, n int) bool {
	first := s.text(lo)
	for i := 1; i < n; i++ {
		if !bytes.Equal(first, s.text(lo+i)) {
			return false
		}
	}
	return true
}

// visible is the text of the rows that are not null.
func (e *Encoder) visible(s *source, lo, n, size int) []byte {
	out := grown(&e.bytes, size)
	at := 0
	for i := range n {
		if !s.null(lo + i) {
			at += copy(out[at:], s.text(lo+i))
		}
	}
	return out
}

// appendText appends a text area: width of lengths 1 byte, least length 4
// bytes, bytes in all 4 bytes, packed lengths, the bytes, in LZ4 if that helps.
func (e *Encoder) appendText(dst []byte, lengths []uint64, body []byte) ([]byte, bool) {
	dst = appendLengths(dst, lengths, len(body))
	if compressed, ok := e.compress(body); ok {
		return append(dst, compressed...), true
	}
	return append(dst, body...), false
}

func appendLengths(dst []byte, lengths []uint64, total int) []byte {
	least, most := minMax(lengths, false)
	width := packWidth(most - least)
	dst = append(dst, byte(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(least))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(total))
	return pack(dst, lengths, least, 1, width)
}

// dictionary numbers distinct values in the order they come.
type dictionary struct {
	seed   maphash.Seed
	seeded bool
	slots  []uint32 // code+1 by hash, 0 for none; a power of two
	values [][]byte // by code; they alias the column
	limit  int
}

// reset empties the dictionary; it takes at most limit values.
func (d *dictionary) reset(limit int) {
	if !d.seeded {
		d.seed, d.seeded = maphash.MakeSeed(), true
	}
	size := 16
	for size < 2*limit {
		size *= 2
	}
	clear(grown(&d.slots, size))
	clear(d.values[:cap(d.values)])
	d.values = d.values[:0]
	d.limit = limit
}

// hash mixes all bytes of a value. Only speed depends on it, and not much: a
// dictionary is small.
func (d *dictionary) hash(value []byte) uint64 {
	var a, b uint64
	switch n := len(value); {
	case n > 16:
		return maphash.Bytes(d.seed, value)
	case n >= 8:
		a, b = binary.LittleEndian.Uint64(value), binary.LittleEndian.Uint64(value[n-8:])
	case n >= 4:
		a, b = uint64(binary.LittleEndian.Uint32(value)), uint64(binary.LittleEndian.Uint32(value[n-4:]))
	case n > 0:
		a, b = uint64(value[0])|uint64(value[n/2])<<8|uint64(value[n-1])<<16, uint64(n)
	}
	high, low := bits.Mul64(a^0x9E3779B97F4A7C15, b^0xD6E8FEB86659FD93)
	return high ^ low ^ uint64(len(value))
}

// code is the number of a value, false if it is one too many.
func (d *dictionary) code(value []byte) (uint64, bool) {
	mask := uint64(len(d.slots) - 1)
	at := d.hash(value) & mask
	for {
		slot := d.slots[at]
		if slot == 0 {
			break
		}
		if bytes.Equal(d.values[slot-1], value) {
			return uint64(slot - 1), true
		}
		at = (at + 1) & mask
	}
	if len(d.values) == d.limit {
		return 0, false
	}
	d.values = append(d.values, value)
	d.slots[at] = uint32(len(d.values))
	return uint64(len(d.values) - 1), true
}

// dictText fills the dictionary and e.codes; false if a value occurs less than
// four times on average. Nulls take the code of the empty text.
func (e *Encoder) dictText(s *source, lo, n int) bool {
	if n < 4 {
		return false
	}
	e.dict.reset(n / 4)
	codes := grown(&e.codes, n)
	var last []byte
	var code uint64
	for i := range codes {
		var value []byte
		if !s.null(lo + i) {
			value = s.text(lo + i)
		}
		if i == 0 || !bytes.Equal(value, last) {
			var ok bool
			if code, ok = e.dict.code(value); !ok {
				return false
			}
			last = value
		}
		codes[i] = code
	}
	return true
}

// appendDictText appends: width of codes 1 byte, number of values 4 bytes,
// packed codes, 1 if the values' bytes are in LZ4 else 0, a text area.
func (e *Encoder) appendDictText(dst []byte, n int) []byte {
	dst = e.appendCodes(dst)
	lengths := grown(&e.words, len(e.dict.values))
	body := e.bytes[:0]
	for i, value := range e.dict.values {
		lengths[i] = uint64(len(value))
		body = append(body, value...)
	}
	e.bytes = body
	at := len(dst)
	dst, compressed := e.appendText(append(dst, 0), lengths, body)
	if compressed {
		dst[at] = 1
	}
	return dst
}

func (e *Encoder) appendCodes(dst []byte) []byte {
	width := packWidth(uint64(len(e.dict.values) - 1))
	dst = append(dst, byte(width))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(e.dict.values)))
	return pack(dst, e.codes, 0, 1, width)
}

// dictFixed appends a dictionary of fixed-width values: width of codes 1 byte,
// number of values 4 bytes, packed codes, the values. It fails if fewer than
// eight rows share a value on average or other, which is what the best other
// encoding takes, is less.
func (e *Encoder) dictFixed(dst []byte, s *source, lo, n, w int, values []byte, other int) ([]byte, bool) {
	if n < 16 || w == 0 {
		return dst, false
	}
	e.dict.reset(n / 8)
	codes := grown(&e.codes, n)
	var last []byte
	var code uint64
	for i := range codes {
		value := values[i*w : (i+1)*w]
		if !bytes.Equal(value, last) {
			if s.null(lo + i) {
				codes[i] = code
				continue
			}
			var ok bool
			if code, ok = e.dict.code(value); !ok {
				return dst, false
			}
			last = value
		}
		codes[i] = code
	}
	if size := packedBytes(n, packWidth(uint64(len(e.dict.values)-1))) + len(e.dict.values)*w; size >= other*7/8 {
		return dst, false
	}
	dst = e.appendCodes(dst)
	for _, value := range e.dict.values {
		dst = append(dst, value...)
	}
	return dst, true
}
