package block

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"
)

// Packed numbers: value i takes the bits [i×width, (i+1)×width) of a little-
// endian bit string, width being 0 to 57 or 64. Any value is one unaligned
// 8-byte load, a shift and a mask, so that picks cost what they pick.
//
// A load may touch up to slack bytes behind the packed bytes. Every chunk lies
// inside a block whose last bytes are its checksum, so these can be read.
const (
	slack     = 8
	maxPacked = 57 // an 8-byte load holds 57 bits at any of 8 shifts
)

// word is a machine word that a column's values are written as.
type word interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64
}

// integer is a word or a signed one.
type integer interface {
	word | ~int8 | ~int16 | ~int32 | ~int64
}

// packWidth is the width that holds values up to most.
func packWidth(most uint64) int {
	if width := bits.Len64(most); width <= maxPacked {
		return width
	}
	return 64
}

// packedBytes is the length of n packed values.
func packedBytes(n, width int) int { return (n*width + 7) >> 3 }

// load is the 8 bytes at p+off: the one load of the unpacking kernels. With
// bounds checks they take twice as long (BenchmarkUnpack).
func load(p unsafe.Pointer, off uint) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, off))[:])
}

// pack appends (values[i]-base)/step in width bits each; every difference is
// a multiple of step.
func pack(dst []byte, values []uint64, base, step uint64, width int) []byte {
	size := packedBytes(len(values), width)
	start := len(dst)
	dst = slices.Grow(dst, size+slack)
	out := dst[start : start+size+slack]
	shift := bits.TrailingZeros64(step)
	inverse := oddInverse(step >> shift)
	if width == 64 {
		for i, value := range values {
			binary.LittleEndian.PutUint64(out[i*8:], (value-base)>>shift*inverse)
		}
		return dst[:start+size]
	}
	// After each value the whole bytes of pending are final; 8 are stored, so
	// that there is no branch, and the next value overwrites the rest.
	p := unsafe.Pointer(unsafe.SliceData(out))
	w := uint(width)
	var pending uint64
	var filled uint // bits of pending, at most 7 before a value is added
	if step == 1 {
		for _, value := range values {
			pending |= (value - base) << (filled & 63)
			binary.LittleEndian.PutUint64((*[8]byte)(p)[:], pending)
			filled += w
			p = unsafe.Add(p, filled>>3)
			pending >>= filled &^ 7
			filled &= 7
		}
		return dst[:start+size]
	}
	for _, value := range values {
		pending |= ((value - base) >> shift * inverse) << (filled & 63)
		binary.LittleEndian.PutUint64((*[8]byte)(p)[:], pending)
		filled += w
		p = unsafe.Add(p, filled>>3)
		pending >>= filled &^ 7
		filled &= 7
	}
	return dst[:start+size]
}

// oddInverse is x with x×odd = 1 modulo 2^64, by Newton's method: dividing an
// exact multiple is multiplying by it.
func oddInverse(odd uint64) uint64 {
	if odd == 1 {
		return 1
	}
	x := odd // right in 3 bits; each round doubles them
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}

// unpack writes base + step × the packed values from value first on. src are
// packed bytes with slack behind them.
func unpack[T word](dst []T, src []byte, first, width int, base, step uint64) {
	if width == 0 {
		for i := range dst {
			dst[i] = T(base)
		}
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(src))
	b, s := T(base), T(step)
	if width == 64 {
		p = unsafe.Add(p, first*8)
		for i := range dst {
			dst[i] = T(load(p, uint(i)*8))*s + b
		}
		return
	}
	w := uint(width)
	mask := uint64(1)<<(w&63) - 1
	at := uint(first) * w
	for ; at&7 != 0 && len(dst) > 0; dst = dst[1:] { // to a byte's border
		dst[0] = T(load(p, at>>3)>>(at&7)&mask)*s + b
		at += w
	}
	// Eight values take width bytes, so that shifts repeat.
	p = unsafe.Add(p, at>>3)
	s1, s2, s3, s4, s5, s6, s7 := w&7, 2*w&7, 3*w&7, 4*w&7, 5*w&7, 6*w&7, 7*w&7
	o1, o2, o3, o4, o5, o6, o7 := w>>3, 2*w>>3, 3*w>>3, 4*w>>3, 5*w>>3, 6*w>>3, 7*w>>3
	if step == 1 {
		for len(dst) >= 8 {
			d := dst[:8:8]
			d[0] = T(load(p, 0)&mask) + b
			d[1] = T(load(p, o1)>>(s1&63)&mask) + b
			d[2] = T(load(p, o2)>>(s2&63)&mask) + b
			d[3] = T(load(p, o3)>>(s3&63)&mask) + b
			d[4] = T(load(p, o4)>>(s4&63)&mask) + b
			d[5] = T(load(p, o5)>>(s5&63)&mask) + b
			d[6] = T(load(p, o6)>>(s6&63)&mask) + b
			d[7] = T(load(p, o7)>>(s7&63)&mask) + b
			dst, p = dst[8:], unsafe.Add(p, w)
		}
	} else {
		for len(dst) >= 8 {
			d := dst[:8:8]
			d[0] = T(load(p, 0)&mask)*s + b
			d[1] = T(load(p, o1)>>(s1&63)&mask)*s + b
			d[2] = T(load(p, o2)>>(s2&63)&mask)*s + b
			d[3] = T(load(p, o3)>>(s3&63)&mask)*s + b
			d[4] = T(load(p, o4)>>(s4&63)&mask)*s + b
			d[5] = T(load(p, o5)>>(s5&63)&mask)*s + b
			d[6] = T(load(p, o6)>>(s6&63)&mask)*s + b
			d[7] = T(load(p, o7)>>(s7&63)&mask)*s + b
			dst, p = dst[8:], unsafe.Add(p, w)
		}
	}
	at = 0
	for i := range dst {
		dst[i] = T(load(p, at>>3)>>(at&7)&mask)*s + b
		at += w
	}
}

// unpackWide writes packed values as signed numbers of limbs 64-bit words.
func unpackWide(dst []uint64, limbs int, src []byte, first, width int, base, step uint64) {
	p := unsafe.Pointer(unsafe.SliceData(src))
	w, mask := uint(width), packMask(width)
	at := uint(first) * w
	if limbs == 2 {
		for len(dst) >= 2 {
			d := dst[:2:2]
			value := (load(p, at>>3)>>(at&7)&mask)*step + base
			d[0], d[1] = value, uint64(int64(value)>>63)
			at += w
			dst = dst[2:]
		}
		return
	}
	for len(dst) >= limbs && limbs > 0 {
		value := (load(p, at>>3)>>(at&7)&mask)*step + base
		extend := uint64(int64(value) >> 63)
		dst[0] = value
		for i := 1; i < limbs; i++ {
			dst[i] = extend
		}
		at += w
		dst = dst[limbs:]
	}
}

// packMask keeps the low width bits.
func packMask(width int) uint64 {
	if width == 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}

// unpackRows is unpack for picked rows.
func unpackRows[T word](dst []T, src []byte, rows []uint32, width int, base, step uint64) {
	p := unsafe.Pointer(unsafe.SliceData(src))
	w, mask := uint(width), packMask(width)
	dst = dst[:len(rows)]
	for i, row := range rows {
		at := uint(row) * w
		dst[i] = T((load(p, at>>3)>>(at&7)&mask)*step + base)
	}
}

// unpackSum writes running sums: dst[i] is start plus the first i+1 values
// from value first on, cut to 32 bits. It returns the last sum, uncut.
func unpackSum(dst []int32, src []byte, first, width int, base, start uint64) uint64 {
	p := unsafe.Pointer(unsafe.SliceData(src))
	w, mask := uint(width), packMask(width)
	at := uint(first) * w
	for i := range dst {
		start += load(p, at>>3)>>(at&7)&mask + base
		dst[i] = int32(start)
		at += w
	}
	return start
}

// sum is the sum of the first n values.
func sum(src []byte, n, width int, base uint64) uint64 {
	p := unsafe.Pointer(unsafe.SliceData(src))
	w, mask := uint(width), packMask(width)
	total, at := base*uint64(n), uint(0)
	if width == 0 { // n may be more than the bytes of the block
		return total
	}
	for range n {
		total += load(p, at>>3) >> (at & 7) & mask
		at += w
	}
	return total
}
