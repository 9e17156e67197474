package key

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/sheaf-db/sheaf/limits"
)

// RowError says which value cannot be part of a key, and why.
type RowError struct {
	Column int // index into the columns given to Encode
	Row    int // row of the arrays given to Encode, not counted from a range's start
	Reason Reason
	Bytes  int // encoded bytes of the row's key, if Reason is TooLong
}

// Reason is why a row has no key.
type Reason uint8

const (
	// Null: the column is null in this row.
	Null Reason = iota + 1
	// TooLong: the whole encoded key exceeds limits.KeyBytes; Column is the
	// column with which it did.
	TooLong
)

// Error is a text without the column's name, which the caller knows.
func (e *RowError) Error() string {
	if e.Reason == TooLong {
		return fmt.Sprintf("row %d: the key takes %d bytes encoded, more than the limit of %d", e.Row, e.Bytes, limits.KeyBytes)
	}
	return fmt.Sprintf("row %d: key column %d is null", e.Row, e.Column)
}

// Encode appends the key of every row to dst: the columns' encodings one behind
// the other. cols are canonical arrays of equal length, sliced or not; they are
// only read. On an error, *RowError for a row that has no key, dst is as before.
func Encode(dst *Keys, cols []arrow.Array) error {
	if len(cols) == 0 {
		return fmt.Errorf("key: no key columns")
	}
	return EncodeRange(dst, cols, 0, cols[0].Len())
}

// EncodeRange is Encode of the rows lo ≤ row < hi.
//
// It works column by column: the rows' places in dst are laid out first, then
// each column writes its part of every key. Meanwhile Ends[i] is where the next
// column of key i goes, so that it is the key's end when the last is written.
func EncodeRange(dst *Keys, cols []arrow.Array, lo, hi int) error {
	columns, err := open(cols, lo, hi)
	if err != nil || hi == lo {
		return err
	}
	base, first := len(dst.Data), len(dst.Ends)
	dst.Ends = grow(dst.Ends, hi-lo)[:first+hi-lo]
	ends := dst.Ends[first:]
	total, err := layOut(ends, columns, base, lo)
	if err != nil {
		dst.Ends = dst.Ends[:first]
		return err
	}
	dst.Data = grow(dst.Data, total-base)[:total]
	for i := range columns {
		columns[i].write(dst.Data, ends)
	}
	return nil
}

// column is one key column, cut to the rows being encoded.
type column struct {
	shape
	values  []byte  // of the rows; of the whole array for booleans and escaped bytes
	offsets []int32 // escaped: rows+1 offsets into values
	bit     int     // boolean: first row's bit in values
	rows    int
	zeros   bool // escaped: some value holds a 00
}

// open checks the columns' types, lengths and nulls.
func open(cols []arrow.Array, lo, hi int) ([]column, error) {
	if len(cols) == 0 || len(cols) > limits.KeyColumns {
		return nil, fmt.Errorf("key: %d key columns, not 1 to %d", len(cols), limits.KeyColumns)
	}
	columns := make([]column, len(cols))
	var null *RowError
	for i, arr := range cols {
		if arr.Len() != cols[0].Len() || lo < 0 || hi < lo || hi > arr.Len() {
			return nil, fmt.Errorf("key: rows %d to %d of column %d, which has %d rows", lo, hi, i, arr.Len())
		}
		if row := firstNull(arr, lo, hi); row < hi && (null == nil || row < null.Row) {
			null = &RowError{Column: i, Row: row, Reason: Null}
		}
		var err error
		if columns[i], err = openColumn(arr, lo, hi); err != nil {
			return nil, err
		}
	}
	if null != nil {
		return nil, null
	}
	return columns, nil
}

func openColumn(arr arrow.Array, lo, hi int) (column, error) {
	data, shape := arr.Data(), shapeOf(arr.DataType())
	c := column{shape: shape, rows: hi - lo}
	if shape.kind == unsupported {
		return c, fmt.Errorf("key: %s is no key type in canonical layout", arr.DataType())
	}
	if hi == lo {
		return c, nil
	}
	lo, hi = lo+data.Offset(), hi+data.Offset()
	buffers := data.Buffers()
	switch shape.kind {
	case boolean:
		c.values, c.bit = buffers[1].Bytes(), lo
	case escaped:
		c.offsets = arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())[lo : hi+1]
		if buffers[2] != nil {
			c.values = buffers[2].Bytes()
		}
		c.zeros = bytes.IndexByte(c.values[c.offsets[0]:c.offsets[hi-lo]], 0) >= 0
	default:
		c.values = buffers[1].Bytes()[lo*shape.width : hi*shape.width]
	}
	return c, nil
}

// firstNull is the first null row in [lo, hi), or hi.
func firstNull(arr arrow.Array, lo, hi int) int {
	data := arr.Data()
	valid := arr.NullBitmapBytes()
	if data.NullN() == 0 || len(valid) == 0 {
		return hi
	}
	if bitutil.CountSetBits(valid, data.Offset()+lo, hi-lo) == hi-lo {
		return hi
	}
	for row := lo; row < hi; row++ {
		if bitutil.BitIsNotSet(valid, data.Offset()+row) {
			return row
		}
	}
	return hi
}

// layOut writes each row's first byte in the output to ends, beginning at base,
// and returns where the last row's key ends.
func layOut(ends []uint32, columns []column, base, lo int) (int, error) {
	fixed := 0
	variable := false
	for i := range columns {
		fixed += columns[i].width
		variable = variable || columns[i].kind == escaped
	}
	if fixed > limits.KeyBytes {
		return 0, tooLong(columns, 0, lo)
	}
	if !variable {
		total := int64(base) + int64(fixed)*int64(len(ends))
		if total > math.MaxUint32 {
			return 0, errTooMany
		}
		for i := range ends {
			ends[i] = uint32(base + i*fixed)
		}
		return int(total), nil
	}
	clear(ends)
	for i := range columns {
		if columns[i].kind == escaped {
			columns[i].addLengths(ends)
		}
	}
	at := int64(base)
	for i, length := range ends {
		size := int64(length) + int64(fixed)
		if size > limits.KeyBytes {
			return 0, tooLong(columns, i, lo)
		}
		ends[i] = uint32(at)
		if at += size; at > math.MaxUint32 {
			return 0, errTooMany
		}
	}
	return int(at), nil
}

var errTooMany = fmt.Errorf("key: more than 4 GiB of keys in one list")

// tooLong finds the column with which row i of the range became too long.
func tooLong(columns []column, i, lo int) error {
	failed := &RowError{Column: -1, Row: lo + i, Reason: TooLong}
	for at := range columns {
		if columns[at].kind == escaped {
			failed.Bytes += columns[at].length(i)
		} else {
			failed.Bytes += columns[at].width
		}
		if failed.Bytes > limits.KeyBytes && failed.Column < 0 {
			failed.Column = at
		}
	}
	return failed
}

// length is the encoded length of an escaped value. It cannot overflow: values
// are shorter than 2 GiB and ints have 64 bits.
func (c *column) length(i int) int {
	value := c.values[c.offsets[i]:c.offsets[i+1]]
	return len(value) + bytes.Count(value, zero) + len(terminator)
}

var zero = []byte{0}

const (
	escapeMark = 0xFF // follows a 00 that belongs to the value
	endMark    = 0x01 // follows the 00 that ends the value
	terminator = "\x00\x01"
)

// addLengths adds the encoded length of each value, at most limits.KeyBytes+1
// so that the sum over all columns cannot overflow.
func (c *column) addLengths(sums []uint32) {
	offsets := c.offsets
	for i := range sums {
		start, stop := offsets[i], offsets[i+1]
		length := stop - start
		if c.zeros && length <= limits.KeyBytes {
			length += int32(bytes.Count(c.values[start:stop], zero))
		}
		sums[i] += uint32(min(length, limits.KeyBytes)) + uint32(len(terminator))
	}
}

// write puts the column's part of every key where at says, and moves at on.
func (c *column) write(data []byte, at []uint32) {
	switch c.kind {
	case boolean:
		for i, p := range at {
			bit := c.bit + i
			data[p] = c.values[bit>>3] >> (bit & 7) & 1
			at[i] = p + 1
		}
	case raw:
		for i, p := range at {
			copy(data[p:], c.values[i*c.width:(i+1)*c.width])
			at[i] = p + uint32(c.width)
		}
	case escaped:
		c.writeEscaped(data, at)
	case number:
		c.writeNumbers(data, at)
	}
}

func (c *column) writeNumbers(data []byte, at []uint32) {
	values := c.values
	switch c.width {
	case 1:
		flip := byte(c.flipMask() >> 56)
		for i, p := range at {
			data[p] = values[i] ^ flip
			at[i] = p + 1
		}
	case 2:
		flip := uint16(c.flipMask() >> 48)
		for i, p := range at {
			binary.BigEndian.PutUint16(data[p:], binary.LittleEndian.Uint16(values[2*i:])^flip)
			at[i] = p + 2
		}
	case 4:
		flip := uint32(c.flipMask() >> 32)
		for i, p := range at {
			binary.BigEndian.PutUint32(data[p:], binary.LittleEndian.Uint32(values[4*i:])^flip)
			at[i] = p + 4
		}
	case 8:
		flip := c.flipMask()
		for i, p := range at {
			binary.BigEndian.PutUint64(data[p:], binary.LittleEndian.Uint64(values[8*i:])^flip)
			at[i] = p + 8
		}
	default: // decimal128 and decimal256: words from the highest to the lowest
		width := uint32(c.width)
		for i, p := range at {
			flip := c.flipMask()
			value := values[i*c.width : (i+1)*c.width]
			for word := len(value) - 8; word >= 0; word -= 8 {
				binary.BigEndian.PutUint64(data[p:], binary.LittleEndian.Uint64(value[word:])^flip)
				p, flip = p+8, 0
			}
			at[i] += width
		}
	}
}

// flipMask is what the first eight bytes of a number are xor-ed with.
func (s shape) flipMask() uint64 {
	if s.flip {
		return 1 << 63
	}
	return 0
}

func (c *column) writeEscaped(data []byte, at []uint32) {
	for i := range at {
		p := int(at[i])
		value := c.values[c.offsets[i]:c.offsets[i+1]]
		if c.zeros {
			p += putEscaped(data[p:], value)
		} else {
			p += copy(data[p:], value)
		}
		data[p], data[p+1] = 0, endMark
		at[i] = uint32(p + 2)
	}
}

// shortValue bytes are escaped one by one: searching costs more for so few.
const shortValue = 24

// putEscaped writes value with 00 as 00 FF and returns how many bytes that are.
func putEscaped(dst, value []byte) int {
	n := 0
	if len(value) <= shortValue {
		for _, b := range value {
			dst[n] = b
			n++
			if b == 0 {
				dst[n] = escapeMark
				n++
			}
		}
		return n
	}
	for {
		at := bytes.IndexByte(value, 0)
		if at < 0 {
			return n + copy(dst[n:], value)
		}
		n += copy(dst[n:], value[:at+1])
		dst[n] = escapeMark
		n++
		value = value[at+1:]
	}
}

// AppendValue appends the encoding of one value to dst: that of a literal in a
// filter, say. It does not apply limits.KeyBytes. A null is a *RowError.
func AppendValue(dst []byte, arr arrow.Array, row int) ([]byte, error) {
	columns, err := open([]arrow.Array{arr}, row, row+1)
	if err != nil {
		return dst, err
	}
	c := &columns[0]
	size := c.width
	if c.kind == escaped {
		size = c.length(0)
	}
	start := len(dst)
	dst = grow(dst, size)[:start+size]
	c.write(dst[start:], []uint32{0})
	return dst, nil
}
