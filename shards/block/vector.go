package block

import (
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Vector is a column that grows: rows are appended from arrays or decoded from
// blocks, then handed over as one array without a copy. Its memory grows by
// doubling and comes from an allocator, which need not zero it. One goroutine
// uses a vector at a time.
type Vector struct {
	mem memory.Allocator
	dt  arrow.DataType
	kind
	rows, nulls int
	// valid is a bitmap of rows bits, kept only while nulls > 0; values holds
	// fixed-width values, the bits of bools or the bytes of text; offs holds
	// rows+1 offsets (or none before the first row). nil until needed.
	valid, values, offs *memory.Buffer
	// lastValues and lastOffs are how long the buffers were that NewArray last
	// handed over: the next ones will be much like them.
	lastValues, lastOffs int
	kids                 []*Vector
	scratch              *scratch
}

// scratch is what decoding and gathering need between their steps; it stays
// with the vector so that steady work allocates nothing.
type scratch struct {
	codes   []uint32
	offs    []int32
	bytes   []byte
	sources []source
	touched []uint32
	words   []uint64
	short   *shortTable
}

// NewVector is an empty vector of a canonical type. It panics on a type that
// is not canonical (canonical.CheckType refuses those of users).
func NewVector(mem memory.Allocator, canonical arrow.DataType) *Vector {
	k, ok := kindOf(canonical)
	if !ok {
		panic(fmt.Sprintf("BUG: no vector of type %s", canonical))
	}
	v := &Vector{mem: mem, dt: canonical, kind: k}
	for _, child := range children(canonical) {
		v.kids = append(v.kids, NewVector(mem, child))
	}
	return v
}

// Type is the type the vector was made with.
func (v *Vector) Type() arrow.DataType { return v.dt }

// Len is the number of rows.
func (v *Vector) Len() int { return v.rows }

// Bytes is the memory its rows fill, children included.
func (v *Vector) Bytes() int64 {
	total := int64(0)
	if v.nulls > 0 {
		total += int64(bitmapBytes(v.rows))
	}
	for _, b := range []*memory.Buffer{v.values, v.offs} {
		if b != nil {
			total += int64(b.Len())
		}
	}
	for _, kid := range v.kids {
		total += kid.Bytes()
	}
	return total
}

// Reserve makes room for that many more rows where their size is known: not
// for the bytes of text or the elements of lists.
func (v *Vector) Reserve(rows int) {
	switch v.shape {
	case shapeBool:
		v.reserve(&v.values, bitmapBytes(v.rows+rows))
	case shapeFixed:
		v.reserve(&v.values, (v.rows+rows)*v.width)
	case shapeText, shapeList:
		v.reserve(&v.offs, (v.rows+rows+1)*4)
	case shapeFixedList:
		v.kids[0].Reserve(rows * v.size)
	case shapeStruct:
		for _, kid := range v.kids {
			kid.Reserve(rows)
		}
	}
	if v.nulls > 0 {
		v.reserve(&v.valid, bitmapBytes(v.rows+rows))
	}
}

// Reset forgets the rows and keeps the memory.
func (v *Vector) Reset() {
	v.rows, v.nulls = 0, 0
	for _, b := range []*memory.Buffer{v.valid, v.values, v.offs} {
		if b != nil {
			b.ResizeNoShrink(0)
		}
	}
	for _, kid := range v.kids {
		kid.Reset()
	}
}

// Release gives the memory back; the vector is then empty and may be used on.
func (v *Vector) Release() {
	v.rows, v.nulls = 0, 0
	for _, b := range []**memory.Buffer{&v.valid, &v.values, &v.offs} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
	v.releaseScratch()
	for _, kid := range v.kids {
		kid.Release()
	}
}

// NewArray hands the rows over as an array with offset 0 and a known null
// count, which the caller releases, and leaves the vector empty.
func (v *Vector) NewArray() arrow.Array {
	data := v.takeData()
	defer data.Release()
	return array.MakeFromData(data)
}

func (v *Vector) takeData() *array.Data {
	buffers := make([]*memory.Buffer, 1, 3)
	if v.nulls > 0 && v.shape != shapeNull {
		buffers[0], v.valid = v.valid, nil
	}
	switch v.shape {
	case shapeText, shapeList:
		v.extendOffs(0)
		buffers = append(buffers, v.offs)
		v.lastOffs, v.offs = v.offs.Len(), nil
	}
	switch v.shape {
	case shapeBool, shapeFixed, shapeText:
		v.extend(&v.values, 0)
		buffers = append(buffers, v.values)
		v.lastValues, v.values = v.values.Len(), nil
	}
	var kids []arrow.ArrayData
	for _, kid := range v.kids {
		kids = append(kids, kid.takeData())
	}
	data := array.NewData(v.dt, v.rows, buffers, kids, v.nulls, 0)
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	for _, kid := range kids {
		kid.Release()
	}
	v.rows, v.nulls = 0, 0
	return data
}

// AppendNulls appends n nulls. Their value slots are zero, their text and
// lists empty, their children under structs and fixed-size lists zero.
func (v *Vector) AppendNulls(n int) {
	if n <= 0 {
		return
	}
	v.appendZeros(n)
	if v.shape == shapeNull {
		return
	}
	v.rows -= n
	v.appendValid(n, false)
	v.rows += n
}

// appendZeros appends n rows that are valid (but for type null) and whose
// values are zero or empty.
func (v *Vector) appendZeros(n int) {
	v.appendValid(n, true)
	switch v.shape {
	case shapeNull:
		v.nulls += n
	case shapeBool:
		v.extend(&v.values, bitmapBytes(v.rows+n)-bitmapBytes(v.rows))
		fillBits(v.values.Bytes(), v.rows, n, false)
	case shapeFixed:
		clear(v.extend(&v.values, n*v.width))
	case shapeText, shapeList:
		offs := v.extendOffs(n)
		for i := range offs {
			offs[i] = offs[0]
		}
	case shapeFixedList:
		v.kids[0].appendZeros(n * v.size)
	case shapeStruct:
		for _, kid := range v.kids {
			kid.appendZeros(n)
		}
	}
	v.rows += n
}

// appendValid notes the validity of n rows that are being appended; v.rows
// does not count them yet.
func (v *Vector) appendValid(n int, valid bool) {
	if valid && v.nulls == 0 || v.shape == shapeNull {
		return
	}
	v.extendValid(n)
	fillBits(v.valid.Bytes(), v.rows, n, valid)
	if !valid {
		v.nulls += n
	}
}

// appendValidBits is appendValid with n bits of a bitmap, nil for all valid.
func (v *Vector) appendValidBits(bitmap []byte, off, n int) {
	nulls := 0
	if bitmap != nil {
		nulls = countZeros(bitmap, off, n)
	}
	if nulls == 0 {
		v.appendValid(n, true)
		return
	}
	v.extendValid(n)
	copyBits(v.valid.Bytes(), v.rows, bitmap, off, n)
	v.nulls += nulls
}

// extendValid makes room for n more rows' bits; the bitmap begins here if all
// rows so far are valid.
func (v *Vector) extendValid(n int) {
	if v.nulls == 0 {
		if v.valid != nil {
			v.valid.ResizeNoShrink(0)
		}
		v.extend(&v.valid, bitmapBytes(v.rows+n))
		fillBits(v.valid.Bytes(), 0, v.rows, true)
		return
	}
	v.extend(&v.valid, bitmapBytes(v.rows+n)-v.valid.Len())
}

// rollback drops the rows behind the first rows, which may be half appended.
func (v *Vector) rollback(rows int) {
	if v.shape == shapeNull {
		v.nulls = rows
	} else if v.nulls > 0 {
		v.nulls = countZeros(v.valid.Buf(), 0, rows)
		v.valid.ResizeNoShrink(bitmapBytes(rows))
	}
	v.rows = rows
	resize := func(b *memory.Buffer, n int) {
		if b != nil && n <= b.Cap() {
			b.ResizeNoShrink(n)
		}
	}
	end := 0
	if rows == 0 {
		resize(v.offs, 0)
	} else if v.offs != nil {
		resize(v.offs, (rows+1)*4)
		end = int(int32s(v.offs.Bytes())[rows])
	}
	switch v.shape {
	case shapeBool:
		resize(v.values, bitmapBytes(rows))
	case shapeFixed:
		resize(v.values, rows*v.width)
	case shapeText:
		resize(v.values, end)
	case shapeList:
		v.kids[0].rollback(end)
	case shapeFixedList:
		v.kids[0].rollback(rows * v.size)
	case shapeStruct:
		for _, kid := range v.kids {
			kid.rollback(rows)
		}
	}
}

// reserve makes the buffer hold n bytes, at least doubling it when it grows.
func (v *Vector) reserve(b **memory.Buffer, n int) {
	if *b == nil {
		*b = memory.NewResizableBuffer(v.mem)
	}
	have := (*b).Cap()
	if n <= have {
		return
	}
	if have == 0 {
		switch b {
		case &v.values:
			n = max(n, v.lastValues)
		case &v.offs:
			n = max(n, v.lastOffs)
		}
	}
	(*b).Reserve(max(n, 2*have))
}

// extend makes the buffer n bytes longer and returns these.
func (v *Vector) extend(b **memory.Buffer, n int) []byte {
	return v.extendSpare(b, n, 0)
}

// extendSpare is extend with spare bytes behind that may be overwritten.
func (v *Vector) extendSpare(b **memory.Buffer, n, spare int) []byte {
	old := 0
	if *b != nil {
		old = (*b).Len()
	}
	v.reserve(b, old+n+spare)
	(*b).ResizeNoShrink(old + n)
	return (*b).Buf()[old : old+n+spare]
}

// extendOffs makes room for n more offsets and returns them behind the last
// one so far: n+1 offsets, the first one set.
func (v *Vector) extendOffs(n int) []int32 {
	if v.offs == nil || v.offs.Len() == 0 {
		clear(v.extend(&v.offs, 4))
	}
	v.extend(&v.offs, n*4)
	return int32s(v.offs.Bytes())[v.rows:]
}

// extendText makes the bytes of text n longer. Offsets are 32 bits: a vector
// is cut into arrays long before, so more is a mistake of the program.
func (v *Vector) extendText(n, spare int) []byte {
	if v.values != nil && v.values.Len() > math.MaxInt32-n {
		panic("BUG: more than 2 GiB of text in one vector")
	}
	return v.extendSpare(&v.values, n, spare)
}

// scratches keeps the scratch memory of vectors that were released: a lookup
// makes vectors for a few rows, and its scratch memory is that of a whole block.
var scratches = sync.Pool{New: func() any { return &scratch{} }}

// keptScratch bounds the bytes that are kept.
const keptScratch = 1 << 20

func (v *Vector) scratchpad() *scratch {
	if v.scratch == nil {
		v.scratch = scratches.Get().(*scratch)
	}
	return v.scratch
}

func (v *Vector) releaseScratch() {
	if s := v.scratch; s != nil && cap(s.bytes) <= keptScratch {
		for _, i := range s.touched { // open still after a panic
			s.sources[i] = source{}
		}
		s.touched = s.touched[:0]
		scratches.Put(s)
	}
	v.scratch = nil
}

// grown is s with length n, its old contents lost if it had to grow.
func grown[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n, n+n/4)
	}
	*s = (*s)[:n]
	return *s
}

// int32s and words see the bytes of a buffer as numbers.
func int32s(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func words[T integer](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(T(0))))
}

func words128(b []byte) [][16]byte {
	return unsafe.Slice((*[16]byte)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/16)
}
