package canonical

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// maxDepth is how deep types may nest: what arrow-go's IPC reader accepts.
const maxDepth = 64

// Type is the canonical type of a declared one, which CheckType accepts.
func Type(dt arrow.DataType) arrow.DataType {
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		return Type(dt.ValueType)
	case *arrow.RunEndEncodedType:
		return Type(dt.Encoded())
	case arrow.ExtensionType:
		return Type(dt.StorageType())
	case *arrow.MapType:
		return arrow.MapOf(Type(dt.KeyType()), Type(dt.ItemType()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOf(dt.Len(), Type(dt.Elem()))
	case arrow.ListLikeType:
		return arrow.ListOf(Type(dt.Elem()))
	case *arrow.StructType:
		fields := make([]arrow.Field, dt.NumFields())
		for i, field := range dt.Fields() {
			fields[i] = arrow.Field{Name: field.Name, Type: Type(field.Type), Nullable: true}
		}
		return arrow.StructOf(fields...)
	}
	switch dt.ID() {
	case arrow.LARGE_STRING, arrow.STRING_VIEW:
		return arrow.BinaryTypes.String
	case arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return arrow.BinaryTypes.Binary
	}
	return dt
}

// IsIdentity reports whether an array of the canonical type is one of the
// declared type as it stands, so that Restore is free.
func IsIdentity(declared arrow.DataType) bool {
	return arrow.TypeEqual(declared, Type(declared))
}

// CheckType is nil if columns of the type can be stored and given back, else a
// fault that names the type, or the part of it, that cannot.
func CheckType(dt arrow.DataType) error {
	if err := checkType(dt, dt, maxDepth); err != nil {
		return err
	}
	if ValueBytes(dt) > limits.RowBytes {
		return fault.Invalid("TYPE_UNSUPPORTED", "%s cannot be stored: each value, a null too, takes more than %d bytes, the limit of a row", dt, limits.RowBytes)
	}
	return nil
}

// ValueBytes is about the bytes that every value of a type takes, a null too;
// items of fixed-size lists count as one at least. Beyond limits.RowBytes it does
// not say how much more.
func ValueBytes(dt arrow.DataType) int64 {
	const enough = limits.RowBytes + 1
	switch dt := Type(dt).(type) {
	case *arrow.FixedSizeListType:
		return min(enough, int64(dt.Len())*max(1, ValueBytes(dt.Elem())))
	case *arrow.StructType:
		total := int64(0)
		for _, field := range dt.Fields() {
			total = min(enough, total+ValueBytes(field.Type))
		}
		return total
	case *arrow.FixedSizeBinaryType:
		return min(enough, int64(dt.ByteWidth))
	case arrow.FixedWidthDataType:
		return int64(dt.Bytes())
	}
	return 0
}

func checkType(dt, whole arrow.DataType, depth int) error {
	if depth == 0 {
		return fault.Invalid("TYPE_UNSUPPORTED", "the type nests deeper than %d levels", maxDepth)
	}
	unsupported := func(reason string) error {
		err := fault.Invalid("TYPE_UNSUPPORTED", "%s cannot be stored: %s", dt, reason)
		if dt != whole {
			err = err.With(" (the column is %s)", whole)
		}
		return err
	}
	switch dt := dt.(type) {
	case nil:
		return fault.Invalid("TYPE_UNSUPPORTED", "a field without a type")
	case arrow.UnionType:
		return unsupported("unions have no place in a table; use a struct with one nullable field per alternative")
	case *arrow.DictionaryType:
		if !arrow.IsInteger(dt.IndexType.ID()) {
			return unsupported("its indices are no integers")
		}
		return checkType(dt.ValueType, whole, depth-1)
	case *arrow.RunEndEncodedType:
		if !dt.ValidRunEndsType(dt.RunEnds()) {
			return unsupported("its run ends are not int16, int32 or int64")
		}
		return checkType(dt.Encoded(), whole, depth-1)
	case arrow.ExtensionType:
		return checkType(dt.StorageType(), whole, depth-1)
	case *arrow.FixedSizeListType:
		if dt.Len() <= 0 {
			return unsupported("its lists have no items")
		}
		return checkType(dt.Elem(), whole, depth-1)
	case *arrow.MapType:
		if err := checkType(dt.KeyType(), whole, depth-1); err != nil {
			return err
		}
		return checkType(dt.ItemType(), whole, depth-1)
	case arrow.ListLikeType:
		return checkType(dt.Elem(), whole, depth-1)
	case *arrow.StructType:
		for _, field := range dt.Fields() {
			if err := checkType(field.Type, whole, depth-1); err != nil {
				return err
			}
		}
		return nil
	case *arrow.FixedSizeBinaryType:
		if dt.ByteWidth < 0 {
			return unsupported("its width is negative")
		}
		return nil
	case arrow.DecimalType:
		if dt.GetPrecision() < 1 || dt.GetPrecision() > maxPrecision[dt.ID()] {
			return unsupported("its precision is out of range")
		}
		return nil
	}
	if !plain(dt.ID()) {
		return unsupported("the type is not known")
	}
	return nil
}

var maxPrecision = map[arrow.Type]int32{arrow.DECIMAL32: 9, arrow.DECIMAL64: 18, arrow.DECIMAL128: 38, arrow.DECIMAL256: 76}

// plain: the types without children that no case of checkType names.
func plain(id arrow.Type) bool {
	switch id {
	case arrow.NULL, arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW,
		arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW:
		return true
	}
	return arrow.IsPrimitive(id)
}
