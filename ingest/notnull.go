package ingest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// forbidsNull: the field, or one nested in it, is declared not-null.
func forbidsNull(field arrow.Field) bool {
	if !field.Nullable {
		return true
	}
	for _, inner := range innerFields(field.Type) {
		if forbidsNull(inner) {
			return true
		}
	}
	return false
}

// innerFields is the declared fields of a type, in the order of the children of
// its canonical layout. A map's only child is its entries.
func innerFields(dt arrow.DataType) []arrow.Field {
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		return innerFields(dt.ValueType)
	case *arrow.RunEndEncodedType:
		return innerFields(dt.Encoded())
	case arrow.ExtensionType:
		return innerFields(dt.StorageType())
	case *arrow.MapType:
		key := dt.KeyField()
		key.Nullable = false
		entries := arrow.StructOf(key, dt.ItemField())
		return []arrow.Field{{Name: "entries", Type: entries}}
	case arrow.ListLikeType:
		return []arrow.Field{dt.ElemField()}
	case *arrow.StructType:
		return dt.Fields()
	}
	return nil
}

// firstNull is the first row of a canonical array whose value is null where
// field, or a field nested in it, is declared not-null, with the path of that
// field; row -1 if there is none.
func firstNull(field arrow.Field, arr arrow.Array) (row int, path string) {
	return firstNullOf(field, arr, nil)
}

// firstNullOf looks at the rows that are live; nil is all. A null inside a null
// parent is no value at all and does not count.
func firstNullOf(field arrow.Field, arr arrow.Array, live []bool) (row int, path string) {
	if !forbidsNull(field) {
		return -1, ""
	}
	if !field.Nullable && arr.NullN() > 0 {
		for row := range arr.Len() {
			if arr.IsNull(row) && (live == nil || live[row]) {
				return row, field.Name
			}
		}
	}
	for i, inner := range innerFields(field.Type) {
		child := array.MakeFromData(arr.Data().Children()[i])
		row, path := firstNullOf(inner, child, liveChildren(arr, child.Len(), live))
		child.Release()
		if row >= 0 {
			return parentRow(arr, row), field.Name + "." + path
		}
	}
	return -1, ""
}

// liveChildren marks the rows of a child that belong to a live, valid parent.
func liveChildren(arr arrow.Array, children int, live []bool) []bool {
	if live == nil && arr.NullN() == 0 {
		return nil
	}
	marks := make([]bool, children)
	for row := range arr.Len() {
		if arr.IsNull(row) || live != nil && !live[row] {
			continue
		}
		start, end := int64(row), int64(row)+1 // struct
		switch arr := arr.(type) {
		case array.ListLike:
			start, end = arr.ValueOffsets(row)
		}
		for i := start; i < end; i++ {
			marks[i] = true
		}
	}
	return marks
}
