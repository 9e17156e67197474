package key

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
)

// shape is how the values of one canonical type are encoded.
type shape struct {
	kind  kind
	width int  // encoded bytes of a value; 0 for escaped bytes
	flip  bool // signed: the first bit is inverted
}

type kind uint8

const (
	unsupported kind = iota
	number           // width bytes, little-endian in Arrow, big-endian in keys
	boolean          // a bit in Arrow, a byte in keys
	raw              // width bytes as they are
	escaped          // any number of bytes, 00 escaped, then the terminator
)

// shapeOf knows canonical types only; see Supported for declared ones.
func shapeOf(dt arrow.DataType) shape {
	switch dt.ID() {
	case arrow.BOOL:
		return shape{kind: boolean, width: 1}
	case arrow.INT8:
		return shape{number, 1, true}
	case arrow.INT16:
		return shape{number, 2, true}
	case arrow.INT32, arrow.DATE32, arrow.TIME32, arrow.DECIMAL32:
		return shape{number, 4, true}
	case arrow.INT64, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION, arrow.DECIMAL64:
		return shape{number, 8, true}
	case arrow.DECIMAL128:
		return shape{number, 16, true}
	case arrow.DECIMAL256:
		return shape{number, 32, true}
	case arrow.UINT8:
		return shape{number, 1, false}
	case arrow.UINT16:
		return shape{number, 2, false}
	case arrow.UINT32:
		return shape{number, 4, false}
	case arrow.UINT64:
		return shape{number, 8, false}
	case arrow.FIXED_SIZE_BINARY:
		if width := dt.(*arrow.FixedSizeBinaryType).ByteWidth; width > 0 {
			return shape{kind: raw, width: width}
		}
	case arrow.STRING, arrow.BINARY:
		return shape{kind: escaped}
	}
	return shape{}
}

// Supported is nil if a column of the declared type may be a key column, else a
// fault that names the type. A dictionary, run-end encoded or extension type is
// judged by its values.
func Supported(declared arrow.DataType) error {
	switch dt := declared.(type) {
	case *arrow.DictionaryType:
		return named(declared, Supported(dt.ValueType))
	case *arrow.RunEndEncodedType:
		return named(declared, Supported(dt.Encoded()))
	case arrow.ExtensionType:
		return named(declared, Supported(dt.StorageType()))
	}
	switch declared.ID() {
	case arrow.LARGE_STRING, arrow.STRING_VIEW, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return nil
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return fault.Invalid("KEY_TYPE", "%s cannot be a key: NaN and -0.0 have no place in a key's order; store a decimal or an integer instead", declared)
	}
	if shapeOf(declared).kind == unsupported {
		return fault.Invalid("KEY_TYPE", "%s cannot be a key: keys are integers, decimals, booleans, strings, binary, dates, times, timestamps and durations", declared)
	}
	return nil
}

func named(declared arrow.DataType, err error) error {
	if found := fault.Of(err); found != nil {
		return found.With(" (the column is %s)", declared)
	}
	return err
}
