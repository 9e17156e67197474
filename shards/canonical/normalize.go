package canonical

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// Normalize checks an array from outside as Check does and returns its rows in
// canonical layout, as an array of Type(arr.DataType()) that the caller
// releases. It shares arr's buffers where their layout is canonical already,
// and then keeps them alive; the rest is new memory from mem. A slice gives its
// own rows and only their bytes.
//
// Dictionaries, runs and views can stand for far more bytes than they take:
// what they expand to is bounded by limits.MessageBytes a column, and strings,
// binary and lists by the 2^31-1 bytes or items of canonical offsets; beyond
// that the error is COLUMN_TOO_LARGE.
func Normalize(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	if err := Check(arr); err != nil {
		return nil, err
	}
	return cut(mem, arr)
}

// cut is Normalize of an array that is known to be sound.
func cut(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	n := normalizer{mem: mem, left: limits.MessageBytes}
	data, err := n.rows(arr.DataType(), arr.Data(), arr.Data().Offset(), arr.Len())
	if err != nil {
		return nil, err
	}
	return newArray(data), nil
}

// normalizer makes canonical data out of checked data.
type normalizer struct {
	mem  memory.Allocator
	left int64 // bytes that expansions may still take
}

// spend counts bytes that one column's expansions allocate.
func (n *normalizer) spend(bytes int64) error {
	if n.left -= bytes; n.left < 0 || bytes < 0 {
		return fault.Invalid("COLUMN_TOO_LARGE", "the column's dictionaries, runs or views expand to more than the limit of %d bytes; send smaller batches", int64(limits.MessageBytes))
	}
	return nil
}

func tooLarge(dt arrow.DataType, size int64, unit string) error {
	return fault.Invalid("COLUMN_TOO_LARGE", "a %s column holds %d %s, more than the limit of %d; send smaller batches", dt, size, unit, math.MaxInt32)
}

// alloc is a new buffer of so many zero bytes.
func (n *normalizer) alloc(size int) *memory.Buffer {
	buffer := memory.NewResizableBuffer(n.mem)
	buffer.Resize(size)
	clear(buffer.Bytes())
	return buffer
}

// rows is the canonical form of the rows start ≤ row < start+count of data's
// buffers (data's own offset is part of start). The caller owns the result.
func (n *normalizer) rows(dt arrow.DataType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	dt = storageOf(dt)
	if count == 0 {
		return n.empty(Type(dt)), nil
	}
	switch dt := dt.(type) {
	case *arrow.NullType:
		return newData(dt, count, count, []*memory.Buffer{nil}), nil
	case *arrow.DictionaryType:
		return n.dictionary(dt, data, start, count)
	case *arrow.RunEndEncodedType:
		return n.runs(dt, data, start, count)
	case *arrow.StructType:
		return n.structs(dt, data, start, count)
	case *arrow.FixedSizeListType:
		return n.fixedSizeLists(dt, data, start, count)
	}
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return strings[int32](n, dt, data, start, count)
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return strings[int64](n, dt, data, start, count)
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return n.views(dt, data, start, count)
	case arrow.LIST, arrow.MAP:
		return lists[int32](n, dt, data, start, count)
	case arrow.LARGE_LIST:
		return lists[int64](n, dt, data, start, count)
	case arrow.LIST_VIEW:
		return listViews[int32](n, dt, data, start, count)
	case arrow.LARGE_LIST_VIEW:
		return listViews[int64](n, dt, data, start, count)
	}
	return n.fixed(dt, data, start, count), nil
}

// empty is an array without rows, of a canonical type.
func (n *normalizer) empty(dt arrow.DataType) arrow.ArrayData {
	none := func() *memory.Buffer { return memory.NewBufferBytes([]byte{}) }
	switch dt := dt.(type) {
	case *arrow.NullType:
		return newData(dt, 0, 0, []*memory.Buffer{nil})
	case *arrow.StructType, *arrow.FixedSizeListType:
		var children []arrow.ArrayData
		for _, child := range Children(dt) {
			children = append(children, n.empty(child))
		}
		return newData(dt, 0, 0, []*memory.Buffer{nil}, children...)
	case *arrow.ListType, *arrow.MapType:
		return newData(dt, 0, 0, []*memory.Buffer{nil, n.alloc(4)}, n.empty(Children(dt)[0]))
	case *arrow.StringType, *arrow.BinaryType:
		return newData(dt, 0, 0, []*memory.Buffer{nil, n.alloc(4), none()})
	}
	return newData(dt, 0, 0, []*memory.Buffer{nil, none()})
}

// validity is the bitmap of the rows, nil if none is null, and the number of
// nulls.
func (n *normalizer) validity(data arrow.ArrayData, start, count int) (*memory.Buffer, int) {
	bitmap := bytesOf(data, 0)
	if len(bitmap) == 0 {
		return nil, 0
	}
	nulls := count - countBits(bitmap, start, count)
	if nulls == 0 {
		return nil, 0
	}
	return n.bits(data.Buffers()[0], start, count), nulls
}

// fixed cuts values of a fixed number of bytes, or bits.
func (n *normalizer) fixed(dt arrow.DataType, data arrow.ArrayData, start, count int) arrow.ArrayData {
	validity, nulls := n.validity(data, start, count)
	values := data.Buffers()[1]
	if dt.ID() == arrow.BOOL {
		values = n.bits(values, start, count)
	} else if width, _ := elementWidth(dt); width == 0 {
		values = memory.NewBufferBytes([]byte{})
	} else {
		values = sliced(values, start*width, count*width)
	}
	return newData(dt, count, nulls, []*memory.Buffer{validity, values})
}

// strings cuts strings or binary with offsets.
func strings[T int32 | int64](n *normalizer, dt arrow.DataType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	offsets, first, size, err := offsets[T](n, dt, data, start, count, "bytes")
	if err != nil {
		return nil, err
	}
	values := memory.NewBufferBytes([]byte{})
	if size > 0 {
		values = sliced(data.Buffers()[2], first, size)
	}
	validity, nulls := n.validity(data, start, count)
	return newData(Type(dt), count, nulls, []*memory.Buffer{validity, offsets, values}), nil
}

// offsets cuts offsets and counts them from 0: the canonical buffer, where the
// cut begins in the values, and how many of these it spans.
func offsets[T int32 | int64](n *normalizer, dt arrow.DataType, data arrow.ArrayData, start, count int, unit string) (buffer *memory.Buffer, first, size int, err error) {
	source := arrow.GetData[T](bytesOf(data, 1))[start : start+count+1]
	base := source[0]
	if span := int64(source[count] - base); span > math.MaxInt32 {
		return nil, 0, 0, tooLarge(dt, span, unit)
	}
	if base == 0 && widthOf[T]() == 4 {
		buffer = sliced(data.Buffers()[1], 4*start, 4*(count+1))
	} else {
		buffer = memory.NewResizableBuffer(n.mem)
		buffer.Resize(4 * (count + 1))
		rebased := arrow.Int32Traits.CastFromBytes(buffer.Bytes())[:count+1]
		for i, offset := range source {
			rebased[i] = int32(offset - base)
		}
	}
	return buffer, int(base), int(source[count] - base), nil
}

// lists cuts lists with offsets; a map is a list of its entries.
func lists[T int32 | int64](n *normalizer, dt arrow.DataType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	offsets, first, size, err := offsets[T](n, dt, data, start, count, "items")
	if err != nil {
		return nil, err
	}
	child := data.Children()[0]
	items, err := n.rows(Children(dt)[0], child, child.Offset()+first, size)
	if err != nil {
		offsets.Release()
		return nil, err
	}
	canonical := Type(dt)
	validity, nulls := n.validity(data, start, count)
	return newData(canonical, count, nulls, []*memory.Buffer{validity, offsets}, retyped(Children(canonical)[0], items)), nil
}

func (n *normalizer) fixedSizeLists(dt *arrow.FixedSizeListType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	child, size := data.Children()[0], int(dt.Len())
	items, err := n.rows(dt.Elem(), child, child.Offset()+start*size, count*size)
	if err != nil {
		return nil, err
	}
	validity, nulls := n.validity(data, start, count)
	return newData(Type(dt), count, nulls, []*memory.Buffer{validity}, items), nil
}

func (n *normalizer) structs(dt *arrow.StructType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	fields := make([]arrow.ArrayData, 0, dt.NumFields())
	for i, child := range data.Children() {
		field, err := n.rows(dt.Field(i).Type, child, child.Offset()+start, count)
		if err != nil {
			for _, field := range fields {
				field.Release()
			}
			return nil, in(childName(dt, i), err)
		}
		fields = append(fields, field)
	}
	validity, nulls := n.validity(data, start, count)
	return newData(Type(dt), count, nulls, []*memory.Buffer{validity}, fields...), nil
}
