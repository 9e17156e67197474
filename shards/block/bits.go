package block

import (
	"encoding/binary"
	"math/bits"
)

// Bitmaps are Arrow's: bit i is bit i%8 of byte i/8, a set bit is a valid row.
// Destinations need not be zeroed: what lies behind the last bit written is
// junk, except that the last byte's unused bits are zero.

// bitmapBytes is the length of a bitmap of n bits.
func bitmapBytes(n int) int { return (n + 7) >> 3 }

// bit is bit i of a bitmap.
func bit(bitmap []byte, i int) bool { return bitmap[i>>3]>>(i&7)&1 != 0 }

// copyBits writes n bits of src from soff to dst at doff, which may be behind
// the last byte written so far.
func copyBits(dst []byte, doff int, src []byte, soff, n int) {
	if n == 0 {
		return
	}
	if head := doff & 7; head != 0 { // complete the byte that was begun
		take := min(8-head, n)
		b := &dst[doff>>3]
		*b = *b&(1<<head-1) | byte(loadBits(src, soff, take))<<head
		doff, soff, n = doff+take, soff+take, n-take
	}
	out := dst[doff>>3:]
	if soff&7 == 0 {
		whole := n >> 3
		copy(out, src[soff>>3:soff>>3+whole])
		out, soff, n = out[whole:], soff+whole<<3, n&7
	}
	for n >= 64 {
		binary.LittleEndian.PutUint64(out, loadBits(src, soff, 64))
		out, soff, n = out[8:], soff+64, n-64
	}
	for n > 0 {
		take := min(8, n)
		out[0] = byte(loadBits(src, soff, take))
		out, soff, n = out[1:], soff+take, n-take
	}
}

// loadBits is n (1 to 64) bits of a bitmap from bit off, the rest zero.
func loadBits(bitmap []byte, off, n int) uint64 {
	p, shift := off>>3, off&7
	var word uint64
	if p+8 <= len(bitmap) {
		word = binary.LittleEndian.Uint64(bitmap[p:]) >> shift
		if shift != 0 && shift+n > 64 {
			word |= uint64(bitmap[p+8]) << (64 - shift)
		}
	} else {
		for i := 0; i<<3 < shift+n; i++ {
			at := i<<3 - shift
			if at < 0 {
				word |= uint64(bitmap[p+i]) >> -at
			} else {
				word |= uint64(bitmap[p+i]) << at
			}
		}
	}
	if n < 64 {
		word &= 1<<n - 1
	}
	return word
}

// fillBits sets or clears n bits of dst from bit off.
func fillBits(dst []byte, off, n int, set bool) {
	var fill byte
	if set {
		fill = 0xFF
	}
	if n == 0 {
		return
	}
	if head := off & 7; head != 0 {
		take := min(8-head, n)
		b := &dst[off>>3]
		*b = *b&(1<<head-1) | fill&(1<<take-1)<<head
		off, n = off+take, n-take
	}
	out := dst[off>>3:]
	whole := n >> 3
	for i := range out[:whole] {
		out[i] = fill
	}
	if n &= 7; n != 0 {
		out[whole] = fill & (1<<n - 1)
	}
}

// pickBits writes the bits of src at off plus each row to dst at doff.
func pickBits(dst []byte, doff int, src []byte, off int, rows []uint32) {
	for i, row := range rows {
		putBit(dst, doff+i, bit(src, off+int(row)))
	}
}

// putBit writes bit i and clears what is above it in its byte: for bitmaps
// that are written in order.
func putBit(dst []byte, i int, set bool) {
	var value byte
	if set {
		value = 1
	}
	b := &dst[i>>3]
	*b = *b&(1<<(i&7)-1) | value<<(i&7)
}

// countZeros is how many of n bits from bit off are clear.
func countZeros(bitmap []byte, off, n int) int {
	ones := 0
	for at := 0; at < n; at += 64 {
		ones += bits.OnesCount64(loadBits(bitmap, off+at, min(64, n-at)))
	}
	return n - ones
}

// eachZero calls f with i of every bit off+i, i in [0, n), that is clear.
func eachZero(bitmap []byte, off, n int, f func(i int)) {
	for at := 0; at < n; at += 64 {
		take := min(64, n-at)
		word := ^loadBits(bitmap, off+at, take)
		if take < 64 {
			word &= 1<<take - 1
		}
		for ; word != 0; word &= word - 1 {
			f(at + bits.TrailingZeros64(word))
		}
	}
}
