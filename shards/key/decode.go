package key

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrMalformed is wrapped by every error about bytes that are no encoded key.
var ErrMalformed = errors.New("malformed key")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// Prefix is the length in bytes of the first n columns of an encoded key, or of
// the beginning of one.
func Prefix(types []arrow.DataType, key []byte, n int) (int, error) {
	if n < 0 || n > len(types) {
		return 0, fmt.Errorf("key: %d leading columns of %d", n, len(types))
	}
	at := 0
	for _, dt := range types[:n] {
		shape := shapeOf(dt)
		switch shape.kind {
		case unsupported:
			return 0, fmt.Errorf("key: %s is no key type in canonical layout", dt)
		case escaped:
			_, length, err := measure(key[at:])
			if err != nil {
				return 0, err
			}
			at += length
		default:
			if len(key)-at < shape.width {
				return 0, malformed("%d bytes where %s takes %d", len(key)-at, dt, shape.width)
			}
			at += shape.width
		}
	}
	return at, nil
}

// measure finds the end of the escaped value that b begins with: the bytes of
// the value itself, and those of its encoding.
func measure(b []byte) (value, encoded int, err error) {
	at, escapes := 0, 0
	for {
		zero := bytes.IndexByte(b[at:], 0)
		if zero < 0 || at+zero+1 >= len(b) {
			return 0, 0, malformed("a string or binary value without its end")
		}
		at += zero + 2
		switch b[at-1] {
		case endMark:
			return at - 2 - escapes, at, nil
		case escapeMark:
			escapes++
		default:
			return 0, 0, malformed("byte %02x after 00", b[at-1])
		}
	}
}

// Decode is the inverse of Encode: canonical arrays of the given types, one row
// per key, memory from mem; the caller releases them. Keys that Encode cannot
// have made give an error that wraps ErrMalformed.
func Decode(mem memory.Allocator, types []arrow.DataType, keys *Keys) ([]arrow.Array, error) {
	n := keys.Len()
	at := make([]uint32, n)
	if n > 0 {
		copy(at[1:], keys.Ends)
		for i, end := range keys.Ends {
			if at[i] > end || int64(end) > int64(len(keys.Data)) {
				return nil, fmt.Errorf("key: the ends of a key list run backwards or past its data")
			}
		}
	}
	columns := make([]arrow.Array, 0, len(types))
	release := func() {
		for _, column := range columns {
			column.Release()
		}
	}
	for _, dt := range types {
		column, err := decodeColumn(mem, dt, keys, at)
		if err != nil {
			release()
			return nil, err
		}
		columns = append(columns, column)
	}
	for i, end := range keys.Ends {
		if at[i] != end {
			release()
			return nil, malformed("%d bytes behind the last column", end-at[i])
		}
	}
	return columns, nil
}

// decodeColumn decodes the value of every key that begins at at[i], and moves
// at behind it.
func decodeColumn(mem memory.Allocator, dt arrow.DataType, keys *Keys, at []uint32) (arrow.Array, error) {
	shape := shapeOf(dt)
	switch shape.kind {
	case unsupported:
		return nil, fmt.Errorf("key: %s is no key type in canonical layout", dt)
	case escaped:
		return decodeEscaped(mem, dt, keys, at)
	}
	for i, end := range keys.Ends {
		if int(end-at[i]) < shape.width {
			return nil, malformed("%d bytes where %s takes %d", end-at[i], dt, shape.width)
		}
	}
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	if shape.kind == boolean {
		values.Resize(int(bitutil.BytesForBits(int64(len(at)))))
		clear(values.Bytes())
		for i, p := range at {
			switch keys.Data[p] {
			case 0:
			case 1:
				bitutil.SetBit(values.Bytes(), i)
			default:
				return nil, malformed("byte %02x as a boolean", keys.Data[p])
			}
			at[i] = p + 1
		}
	} else {
		values.Resize(shape.width * len(at))
		shape.read(values.Bytes(), keys.Data, at)
	}
	return newArray(dt, len(at), values), nil
}

// read is the inverse of column.write for values of fixed width.
func (s shape) read(values, data []byte, at []uint32) {
	flip := s.flipMask()
	switch {
	case s.kind == raw:
		for i, p := range at {
			copy(values[i*s.width:(i+1)*s.width], data[p:])
			at[i] = p + uint32(s.width)
		}
	case s.width == 1:
		for i, p := range at {
			values[i] = data[p] ^ byte(flip>>56)
			at[i] = p + 1
		}
	case s.width == 2:
		for i, p := range at {
			binary.LittleEndian.PutUint16(values[2*i:], binary.BigEndian.Uint16(data[p:])^uint16(flip>>48))
			at[i] = p + 2
		}
	case s.width == 4:
		for i, p := range at {
			binary.LittleEndian.PutUint32(values[4*i:], binary.BigEndian.Uint32(data[p:])^uint32(flip>>32))
			at[i] = p + 4
		}
	default:
		for i, p := range at {
			value, flip := values[i*s.width:(i+1)*s.width], flip
			for word := len(value) - 8; word >= 0; word -= 8 {
				binary.LittleEndian.PutUint64(value[word:], binary.BigEndian.Uint64(data[p:])^flip)
				p, flip = p+8, 0
			}
			at[i] = p
		}
	}
}

func decodeEscaped(mem memory.Allocator, dt arrow.DataType, keys *Keys, at []uint32) (arrow.Array, error) {
	offsets := memory.NewResizableBuffer(mem)
	defer offsets.Release()
	offsets.Resize(4 * (len(at) + 1))
	lengths := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	total := 0
	for i, end := range keys.Ends {
		lengths[i] = int32(total)
		value, _, err := measure(keys.Data[at[i]:end])
		if err != nil {
			return nil, err
		}
		if total += value; total > math.MaxInt32 {
			return nil, fmt.Errorf("key: more than 2 GiB in one %s column", dt)
		}
	}
	lengths[len(at)] = int32(total)

	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(total)
	for i, p := range at {
		value := values.Bytes()[lengths[i]:lengths[i+1]]
		at[i] = p + uint32(unescape(value, keys.Data[p:])) + uint32(len(terminator))
	}
	return newArray(dt, len(at), offsets, values), nil
}

// unescape fills value from its encoding and returns how many bytes it read,
// without the terminator.
func unescape(value, encoded []byte) int {
	read := 0
	for len(value) > 0 {
		n := copy(value, encoded[read:])
		if zero := bytes.IndexByte(value[:n], 0); zero >= 0 {
			read += zero + 2
			value = value[zero+1:]
			continue
		}
		return read + n
	}
	return read
}

func newArray(dt arrow.DataType, rows int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(dt, rows, append([]*memory.Buffer{nil}, buffers...), nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}
