package block

import (
	"encoding/binary"
	"math"

	"github.com/pierrec/lz4/v4"
)

// decodeFixed appends the values of rows [lo, lo+n), nulls with any value.
func (v *Vector) decodeFixed(c *chunk, lo, n int) error {
	w := v.width
	switch c.enc {
	case encRaw, encRawLZ4:
		if c.enc == encRawLZ4 && n == c.rows {
			if n*w > maxRatio*(len(c.body)+1) {
				return corrupt("%d compressed bytes said to be %d", len(c.body), n*w)
			}
			return decompress(v.extend(&v.values, n*w), c.body)
		}
		values, err := v.rawValues(c)
		if err != nil {
			return err
		}
		copy(v.extend(&v.values, n*w), values[lo*w:])
	case encConstant:
		return v.decodeConstant(c, n)
	case encPacked, encStepped:
		p, err := v.numbers(c)
		if err != nil {
			return err
		}
		dst := v.extend(&v.values, n*w)
		switch w {
		case 1:
			unpack(dst, p.bits, lo, p.width, p.base, p.step)
		case 2:
			unpack(words[uint16](dst), p.bits, lo, p.width, p.base, p.step)
		case 4:
			unpack(words[uint32](dst), p.bits, lo, p.width, p.base, p.step)
		case 8:
			unpack(words[uint64](dst), p.bits, lo, p.width, p.base, p.step)
		default:
			unpackWide(words[uint64](dst), w/8, p.bits, lo, p.width, p.base, p.step)
		}
	case encScaled:
		return v.decodeScaled(c, lo, n)
	case encDict:
		codes, values, err := v.fixedDict(c)
		if err != nil {
			return err
		}
		picks := grown(&v.scratchpad().codes, n)
		unpack(picks, codes.bits, lo, codes.width, 0, 1)
		return v.lookUp(picks, values)
	default:
		return v.errEncoding(c)
	}
	return nil
}

// pickFixed is decodeFixed for picked rows.
func (v *Vector) pickFixed(c *chunk, picks []uint32) error {
	w, n := v.width, len(picks)
	switch c.enc {
	case encRaw, encRawLZ4:
		values, err := v.rawValues(c)
		if err != nil {
			return err
		}
		pickFixed(v.extend(&v.values, n*w), values, w, picks)
	case encConstant:
		return v.decodeConstant(c, n)
	case encPacked, encStepped:
		p, err := v.numbers(c)
		if err != nil {
			return err
		}
		dst := v.extend(&v.values, n*w)
		switch w {
		case 1:
			unpackRows(dst, p.bits, picks, p.width, p.base, p.step)
		case 2:
			unpackRows(words[uint16](dst), p.bits, picks, p.width, p.base, p.step)
		case 4:
			unpackRows(words[uint32](dst), p.bits, picks, p.width, p.base, p.step)
		case 8:
			unpackRows(words[uint64](dst), p.bits, picks, p.width, p.base, p.step)
		default:
			narrow := grown(&v.scratchpad().words, n)
			unpackRows(narrow, p.bits, picks, p.width, p.base, p.step)
			widen(words[uint64](dst), narrow, w/8)
		}
	case encScaled:
		return v.pickScaled(c, picks)
	case encDict:
		codes, values, err := v.fixedDict(c)
		if err != nil {
			return err
		}
		found := grown(&v.scratchpad().codes, n)
		unpackRows(found, codes.bits, picks, codes.width, 0, 1)
		return v.lookUp(found, values)
	default:
		return v.errEncoding(c)
	}
	return nil
}

// widen sign-extends numbers to limbs 64-bit words.
func widen(dst, src []uint64, limbs int) {
	for i, value := range src {
		extend := uint64(int64(value) >> 63)
		dst[i*limbs] = value
		for j := 1; j < limbs; j++ {
			dst[i*limbs+j] = extend
		}
	}
}

// numbers is the packed area of a type that is a number.
func (v *Vector) numbers(c *chunk) (packed, error) {
	if v.order == opaque {
		return packed{}, v.errEncoding(c)
	}
	return numbersArea(c)
}

// rawValues are all values of a chunk, in the block or in scratch memory.
func (v *Vector) rawValues(c *chunk) ([]byte, error) {
	size := c.rows * v.width
	if c.enc == encRaw {
		if len(c.body) != size {
			return nil, corrupt("%d values of %d bytes in %d bytes", c.rows, v.width, len(c.body))
		}
		return c.body, nil
	}
	return v.decompress(c.body, size)
}

// decompress undoes LZ4 into scratch memory; size must be exact.
func (v *Vector) decompress(src []byte, size int) ([]byte, error) {
	if size > MaxColumnBytes || size > maxRatio*(len(src)+1) {
		return nil, corrupt("%d compressed bytes said to be %d", len(src), size)
	}
	dst := grown(&v.scratchpad().bytes, size)
	return dst, decompress(dst, src)
}

// maxRatio is more than LZ4 can compress: a byte stands for 255 at most.
const maxRatio = 256

func decompress(dst, src []byte) error {
	if n, err := lz4.UncompressBlock(src, dst); err != nil || n != len(dst) {
		return corrupt("%d bytes in LZ4 do not give %d", len(src), len(dst))
	}
	return nil
}

func (v *Vector) decodeConstant(c *chunk, n int) error {
	if len(c.body) != v.width {
		return corrupt("constant of %d bytes, not %d", len(c.body), v.width)
	}
	dst := v.extend(&v.values, n*v.width)
	switch v.width {
	case 0:
	case 1:
		fillWords(dst, c.body[0])
	case 4:
		fillWords(words[uint32](dst), binary.LittleEndian.Uint32(c.body))
	case 8:
		fillWords(words[uint64](dst), binary.LittleEndian.Uint64(c.body))
	default:
		for done := copy(dst, c.body); done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
	}
	return nil
}

func fillWords[T word](dst []T, value T) {
	for i := range dst {
		dst[i] = value
	}
}

// fixedDict is the codes of a dictionary chunk and its values.
func (v *Vector) fixedDict(c *chunk) (codes packed, values []byte, err error) {
	codes, size, rest, err := codesArea(c)
	if err != nil {
		return packed{}, nil, err
	}
	if v.width == 0 || len(rest) != size*v.width {
		return packed{}, nil, corrupt("dictionary of %d values in %d bytes", size, len(rest))
	}
	return codes, rest, nil
}

// codesArea takes the codes off the front of a dictionary chunk's body: the
// codes, the size of the dictionary, and what follows.
func codesArea(c *chunk) (codes packed, size int, rest []byte, err error) {
	if len(c.body) < 5 {
		return packed{}, 0, nil, corrupt("dictionary without a head")
	}
	size = int(binary.LittleEndian.Uint32(c.body[1:]))
	if size == 0 || size > c.rows || c.body[0] > 32 || size > 1<<c.body[0] {
		return packed{}, 0, nil, corrupt("dictionary of %d values for %d rows, codes of %d bits", size, c.rows, c.body[0])
	}
	codes, rest, err = packedArea(c.body[5:], c.rows, int(c.body[0]), 0, 1)
	return codes, size, rest, err
}

// checkCodes makes sure that codes name values of a dictionary.
func checkCodes(codes []uint32, size int) error {
	most := uint32(0)
	for _, code := range codes {
		most = max(most, code)
	}
	if int(most) >= size {
		return corrupt("code %d in a dictionary of %d", most, size)
	}
	return nil
}

func (v *Vector) lookUp(codes []uint32, values []byte) error {
	if err := checkCodes(codes, len(values)/v.width); err != nil {
		return err
	}
	pickFixed(v.extend(&v.values, len(codes)*v.width), values, v.width, codes)
	return nil
}

// scaledArea is a parsed body of encScaled.
type scaledArea struct {
	numbers packed
	power   float64
	binary  bool   // power is one of two
	rows    []byte // of exceptions, 4 bytes each, ascending
	values  []byte // of exceptions
}

func (v *Vector) scaled(c *chunk) (scaledArea, error) {
	if v.order != floating || v.width < 4 {
		return scaledArea{}, v.errEncoding(c)
	}
	if len(c.body) < 14 || int(c.body[0]) > binaryBase+maxBinary {
		return scaledArea{}, corrupt("scaled floats without a head")
	}
	count := int(binary.LittleEndian.Uint32(c.body[1:]))
	rest := c.body[14:]
	if count > c.rows || len(rest) < count*(4+v.width) {
		return scaledArea{}, corrupt("%d exceptions in %d bytes", count, len(rest))
	}
	a := scaledArea{rows: rest[:count*4], values: rest[count*4 : count*(4+v.width)]}
	a.power, a.binary = powerOf(int(c.body[0]))
	var err error
	a.numbers, rest, err = packedArea(rest[count*(4+v.width):], c.rows, int(c.body[5]), binary.LittleEndian.Uint64(c.body[6:]), 1)
	if err == nil && len(rest) != 0 {
		err = corrupt("%d bytes behind scaled floats", len(rest))
	}
	return a, err
}

// row is the row of exception i.
func (a *scaledArea) row(i int) int { return int(binary.LittleEndian.Uint32(a.rows[i*4:])) }

// from is the first exception whose row is not below row.
func (a *scaledArea) from(row int) int {
	low, high := 0, len(a.rows)/4
	for low < high {
		middle := int(uint(low+high) >> 1)
		if a.row(middle) < row {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

func (v *Vector) decodeScaled(c *chunk, lo, n int) error {
	a, err := v.scaled(c)
	if err != nil {
		return err
	}
	numbers := grown(&v.scratchpad().words, n)
	unpack(numbers, a.numbers.bits, lo, a.numbers.width, a.numbers.base, 1)
	dst := v.extend(&v.values, n*v.width)
	v.divide(dst, numbers, &a)
	w := v.width
	for i := a.from(lo); i < len(a.rows)/4; i++ {
		row := a.row(i)
		if row < lo || row >= lo+n {
			break
		}
		copy(dst[(row-lo)*w:(row-lo+1)*w], a.values[i*w:])
	}
	return nil
}

func (v *Vector) pickScaled(c *chunk, picks []uint32) error {
	a, err := v.scaled(c)
	if err != nil {
		return err
	}
	numbers := grown(&v.scratchpad().words, len(picks))
	unpackRows(numbers, a.numbers.bits, picks, a.numbers.width, a.numbers.base, 1)
	w := v.width
	dst := v.extend(&v.values, len(picks)*w)
	v.divide(dst, numbers, &a)
	if len(a.rows) == 0 {
		return nil
	}
	for at, pick := range picks {
		if i := a.from(int(pick)); i < len(a.rows)/4 && a.row(i) == int(pick) {
			copy(dst[at*w:(at+1)*w], a.values[i*w:])
		}
	}
	return nil
}

// divide writes integers over the power as floats. By a power of two a product
// is the same to the bit, and faster.
func (v *Vector) divide(dst []byte, numbers []uint64, a *scaledArea) {
	power, factor := a.power, 1/a.power
	switch {
	case v.width == 4 && a.binary:
		out := words[uint32](dst)[:len(numbers)]
		for i, number := range numbers {
			out[i] = math.Float32bits(float32(float64(int64(number)) * factor))
		}
	case v.width == 4:
		out := words[uint32](dst)[:len(numbers)]
		for i, number := range numbers {
			out[i] = math.Float32bits(float32(float64(int64(number)) / power))
		}
	case a.binary:
		out := words[uint64](dst)[:len(numbers)]
		for i, number := range numbers {
			out[i] = math.Float64bits(float64(int64(number)) * factor)
		}
	default:
		out := words[uint64](dst)[:len(numbers)]
		for i, number := range numbers {
			out[i] = math.Float64bits(float64(int64(number)) / power)
		}
	}
}
