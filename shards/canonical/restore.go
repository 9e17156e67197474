package canonical

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// DictionaryFull is the error of Restore when a dictionary needs more values
// than its index type can number, or a run-end encoded array has more rows than
// its run-end type can count. The array must be restored in smaller pieces.
type DictionaryFull struct {
	Type arrow.DataType // the dictionary or run-end encoded type
	// Rows is how many of the array's first rows would have fitted, at least 1;
	// 0 if the type is nested in others, where rows count differently.
	Rows int
}

// Error is a text for logs: callers cut the array and try again.
func (e *DictionaryFull) Error() string {
	return fmt.Sprintf("the rows need more values than %s can number", e.Type)
}

// Restore gives an array of canonical type, or a slice of one, the declared
// layout and type; Type(declared) must be arr's type. Dictionaries are built
// for this array alone, their values in the order of first use, and are
// *DictionaryFull if the index type is too small. Buffers are shared where the
// layouts agree. The caller releases the result; memory is from mem.
func Restore(mem memory.Allocator, arr arrow.Array, declared arrow.DataType) (arrow.Array, error) {
	if !arrow.TypeEqual(arr.DataType(), Type(declared)) {
		return nil, fmt.Errorf("canonical: %s is not the canonical form of %s", arr.DataType(), declared)
	}
	if !settled(arr.Data()) {
		settled, err := cut(mem, arr)
		if err != nil {
			return nil, err
		}
		defer settled.Release()
		arr = settled
	}
	if IsIdentity(declared) {
		arr.Retain()
		return arr, nil
	}
	r := restorer{mem: mem}
	data, err := r.restore(declared, arr.Data())
	if err != nil {
		var full *DictionaryFull
		if errors.As(err, &full) && full.Type != storageOf(declared) {
			full.Rows = 0
		}
		return nil, err
	}
	return newArray(data), nil
}

// settled: canonical data that is no slice, at any depth.
func settled(data arrow.ArrayData) bool {
	if data.Offset() != 0 || data.NullN() < 0 {
		return false
	}
	want := data.Len()
	switch dt := data.DataType().(type) {
	case *arrow.FixedSizeListType:
		want *= int(dt.Len())
	case *arrow.ListType, *arrow.MapType:
		want = int(binary.LittleEndian.Uint32(bytesOf(data, 1)[4*want:]))
	}
	for _, child := range data.Children() {
		if child.Len() != want || !settled(child) {
			return false
		}
	}
	return true
}

// restorer makes data of declared layouts out of settled canonical data.
type restorer struct{ mem memory.Allocator }

// restore returns data that the caller owns.
func (r restorer) restore(declared arrow.DataType, data arrow.ArrayData) (arrow.ArrayData, error) {
	switch dt := declared.(type) {
	case arrow.ExtensionType:
		storage, err := r.restore(dt.StorageType(), data)
		if err != nil {
			return nil, err
		}
		return retyped(dt, storage), nil
	case *arrow.DictionaryType:
		return r.dictionary(dt, data)
	case *arrow.RunEndEncodedType:
		return r.runs(dt, data)
	}
	children, err := r.children(declared, data.Children())
	if err != nil {
		return nil, err
	}
	buffers := make([]*memory.Buffer, len(data.Buffers()))
	copy(buffers, data.Buffers())
	for _, buffer := range buffers {
		if buffer != nil {
			buffer.Retain()
		}
	}
	rows := data.Len()
	switch declared.ID() {
	case arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LARGE_LIST:
		buffers[1] = r.largeOffsets(buffers[1])
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		buffers = r.views(buffers, rows)
	case arrow.LIST_VIEW:
		offsets, sizes := listView[int32](r, buffers[1], rows)
		buffers = []*memory.Buffer{buffers[0], offsets, sizes}
	case arrow.LARGE_LIST_VIEW:
		offsets, sizes := listView[int64](r, buffers[1], rows)
		buffers = []*memory.Buffer{buffers[0], offsets, sizes}
	}
	return newData(declared, rows, data.NullN(), buffers, children...), nil
}

func (r restorer) children(declared arrow.DataType, children []arrow.ArrayData) ([]arrow.ArrayData, error) {
	restored := make([]arrow.ArrayData, 0, len(children))
	types := Children(declared)
	for i, child := range children {
		data, err := r.restore(types[i], child)
		if err != nil {
			for _, child := range restored {
				child.Release()
			}
			return nil, err
		}
		restored = append(restored, data)
	}
	return restored, nil
}

func (r restorer) buffer(size int) *memory.Buffer {
	buffer := memory.NewResizableBuffer(r.mem)
	buffer.Resize(size)
	return buffer
}

// largeOffsets takes over int32 offsets and makes them int64.
func (r restorer) largeOffsets(small *memory.Buffer) *memory.Buffer {
	defer small.Release()
	source := arrow.Int32Traits.CastFromBytes(small.Bytes())
	large := r.buffer(8 * len(source))
	dst := arrow.Int64Traits.CastFromBytes(large.Bytes())
	for i, offset := range source {
		dst[i] = int64(offset)
	}
	return large
}

// views takes over validity, offsets and values and makes views into the
// values, which become the only data buffer.
func (r restorer) views(buffers []*memory.Buffer, rows int) []*memory.Buffer {
	validity, offsets, values := buffers[0], buffers[1], buffers[2]
	defer offsets.Release()
	ends, source := arrow.Int32Traits.CastFromBytes(offsets.Bytes()), values.Bytes()
	views := r.buffer(viewWidth * rows)
	dst := views.Bytes()
	long := false
	for i := range rows {
		value, view := source[ends[i]:ends[i+1]], dst[i*viewWidth:][:viewWidth]
		clear(view)
		if validity != nil && isNull(validity.Bytes(), i) {
			continue
		}
		binary.LittleEndian.PutUint32(view, uint32(len(value)))
		if len(value) <= viewInline {
			copy(view[4:], value)
			continue
		}
		long = true
		copy(view[4:8], value)
		binary.LittleEndian.PutUint32(view[12:], uint32(ends[i]))
	}
	if !long {
		values.Release()
		return []*memory.Buffer{validity, views}
	}
	return []*memory.Buffer{validity, views, values}
}

// listView takes over int32 offsets and makes the offsets and sizes of views.
func listView[T int32 | int64](r restorer, source *memory.Buffer, rows int) (offsets, sizes *memory.Buffer) {
	defer source.Release()
	ends := arrow.Int32Traits.CastFromBytes(source.Bytes())
	offsets, sizes = r.buffer(widthOf[T]()*rows), r.buffer(widthOf[T]()*rows)
	from, lengths := arrow.GetData[T](offsets.Bytes()), arrow.GetData[T](sizes.Bytes())
	for i := range rows {
		from[i], lengths[i] = T(ends[i]), T(ends[i+1]-ends[i])
	}
	return offsets, sizes
}

// dictionary builds indices and values. A null is an index's, never a value.
func (r restorer) dictionary(dt *arrow.DictionaryType, data arrow.ArrayData) (arrow.ArrayData, error) {
	width, _ := elementWidth(dt.IndexType)
	bits := 8 * width
	if !arrow.IsUnsignedInteger(dt.IndexType.ID()) {
		bits--
	}
	codes, firsts, full := distinct(data, 1<<min(bits, 31))
	if full >= 0 {
		return nil, &DictionaryFull{Type: dt, Rows: full}
	}
	indices := r.buffer(width * data.Len())
	narrow(indices.Bytes(), width, codes)
	values, err := r.taken(dt.ValueType, data, firsts)
	if err != nil {
		indices.Release()
		return nil, err
	}
	validity, nulls := r.validity(data)
	encoded := array.NewDataWithDictionary(dt, data.Len(), []*memory.Buffer{validity, indices}, nulls, 0, values.(*array.Data))
	memory.ReleaseBuffers([]*memory.Buffer{validity, indices})
	values.Release()
	return encoded, nil
}

// validity is the bitmap of indices; a column of the null type has none of its
// own.
func (r restorer) validity(data arrow.ArrayData) (*memory.Buffer, int) {
	if data.DataType().ID() == arrow.NULL && data.Len() > 0 {
		validity := r.buffer(bitmapBytes(data.Len()))
		clear(validity.Bytes())
		return validity, data.Len()
	}
	validity := data.Buffers()[0]
	if validity != nil {
		validity.Retain()
	}
	return validity, data.NullN()
}

// taken takes rows of canonical data and restores them.
func (r restorer) taken(declared arrow.DataType, data arrow.ArrayData, rows []int32) (arrow.ArrayData, error) {
	n := normalizer{mem: r.mem, left: 1 << 62}
	values, err := n.take(data, rows)
	if err != nil {
		return nil, err
	}
	defer values.Release()
	return r.restore(declared, values)
}

// narrow writes codes as little-endian integers of so many bytes.
func narrow(dst []byte, width int, codes []int32) {
	switch width {
	case 1:
		for i, code := range codes {
			dst[i] = byte(code)
		}
	case 2:
		for i, code := range codes {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(code))
		}
	case 4:
		for i, code := range codes {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(code))
		}
	case 8:
		for i, code := range codes {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(code))
		}
	}
}

// runs builds run ends and values: a run for each stretch of equal rows.
func (r restorer) runs(dt *arrow.RunEndEncodedType, data arrow.ArrayData) (arrow.ArrayData, error) {
	width, _ := elementWidth(dt.RunEnds())
	if most := int64(1)<<(8*width-1) - 1; int64(data.Len()) > most {
		return nil, &DictionaryFull{Type: dt, Rows: int(most)}
	}
	firsts := runStarts(data)
	values, err := r.taken(dt.Encoded(), data, firsts)
	if err != nil {
		return nil, err
	}
	ends := firsts // each run ends where the next begins
	if len(ends) > 0 {
		ends = append(ends[1:], int32(data.Len()))
	}
	buffer := r.buffer(width * len(ends))
	narrow(buffer.Bytes(), width, ends)
	runEnds := newData(dt.RunEnds(), len(ends), 0, []*memory.Buffer{nil, buffer})
	return newData(dt, data.Len(), 0, []*memory.Buffer{nil}, runEnds, values), nil
}
