package canonical

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// Which rows of canonical data hold the same value, bit by bit: −0.0 is not
// 0.0, and NaNs are equal if their bits are.

// distinct numbers the different values in the order of first use: a code per
// row (0 for nulls) and the first row of each code. If there are more than most
// values, full is the row that brought one too many, else −1.
func distinct(data arrow.ArrayData, most int) (codes, firsts []int32, full int) {
	codes = make([]int32, data.Len())
	bitmap := bytesOf(data, 0)
	isNullType := data.DataType().ID() == arrow.NULL
	row := rowReader(data)
	values := newValueTable()
	code := int32(-1)
	for i := range codes {
		if isNullType || isNull(bitmap, i) {
			continue
		}
		value := row(i)
		if code < 0 || !bytes.Equal(values.at(code), value) { // else as the row before
			if code = values.code(value); int(code) == len(firsts) {
				if len(firsts) == most {
					return nil, nil, i
				}
				firsts = append(firsts, int32(i))
			}
		}
		codes[i] = code
	}
	return codes, firsts, -1
}

// valueTable is a hash table from values to codes in the order of arrival.
type valueTable struct {
	seed   maphash.Seed
	slots  []int32  // code + 1, 0 if free; a power of two of them
	hashes []uint64 // by code
	bytes  []byte   // the values, one behind the other
	ends   []int
}

func newValueTable() *valueTable {
	return &valueTable{seed: maphash.MakeSeed(), slots: make([]int32, 64)}
}

func (v *valueTable) at(code int32) []byte {
	start := 0
	if code > 0 {
		start = v.ends[code-1]
	}
	return v.bytes[start:v.ends[code]]
}

// code is the value's code, the next free one if the value is new.
func (v *valueTable) code(value []byte) int32 {
	hash := maphash.Bytes(v.seed, value)
	mask := uint64(len(v.slots) - 1)
	at := hash & mask
	for ; v.slots[at] != 0; at = (at + 1) & mask {
		if code := v.slots[at] - 1; v.hashes[code] == hash && bytes.Equal(v.at(code), value) {
			return code
		}
	}
	code := int32(len(v.ends))
	v.slots[at] = code + 1
	v.hashes = append(v.hashes, hash)
	v.bytes = append(v.bytes, value...)
	v.ends = append(v.ends, len(v.bytes))
	if 2*len(v.ends) > len(v.slots) {
		v.grow()
	}
	return code
}

func (v *valueTable) grow() {
	v.slots = make([]int32, 4*len(v.slots))
	mask := uint64(len(v.slots) - 1)
	for code, hash := range v.hashes {
		at := hash & mask
		for v.slots[at] != 0 {
			at = (at + 1) & mask
		}
		v.slots[at] = int32(code) + 1
	}
}

// runStarts is the first row of each stretch of equal rows, nulls being equal.
func runStarts(data arrow.ArrayData) []int32 {
	var starts []int32
	if data.DataType().ID() == arrow.NULL {
		if data.Len() > 0 {
			starts = []int32{0}
		}
		return starts
	}
	bitmap := bytesOf(data, 0)
	row := rowReader(data)
	var last []byte
	lastNull := false
	for i := range data.Len() {
		null := isNull(bitmap, i)
		var value []byte
		if !null {
			value = row(i)
		}
		if i == 0 || null != lastNull || !bytes.Equal(value, last) {
			starts = append(starts, int32(i))
		}
		lastNull = null
		last = append(last[:0], value...)
	}
	return starts
}

// rowReader reads the valid rows of canonical data as bytes that are equal if
// and only if the values are. The bytes last until the next call.
func rowReader(data arrow.ArrayData) func(row int) []byte {
	values := bytesOf(data, 1)
	switch data.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		offsets, values := arrow.Int32Traits.CastFromBytes(values), bytesOf(data, 2)
		return func(row int) []byte { return values[offsets[row]:offsets[row+1]] }
	}
	if width, ok := elementWidth(data.DataType()); ok {
		return func(row int) []byte { return values[row*width : (row+1)*width] }
	}
	var scratch []byte
	return func(row int) []byte {
		scratch = appendRow(scratch[:0], data, row)
		return scratch
	}
}

// appendRow appends one row so that different rows of one type give different
// bytes: a null byte, then the value, preceded by its length if that varies.
func appendRow(dst []byte, data arrow.ArrayData, row int) []byte {
	if data.DataType().ID() == arrow.NULL || isNull(bytesOf(data, 0), row) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch dt := data.DataType().(type) {
	case *arrow.BooleanType:
		if bitutil.BitIsSet(bytesOf(data, 1), row) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case *arrow.StringType, *arrow.BinaryType:
		first, last := extent(data, row)
		dst = binary.AppendUvarint(dst, uint64(last-first))
		return append(dst, bytesOf(data, 2)[first:last]...)
	case *arrow.ListType, *arrow.MapType:
		first, last := extent(data, row)
		dst = binary.AppendUvarint(dst, uint64(last-first))
		return appendRows(dst, data.Children()[0], first, last)
	case *arrow.FixedSizeListType:
		return appendRows(dst, data.Children()[0], row*int(dt.Len()), (row+1)*int(dt.Len()))
	case *arrow.StructType:
		for _, field := range data.Children() {
			dst = appendRow(dst, field, row)
		}
		return dst
	}
	width, _ := elementWidth(data.DataType())
	return append(dst, bytesOf(data, 1)[row*width:(row+1)*width]...)
}

func appendRows(dst []byte, data arrow.ArrayData, first, last int) []byte {
	for row := first; row < last; row++ {
		dst = appendRow(dst, data, row)
	}
	return dst
}

// extent is where a row of strings, binary or lists begins and ends.
func extent(data arrow.ArrayData, row int) (first, last int) {
	offsets := arrow.Int32Traits.CastFromBytes(bytesOf(data, 1))
	return int(offsets[row]), int(offsets[row+1])
}
