package block

import "github.com/apache/arrow-go/v18/arrow"

// shape is how a column lies in memory.
type shape uint8

const (
	shapeNull      shape = iota // no buffers
	shapeBool                   // a bit a row
	shapeFixed                  // width bytes a row
	shapeText                   // int32 offsets and bytes: string, binary
	shapeList                   // int32 offsets and one child: list, map
	shapeFixedList              // size child rows a row
	shapeStruct                 // children of equal length
)

// order is how the bytes of a fixed-width value are read as a number.
type order uint8

const (
	opaque   order = iota // not a number, or of several parts
	signed                // two's complement, little-endian
	unsigned              // little-endian
	floating              // IEEE 754
)

// kind is what vectors and chunks need to know of a canonical type. Its tag is
// written into every chunk, so tags never change their meaning.
type kind struct {
	tag   byte
	shape shape
	order order
	width int // bytes a value, of shapeFixed
	size  int // child rows a row, of shapeFixedList
}

// Tags that more than kindOf asks for.
const (
	tagMonths      = 23
	tagFixedBinary = 26
)

// kindOf is the kind of a canonical type, false for any other type.
func kindOf(dt arrow.DataType) (kind, bool) {
	switch dt.ID() {
	case arrow.NULL:
		return kind{tag: 0, shape: shapeNull}, true
	case arrow.BOOL:
		return kind{tag: 1, shape: shapeBool}, true
	case arrow.INT8:
		return kind{tag: 2, shape: shapeFixed, order: signed, width: 1}, true
	case arrow.INT16:
		return kind{tag: 3, shape: shapeFixed, order: signed, width: 2}, true
	case arrow.INT32:
		return kind{tag: 4, shape: shapeFixed, order: signed, width: 4}, true
	case arrow.INT64:
		return kind{tag: 5, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.UINT8:
		return kind{tag: 6, shape: shapeFixed, order: unsigned, width: 1}, true
	case arrow.UINT16:
		return kind{tag: 7, shape: shapeFixed, order: unsigned, width: 2}, true
	case arrow.UINT32:
		return kind{tag: 8, shape: shapeFixed, order: unsigned, width: 4}, true
	case arrow.UINT64:
		return kind{tag: 9, shape: shapeFixed, order: unsigned, width: 8}, true
	case arrow.FLOAT16:
		return kind{tag: 10, shape: shapeFixed, order: floating, width: 2}, true
	case arrow.FLOAT32:
		return kind{tag: 11, shape: shapeFixed, order: floating, width: 4}, true
	case arrow.FLOAT64:
		return kind{tag: 12, shape: shapeFixed, order: floating, width: 8}, true
	case arrow.DECIMAL32:
		return kind{tag: 13, shape: shapeFixed, order: signed, width: 4}, true
	case arrow.DECIMAL64:
		return kind{tag: 14, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.DECIMAL128:
		return kind{tag: 15, shape: shapeFixed, order: signed, width: 16}, true
	case arrow.DECIMAL256:
		return kind{tag: 16, shape: shapeFixed, order: signed, width: 32}, true
	case arrow.DATE32:
		return kind{tag: 17, shape: shapeFixed, order: signed, width: 4}, true
	case arrow.DATE64:
		return kind{tag: 18, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.TIME32:
		return kind{tag: 19, shape: shapeFixed, order: signed, width: 4}, true
	case arrow.TIME64:
		return kind{tag: 20, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.TIMESTAMP:
		return kind{tag: 21, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.DURATION:
		return kind{tag: 22, shape: shapeFixed, order: signed, width: 8}, true
	case arrow.INTERVAL_MONTHS:
		return kind{tag: tagMonths, shape: shapeFixed, order: signed, width: 4}, true
	case arrow.INTERVAL_DAY_TIME:
		return kind{tag: 24, shape: shapeFixed, order: opaque, width: 8}, true
	case arrow.INTERVAL_MONTH_DAY_NANO:
		return kind{tag: 25, shape: shapeFixed, order: opaque, width: 16}, true
	case arrow.FIXED_SIZE_BINARY:
		width := dt.(*arrow.FixedSizeBinaryType).ByteWidth
		return kind{tag: tagFixedBinary, shape: shapeFixed, order: opaque, width: width}, width >= 0
	case arrow.STRING:
		return kind{tag: 27, shape: shapeText}, true
	case arrow.BINARY:
		return kind{tag: 28, shape: shapeText}, true
	case arrow.LIST:
		return kind{tag: 29, shape: shapeList}, true
	case arrow.FIXED_SIZE_LIST:
		size := int(dt.(*arrow.FixedSizeListType).Len())
		return kind{tag: 30, shape: shapeFixedList, size: size}, size >= 0
	case arrow.STRUCT:
		return kind{tag: 31, shape: shapeStruct}, true
	case arrow.MAP:
		return kind{tag: 32, shape: shapeList}, true
	}
	return kind{}, false
}

// children are the types of a nested type's children, nil for others. The
// child of a map is its struct of key and value.
func children(dt arrow.DataType) []arrow.DataType {
	switch nested := dt.(type) {
	case *arrow.ListType:
		return []arrow.DataType{nested.Elem()}
	case *arrow.FixedSizeListType:
		return []arrow.DataType{nested.Elem()}
	case *arrow.MapType:
		return []arrow.DataType{nested.Elem()}
	case *arrow.StructType:
		types := make([]arrow.DataType, nested.NumFields())
		for i := range types {
			types[i] = nested.Field(i).Type
		}
		return types
	}
	return nil
}
