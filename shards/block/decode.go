package block

import (
	"encoding/binary"
	"fmt"
)

// chunk is a parsed chunk of rows rows. body is what follows the validity
// bitmap; slack bytes behind its end can be read.
type chunk struct {
	enc   byte
	rows  int
	valid []byte // nil: no nulls
	body  []byte
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// parse reads a chunk's header.
func (v *Vector) parse(data []byte, rows int) (chunk, error) {
	if len(data) < 2 {
		return chunk{}, corrupt("chunk of %d bytes", len(data))
	}
	if data[0] != v.tag {
		return chunk{}, corrupt("chunk of type tag %d read as %s, tag %d", data[0], v.dt, v.tag)
	}
	c := chunk{enc: data[1] & encMask, rows: rows, body: data[2:]}
	if data[1]&flagValid != 0 {
		size := bitmapBytes(rows)
		if len(c.body) < size {
			return chunk{}, corrupt("validity of %d rows in %d bytes", rows, len(c.body))
		}
		c.valid, c.body = c.body[:size], c.body[size:]
	}
	return c, nil
}

func (v *Vector) errEncoding(c *chunk) error {
	return corrupt("encoding %d is not one of %s", c.enc, v.dt)
}

// decode appends rows [lo, hi) of a chunk of rows rows. spent counts what the
// column has taken so far. After an error the vector needs a rollback.
func (v *Vector) decode(data []byte, rows, lo, hi int, spent *int) error {
	c, err := v.parse(data, rows)
	if err != nil {
		return err
	}
	n := hi - lo
	if n == 0 {
		return nil
	}
	if !spend(spent, plainBytes(v.kind, n)) {
		return corrupt("more than %d bytes of one column", MaxColumnBytes)
	}
	if c.enc == encNulls || v.shape == shapeNull {
		return v.decodeNulls(&c, n, spent)
	}
	before := v.nulls
	switch v.shape {
	case shapeBool:
		err = v.decodeBools(&c, lo, n)
	case shapeFixed:
		err = v.decodeFixed(&c, lo, n)
	case shapeText:
		err = v.decodeText(&c, lo, n, spent)
	case shapeList:
		err = v.decodeList(&c, lo, n, spent)
	case shapeFixedList:
		err = v.decodeFixedList(&c, lo, n, spent)
	case shapeStruct:
		err = v.decodeStruct(&c, func(kid *Vector, data []byte) error {
			return kid.decode(data, rows, lo, hi, spent)
		})
	}
	if err != nil {
		return err
	}
	v.appendValidBits(c.valid, lo, n)
	v.rows += n
	if v.nulls > before {
		v.zeroNulls(&c, n)
	}
	return nil
}

// decodeRows appends picked rows of a chunk, all below rows.
func (v *Vector) decodeRows(data []byte, rows int, picks []uint32, spent *int) error {
	c, err := v.parse(data, rows)
	if err != nil {
		return err
	}
	n := len(picks)
	if n == 0 {
		return nil
	}
	if c.enc != encNulls && (v.shape == shapeList || v.shape == shapeFixedList) {
		return v.pickLists(data, rows, picks, spent)
	}
	if !spend(spent, plainBytes(v.kind, n)) {
		return corrupt("more than %d bytes of one column", MaxColumnBytes)
	}
	if c.enc == encNulls || v.shape == shapeNull {
		return v.decodeNulls(&c, n, spent)
	}
	before := v.nulls
	switch v.shape {
	case shapeBool:
		err = v.pickBools(&c, picks)
	case shapeFixed:
		err = v.pickFixed(&c, picks)
	case shapeText:
		err = v.pickTexts(&c, picks, spent)
	case shapeStruct:
		err = v.decodeStruct(&c, func(kid *Vector, data []byte) error {
			return kid.decodeRows(data, rows, picks, spent)
		})
	}
	if err != nil {
		return err
	}
	if c.valid == nil {
		v.appendValid(n, true)
	} else {
		whole := source{valid: c.valid}
		v.pickValid(&whole, picks)
	}
	v.rows += n
	if v.nulls > before {
		v.zeroNulls(&c, n)
	}
	return nil
}

// decodeNulls appends n nulls, whose own room is counted already.
func (v *Vector) decodeNulls(c *chunk, n int, spent *int) error {
	if c.enc != encNulls {
		return v.errEncoding(c)
	}
	if len(c.body) != 0 || c.valid != nil {
		return corrupt("%d bytes behind nulls", len(c.body))
	}
	counted := *spent - plainBytes(v.kind, n)
	if !spendNulls(&counted, v.dt, n) {
		return corrupt("more than %d bytes of one column", MaxColumnBytes)
	}
	*spent = counted
	v.AppendNulls(n)
	return nil
}

// zeroNulls clears the value slots of the nulls among the last n rows, where
// the encoding left something there.
func (v *Vector) zeroNulls(c *chunk, n int) {
	switch c.enc {
	case encConstant, encPacked, encStepped, encScaled, encDict:
	default:
		return
	}
	if v.shape != shapeFixed {
		return
	}
	first := v.rows - n
	values := v.values.Bytes()[first*v.width:]
	w := v.width
	eachZero(v.valid.Bytes(), first, n, func(i int) { clear(values[i*w : (i+1)*w]) })
}

func (v *Vector) decodeBools(c *chunk, lo, n int) error {
	switch c.enc {
	case encConstant:
		if len(c.body) != 1 || c.body[0] > 1 {
			return corrupt("constant of type bool")
		}
		v.extendBits(n)
		fillBits(v.values.Bytes(), v.rows, n, c.body[0] == 1)
	case encRaw:
		if len(c.body) != bitmapBytes(c.rows) {
			return corrupt("%d rows of bool in %d bytes", c.rows, len(c.body))
		}
		v.extendBits(n)
		copyBits(v.values.Bytes(), v.rows, c.body, lo, n)
	default:
		return v.errEncoding(c)
	}
	return nil
}

func (v *Vector) pickBools(c *chunk, picks []uint32) error {
	if c.enc != encRaw {
		return v.decodeBools(c, 0, len(picks))
	}
	if len(c.body) != bitmapBytes(c.rows) {
		return corrupt("%d rows of bool in %d bytes", c.rows, len(c.body))
	}
	v.extendBits(len(picks))
	pickBits(v.values.Bytes(), v.rows, c.body, 0, picks)
	return nil
}

// packed is an area of packed numbers: base + step × value of width bits.
type packed struct {
	width      int
	base, step uint64
	bits       []byte
}

// fits reports whether a width is one that pack writes.
func fits(width int) bool { return width <= maxPacked || width == 64 }

// packedArea takes the packed numbers of rows off the front of body.
func packedArea(body []byte, rows, width int, base, step uint64) (packed, []byte, error) {
	if !fits(width) {
		return packed{}, nil, corrupt("numbers of %d bits", width)
	}
	size := packedBytes(rows, width)
	if len(body) < size {
		return packed{}, nil, corrupt("%d numbers of %d bits in %d bytes", rows, width, len(body))
	}
	return packed{width: width, base: base, step: step, bits: body[:size]}, body[size:], nil
}

// numbersArea reads the whole body of encPacked or encStepped.
func numbersArea(c *chunk) (packed, error) {
	head := 9
	if c.enc == encStepped {
		head = 17
	}
	if len(c.body) < head {
		return packed{}, corrupt("numbers without a head")
	}
	step := uint64(1)
	if c.enc == encStepped {
		step = binary.LittleEndian.Uint64(c.body[9:])
	}
	p, rest, err := packedArea(c.body[head:], c.rows, int(c.body[0]), binary.LittleEndian.Uint64(c.body[1:]), step)
	if err == nil && len(rest) != 0 {
		err = corrupt("%d bytes behind the numbers", len(rest))
	}
	return p, err
}
