package block

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// fixed appends the body of n fixed-width values, of which some but not all
// may be null.
func (e *Encoder) fixed(dst []byte, k kind, s *source, lo, n, nulls int) ([]byte, byte) {
	w := k.width
	values := s.values[(s.off+lo)*w : (s.off+lo+n)*w]
	if nulls == 0 && constant(values, w) {
		return append(dst, values[:w]...), encConstant
	}
	switch {
	case k.order == floating && w >= 4:
		if dst, ok := e.scaled(dst, k, s, lo, n, values); ok {
			return dst, encScaled
		}
	case k.order != opaque:
		if e.numbers(k, s, lo, values, nulls) {
			least, step, width := packPlan(e.words, k.order == signed)
			if width > 8 {
				if dst, ok := e.dictFixed(dst, s, lo, n, w, values, packedBytes(n, width)); ok {
					return dst, encDict
				}
			}
			enc := byte(encPacked)
			dst = append(dst, byte(width))
			dst = binary.LittleEndian.AppendUint64(dst, least)
			if step > 1 {
				enc = encStepped
				dst = binary.LittleEndian.AppendUint64(dst, step)
			}
			return pack(dst, e.words, least, step, width), enc
		}
	}
	if dst, ok := e.dictFixed(dst, s, lo, n, w, values, len(values)); ok {
		return dst, encDict
	}
	return e.raw(dst, k, s, lo, n, nulls, values)
}

// constant reports whether all values of width w are the same bytes.
func constant(values []byte, w int) bool {
	return bytes.Equal(values[w:], values[:len(values)-w])
}

// numbers puts the values in e.words, sign-extended, and in the place of nulls
// a value that occurs. It fails if one does not fit 64 bits.
func (e *Encoder) numbers(k kind, s *source, lo int, values []byte, nulls int) bool {
	n := len(values) / k.width
	out := grown(&e.words, n)
	isSigned := k.order == signed
	switch {
	case k.width == 1 && isSigned:
		for i, v := range values {
			out[i] = uint64(int8(v))
		}
	case k.width == 1:
		for i, v := range values {
			out[i] = uint64(v)
		}
	case k.width == 2 && isSigned:
		for i, v := range words[uint16](values) {
			out[i] = uint64(int16(v))
		}
	case k.width == 2:
		for i, v := range words[uint16](values) {
			out[i] = uint64(v)
		}
	case k.width == 4 && isSigned:
		for i, v := range words[uint32](values) {
			out[i] = uint64(int32(v))
		}
	case k.width == 4:
		for i, v := range words[uint32](values) {
			out[i] = uint64(v)
		}
	case k.width == 8:
		copy(out, words[uint64](values))
	default:
		if !narrow(out, words[uint64](values), k.width/8, s, lo) {
			return false
		}
	}
	if nulls > 0 {
		hideNulls(out, s, lo)
	}
	return true
}

// narrow cuts numbers of several limbs to their lowest; false if a valid one
// does not fit it.
func narrow(out, values []uint64, limbs int, s *source, lo int) bool {
	var wide uint64
	for i := range out {
		value := values[i*limbs : (i+1)*limbs]
		out[i] = value[0]
		extend := uint64(int64(value[0]) >> 63)
		for _, limb := range value[1:] {
			if odd := limb ^ extend; odd != 0 && !s.null(lo+i) {
				wide |= odd
			}
		}
	}
	return wide == 0
}

// hideNulls writes a valid value in the place of every null.
func hideNulls[T any](values []T, s *source, lo int) {
	first := 0
	for s.null(lo + first) {
		first++
	}
	stand := values[first]
	eachZero(s.valid, s.off+lo, len(values), func(i int) { values[i] = stand })
}

// minMax is the least and the greatest number.
func minMax(values []uint64, isSigned bool) (least, most uint64) {
	if !isSigned {
		least, most = values[0], values[0]
		for _, v := range values {
			least, most = min(least, v), max(most, v)
		}
		return least, most
	}
	low, high := int64(values[0]), int64(values[0])
	for _, v := range values {
		low, high = min(low, int64(v)), max(high, int64(v))
	}
	return uint64(low), uint64(high)
}

// packPlan is how numbers pack best: from the least, in that step if it saves
// more than its 8 bytes, in that width.
func packPlan(values []uint64, isSigned bool) (least, step uint64, width int) {
	least, most := minMax(values, isSigned)
	width = packWidth(most - least)
	step = commonStep(values, least)
	if step > 1 {
		stepped := packWidth((most - least) / step)
		if packedBytes(len(values), stepped)+8 < packedBytes(len(values), width) {
			return least, step, stepped
		}
	}
	return least, 1, width
}

// commonStep is the greatest number that divides all differences from least.
// On numbers without one it is done after a few.
func commonStep(values []uint64, least uint64) uint64 {
	step := uint64(0)
	for _, v := range values {
		diff := v - least
		if step == 0 {
			step = diff
			continue
		}
		if diff < step && diff != 0 || diff%step != 0 {
			for diff != 0 {
				step, diff = diff, step%diff
			}
			if step == 1 {
				return 1
			}
		}
	}
	return max(step, 1)
}

// Floats: powersOfTen[e] are exact, and so is a quotient's rounding: whatever
// decimal of at most 15 digits a float was read from, integer / power gives
// that float back, bit for bit.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// maxScaled bounds scaled integers: adding roundMagic rounds only below it.
const (
	maxScaled  = 1 << 51
	roundMagic = 3 << 51
)

// scale is x × power as an integer, false if the integer does not give x back.
func scale(x, power float64, single bool) (int64, bool) {
	product := float64(x * power)
	if !(math.Abs(product) < maxScaled) { // NaN, too
		return 0, false
	}
	i := int64(float64(product+roundMagic) - roundMagic)
	back := float64(i) / power
	if single {
		return i, math.Float32bits(float32(back)) == math.Float32bits(float32(x))
	}
	return i, math.Float64bits(back) == math.Float64bits(x)
}

// Exponents from binaryBase on are of two: base 2, exponent less binaryBase.
const (
	binaryBase = 16
	maxBinary  = 64
	exactBits  = 53 // of a float's mantissa
	scaledHead = 14 // bytes before the exceptions
)

// powerOf is what an exponent of a chunk of scaled floats, at most binaryBase +
// maxBinary, divides by, and whether that is a power of two.
func powerOf(exponent int) (power float64, isBinary bool) {
	if exponent < binaryBase {
		return powersOfTen[exponent], false
	}
	return math.Ldexp(1, exponent-binaryBase), true
}

// scaleBinary is x × power, a power of two, as an integer; false if the integer
// does not give x back.
func scaleBinary(x, power float64) (int64, bool) {
	product := float64(x * power)
	if !(math.Abs(product) < 1<<62) { // NaN, too
		return 0, false
	}
	i := int64(product)
	return i, math.Float64bits(float64(i)/power) == math.Float64bits(x)
}

// binaryExponent is the exponent that makes integers of a sample of floats that
// lie close together or are multiples of a power of two, as many measured and
// most random ones are; false if these take more bits than pay.
func binaryExponent(floats []float64, stride, most int) (int, bool) {
	least, top := 0, math.MinInt
	for i := 0; i < len(floats); i += stride {
		word := math.Float64bits(floats[i])
		mantissa, exponent := word&(1<<52-1), int(word>>52&0x7FF)-1023
		if exponent == -1023 || exponent == 1024 { // zero, denormal, infinity, NaN
			continue
		}
		least = max(least, exactBits-1-bits.TrailingZeros64(mantissa|1<<52)-exponent)
		top = max(top, exponent)
	}
	return binaryBase + least, top > math.MinInt && least <= maxBinary && top+1+least <= most
}

// scaled appends floats as integers over a power of ten or two; false if too
// many are no such numbers. Body: exponent 1 byte, exceptions 4 bytes,
// width 1 byte, base 8 bytes, rows of the exceptions 4 bytes each, their
// values, packed integers.
func (e *Encoder) scaled(dst []byte, k kind, s *source, lo, n int, values []byte) ([]byte, bool) {
	single := k.width == 4
	floats := grown(&e.floats, n)
	if single {
		for i, v := range words[uint32](values) {
			floats[i] = float64(math.Float32frombits(v))
		}
	} else {
		for i, v := range words[uint64](values) {
			floats[i] = math.Float64frombits(v)
		}
	}
	if s.valid != nil {
		hideNulls(floats, s, lo)
	}
	exponent, ok := exponentOf(floats, single)
	if !ok {
		return dst, false
	}
	power, isBinary := powerOf(exponent)
	numbers := grown(&e.words, n)
	exceptions := e.codes[:0]
	for i, x := range floats {
		var number int64
		var exact bool
		if isBinary {
			number, exact = scaleBinary(x, power)
		} else {
			number, exact = scale(x, power, single)
		}
		if !exact && !s.null(lo+i) {
			exceptions = append(exceptions, uint64(i))
			if len(exceptions) > n/8 {
				e.codes = exceptions
				return dst, false
			}
		}
		numbers[i] = uint64(number)
	}
	e.codes = exceptions
	if len(exceptions) > 0 || s.valid != nil {
		hideExceptions(numbers, exceptions, s, lo)
	}
	least, most := minMax(numbers, true)
	width := packWidth(most - least)
	head := 0
	if isBinary {
		head = scaledHead
	}
	if head+packedBytes(n, width)+len(exceptions)*(4+k.width) > len(values)*7/8 {
		return dst, false
	}
	dst = append(dst, byte(exponent))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(exceptions)))
	dst = append(dst, byte(width))
	dst = binary.LittleEndian.AppendUint64(dst, least)
	for _, i := range exceptions {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(i))
	}
	for _, i := range exceptions {
		dst = append(dst, values[int(i)*k.width:int(i+1)*k.width]...)
	}
	return pack(dst, numbers, least, 1, width), true
}

// exponentOf is the exponent that makes integers of most of a sample.
func exponentOf(floats []float64, single bool) (int, bool) {
	const sample = 32
	stride := max(1, len(floats)/sample)
	seen, bad, exponent := 0, 0, 0
	for i := 0; i < len(floats); i += stride {
		seen++
		e := 0
		for e < len(powersOfTen) {
			if _, exact := scale(floats[i], powersOfTen[e], single); exact {
				break
			}
			e++
		}
		if e == len(powersOfTen) {
			bad++
			continue
		}
		exponent = max(exponent, e)
	}
	if bad*4 <= seen {
		return exponent, true
	}
	// A sign and rows beyond the sample take a bit or two: the exact test follows.
	if single {
		return binaryExponent(floats, stride, 28)
	}
	return binaryExponent(floats, stride, 56)
}

// hideExceptions writes a number that occurs in the place of those that do
// not stand for a value.
func hideExceptions(numbers, exceptions []uint64, s *source, lo int) {
	stand, found, next := uint64(0), false, 0
	for i := 0; i < len(numbers) && !found; i++ {
		if next < len(exceptions) && exceptions[next] == uint64(i) {
			next++
		} else if !s.null(lo + i) {
			stand, found = numbers[i], true
		}
	}
	for _, i := range exceptions {
		numbers[i] = stand
	}
	if s.valid != nil {
		eachZero(s.valid, s.off+lo, len(numbers), func(i int) { numbers[i] = stand })
	}
}

// raw appends the values as they are, nulls as zeros, in LZ4 if that helps
// columns that are no numbers.
func (e *Encoder) raw(dst []byte, k kind, s *source, lo, n, nulls int, values []byte) ([]byte, byte) {
	if nulls > 0 {
		clean := grown(&e.bytes, len(values))
		copy(clean, values)
		eachZero(s.valid, s.off+lo, n, func(i int) { clear(clean[i*k.width : (i+1)*k.width]) })
		values = clean
	}
	if k.order == opaque || k.width > 8 {
		if packed, ok := e.compress(values); ok {
			return append(dst, packed...), encRawLZ4
		}
	}
	return append(dst, values...), encRaw
}

// compress is src in LZ4, valid until the next call; false if that does not
// save an eighth.
func (e *Encoder) compress(src []byte) ([]byte, bool) {
	const least = 64 // bytes worth a try
	if len(src) < least {
		return nil, false
	}
	// A short destination makes the compressor give up early.
	out := grown(&e.packed, len(src)-len(src)/8)
	n, err := e.lz.CompressBlock(src, out)
	if err != nil || n == 0 {
		return nil, false
	}
	return out[:n], true
}
