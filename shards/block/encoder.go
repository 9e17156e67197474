package block

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
	"github.com/pierrec/lz4/v4"
)

// A block, all numbers little-endian:
//
//	version   1 byte
//	rows      4 bytes
//	columns   2 bytes
//	directory columns × (id 4 bytes, end of its chunk 4 bytes), ids ascending
//	chunks    in the directory's order
//	checksum  8 bytes, xxhash64 of all before it
//
// docs/format-blocks.md has the chunks byte by byte.
const (
	blockVersion  = 1
	headerBytes   = 7
	entryBytes    = 8
	checksumBytes = 8
	maxColumns    = 1<<16 - 1
	maxBlockBytes = 1<<31 - 1
)

// A chunk begins with its type's tag and an encoding, with flagValid if a
// bitmap of valid rows follows. Encodings never change their meaning.
const (
	encNulls     = 0  // every row is null, or there is none
	encConstant  = 1  // one value
	encRaw       = 2  // the Arrow buffer
	encRawLZ4    = 3  // the Arrow buffer, LZ4
	encPacked    = 4  // base + n bits
	encStepped   = 5  // base + step × n bits
	encScaled    = 6  // packed numbers / a power of ten or two, and exceptions
	encText      = 7  // packed lengths, bytes
	encTextLZ4   = 8  // packed lengths, bytes in LZ4
	encDict      = 9  // packed codes, dictionary
	encList      = 10 // packed lengths, child chunk
	encFixedList = 11 // child chunk
	encStruct    = 12 // child chunks with their lengths

	encMask   = 0x7F
	flagValid = 0x80
)

// Encoder writes blocks. The same columns always give the same bytes. It keeps
// scratch memory between blocks; one goroutine uses it at a time.
type Encoder struct {
	words  []uint64 // values of a column, as numbers
	codes  []uint64 // dictionary codes
	floats []float64
	bytes  []byte // text without what nulls hide
	packed []byte // compressed
	dict   dictionary
	lz     lz4.Compressor
	order  []int
	plain  int // bytes of the column so far, as plain Arrow
}

// NewEncoder makes an encoder; its zero value would do, too.
func NewEncoder() *Encoder { return &Encoder{} }

// Encode appends a block of the given columns to dst. ids are distinct; cols
// are canonical arrays of that many rows, in any order of ids, and may be cut
// from larger arrays. It fails on what a block cannot hold: more than MaxRows
// rows or a column of more than MaxColumnBytes.
func (e *Encoder) Encode(dst []byte, rows int, ids []uint32, cols []arrow.Array) ([]byte, error) {
	for i, col := range cols {
		if col.Len() != rows && i < len(ids) {
			return nil, fmt.Errorf("column %d has %d rows in a block of %d", ids[i], col.Len(), rows)
		}
	}
	return e.EncodeRows(dst, 0, rows, ids, cols)
}

// EncodeRows is Encode of rows [lo, hi) of longer columns: the bytes are those of
// a block of columns cut to them.
func (e *Encoder) EncodeRows(dst []byte, lo, hi int, ids []uint32, cols []arrow.Array) ([]byte, error) {
	rows := hi - lo
	if lo < 0 || rows < 0 || rows > MaxRows {
		return nil, fmt.Errorf("a block of %d rows: it holds at most %d", rows, MaxRows)
	}
	if len(ids) != len(cols) || len(ids) > maxColumns {
		return nil, fmt.Errorf("a block of %d columns with %d ids: it holds at most %d", len(cols), len(ids), maxColumns)
	}
	order := grown(&e.order, len(ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })

	start := len(dst)
	dst = append(dst, blockVersion)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(rows))
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(ids)))
	directory := len(dst)
	dst = append(dst, make([]byte, len(ids)*entryBytes)...)
	for i, c := range order {
		id, col := ids[c], cols[c]
		if i > 0 && id == ids[order[i-1]] {
			return nil, fmt.Errorf("column %d is in the block twice", id)
		}
		if col.Len() < hi {
			return nil, fmt.Errorf("column %d has %d rows, the block begins behind %d and has %d", id, col.Len(), lo, rows)
		}
		k, ok := kindOf(col.DataType())
		if !ok {
			return nil, fmt.Errorf("column %d: %w", id, errNotCanonical(col.DataType()))
		}
		e.plain = 0
		s := sourceOf(k, col.Data(), 0)
		var err error
		if dst, err = e.chunk(dst, k, col.DataType(), &s, lo, hi); err != nil {
			return nil, fmt.Errorf("column %d: %w", id, err)
		}
		if len(dst)-start > maxBlockBytes {
			return nil, fmt.Errorf("a block of more than %d bytes", maxBlockBytes)
		}
		entry := dst[directory+i*entryBytes:]
		binary.LittleEndian.PutUint32(entry, id)
		binary.LittleEndian.PutUint32(entry[4:], uint32(len(dst)-start))
	}
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:])), nil
}

// chunk appends rows [lo, hi) of a column.
func (e *Encoder) chunk(dst []byte, k kind, dt arrow.DataType, s *source, lo, hi int) ([]byte, error) {
	n := hi - lo
	nulls := s.nulls(lo, hi)
	if n == nulls || k.shape == shapeNull {
		if !spendNulls(&e.plain, dt, n) {
			return nil, errTooLarge
		}
		return append(dst, k.tag, encNulls), nil
	}
	at := len(dst) + 1 // of the encoding
	dst = append(dst, k.tag, 0)
	var flag byte
	if nulls > 0 {
		flag = flagValid
		dst = appendBits(dst, s.valid, s.off+lo, n)
	}
	var enc byte
	var err error
	switch k.shape {
	case shapeBool:
		dst, enc = e.bools(dst, s, lo, n, nulls)
	case shapeFixed:
		dst, enc = e.fixed(dst, k, s, lo, n, nulls)
	case shapeText:
		if dst, err = e.spend(dst, k, n); err != nil {
			return nil, err
		}
		dst, enc, err = e.text(dst, s, lo, n, nulls)
		if err != nil {
			return nil, err
		}
		dst[at] = enc | flag
		return dst, nil
	case shapeList:
		dst, err = e.list(dst, dt, s, lo, n)
		enc = encList
	case shapeFixedList:
		dst, err = e.fixedList(dst, k, dt, s, lo, n)
		enc = encFixedList
	case shapeStruct:
		dst, err = e.structure(dst, dt, s, lo, n)
		enc = encStruct
	}
	if err != nil {
		return nil, err
	}
	dst[at] = enc | flag
	return e.spend(dst, k, n)
}

// spend counts what n rows take as plain Arrow, but for the bytes of text.
func (e *Encoder) spend(dst []byte, k kind, n int) ([]byte, error) {
	if !spend(&e.plain, plainBytes(k, n)) {
		return nil, errTooLarge
	}
	return dst, nil
}

var errTooLarge = fmt.Errorf("more than %d bytes of one column in a block", MaxColumnBytes)

// plainBytes is what n rows take in a vector, validity included, but for the
// bytes of text and for children.
func plainBytes(k kind, n int) int {
	switch k.shape {
	case shapeNull:
		return 0
	case shapeBool:
		return 2 * bitmapBytes(n)
	case shapeFixed:
		return bitmapBytes(n) + n*k.width
	case shapeText, shapeList:
		return bitmapBytes(n) + n*4
	}
	return bitmapBytes(n)
}

// spend adds n to what a column has taken; false if that is too much.
func spend(total *int, n int) bool {
	if n < 0 || n > MaxColumnBytes-*total {
		return false
	}
	*total += n
	return true
}

// spendNulls counts what n nulls take in a vector, children included.
func spendNulls(total *int, dt arrow.DataType, n int) bool {
	k, _ := kindOf(dt)
	if !spend(total, plainBytes(k, n)) {
		return false
	}
	switch k.shape {
	case shapeFixedList:
		if k.size > 0 && n > maxChildRows/k.size {
			return false
		}
		return spendNulls(total, children(dt)[0], n*k.size)
	case shapeStruct:
		for _, child := range children(dt) {
			if !spendNulls(total, child, n) {
				return false
			}
		}
	}
	return true
}

// appendBits appends n bits of a bitmap, whole bytes.
func appendBits(dst, bitmap []byte, off, n int) []byte {
	size := bitmapBytes(n)
	start := len(dst)
	dst = slices.Grow(dst, size)[:start+size]
	copyBits(dst[start:], 0, bitmap, off, n)
	return dst
}

func (e *Encoder) bools(dst []byte, s *source, lo, n, nulls int) ([]byte, byte) {
	if nulls == 0 {
		switch countZeros(s.values, s.off+lo, n) {
		case 0:
			return append(dst, 1), encConstant
		case n:
			return append(dst, 0), encConstant
		}
	}
	start := len(dst)
	dst = appendBits(dst, s.values, s.off+lo, n)
	if nulls > 0 { // a null is false
		for i := range dst[start:] {
			at := i << 3
			dst[start+i] &= byte(loadBits(s.valid, s.off+lo+at, min(8, n-at)))
		}
	}
	return dst, encRaw
}

func errNotCanonical(dt arrow.DataType) error {
	return fmt.Errorf("type %s is not canonical", dt)
}
