package canonical

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// newData makes array data and takes over the buffers and children: whoever
// made them must not release them.
func newData(dt arrow.DataType, rows, nulls int, buffers []*memory.Buffer, children ...arrow.ArrayData) arrow.ArrayData {
	data := array.NewData(dt, rows, buffers, children, nulls, 0)
	memory.ReleaseBuffers(buffers)
	for _, child := range children {
		child.Release()
	}
	return data
}

// newArray makes an array and takes over the data.
func newArray(data arrow.ArrayData) arrow.Array {
	defer data.Release()
	return array.MakeFromData(data)
}

// retyped is the same data under another type of the same layout; it takes
// over data.
func retyped(dt arrow.DataType, data arrow.ArrayData) arrow.ArrayData {
	defer data.Release()
	retyped := array.NewData(dt, data.Len(), data.Buffers(), data.Children(), data.NullN(), data.Offset())
	retyped.SetDictionary(dictionaryOf(data))
	return retyped
}

// dictionaryOf is the data's dictionary or nil (Data.Dictionary hides a nil
// pointer in a non-nil interface).
func dictionaryOf(data arrow.ArrayData) arrow.ArrayData {
	if dictionary, ok := data.Dictionary().(*array.Data); ok && dictionary != nil {
		return dictionary
	}
	return nil
}

// bytesOf is the content of buffer i, empty if there is none.
func bytesOf(data arrow.ArrayData, i int) []byte {
	if buffers := data.Buffers(); i < len(buffers) && buffers[i] != nil {
		return buffers[i].Bytes()
	}
	return nil
}

// isNull reads the validity bitmap of a checked array.
func isNull(validity []byte, row int) bool {
	return len(validity) > 0 && bitutil.BitIsNotSet(validity, row)
}

// elementWidth is the bytes of one value of a type whose values all have the
// same whole number of bytes; ok is false for other types.
func elementWidth(dt arrow.DataType) (width int, ok bool) {
	switch dt.ID() {
	case arrow.BOOL, arrow.FIXED_SIZE_LIST, arrow.NULL:
		return 0, false
	case arrow.FIXED_SIZE_BINARY:
		return dt.(*arrow.FixedSizeBinaryType).ByteWidth, true
	}
	if fixed, isFixed := dt.(arrow.FixedWidthDataType); isFixed && dt.ID() != arrow.DICTIONARY && dt.ID() != arrow.EXTENSION {
		return fixed.Bytes(), true
	}
	return 0, false
}

// storageOf is the type below all extension types.
func storageOf(dt arrow.DataType) arrow.DataType {
	for {
		extension, ok := dt.(arrow.ExtensionType)
		if !ok {
			return dt
		}
		dt = extension.StorageType()
	}
}

// Children is the types of a type's children, in the order of the layout of its
// arrays; none for types without.
func Children(dt arrow.DataType) []arrow.DataType {
	switch dt := dt.(type) {
	case *arrow.RunEndEncodedType:
		return []arrow.DataType{dt.RunEnds(), dt.Encoded()}
	case *arrow.StructType:
		types := make([]arrow.DataType, dt.NumFields())
		for i, field := range dt.Fields() {
			types[i] = field.Type
		}
		return types
	case arrow.ListLikeType:
		return []arrow.DataType{dt.Elem()}
	}
	return nil
}
