package canonical

import "github.com/apache/arrow-go/v18/arrow"

// The metadata keys by which extension types travel (Arrow columnar format,
// "Extension Types").
const (
	extensionName       = "ARROW:extension:name"
	extensionParameters = "ARROW:extension:metadata"
)

// PlainSchema is the schema with every extension type replaced, at any depth,
// by its storage; its name and parameters become the field's metadata, under
// the keys by which they travel. So a schema reads the same whether or not this
// process knows the extension type.
func PlainSchema(s *arrow.Schema) *arrow.Schema {
	metadata := s.Metadata()
	return arrow.NewSchemaWithEndian(plainFields(s.Fields()), &metadata, s.Endianness())
}

func plainFields(fields []arrow.Field) []arrow.Field {
	plain := make([]arrow.Field, len(fields))
	for i, field := range fields {
		plain[i] = plainField(field)
	}
	return plain
}

func plainField(field arrow.Field) arrow.Field {
	plain, extension := plainType(field.Type)
	field.Type = plain
	if extension == nil || field.Metadata.FindKey(extensionName) >= 0 {
		return field
	}
	keys, values := []string{extensionName}, []string{extension.ExtensionName()}
	if field.Metadata.FindKey(extensionParameters) < 0 {
		keys, values = append(keys, extensionParameters), append(values, extension.Serialize())
	}
	field.Metadata = arrow.NewMetadata(append(field.Metadata.Keys(), keys...), append(field.Metadata.Values(), values...))
	return field
}

// plainType is the type without extension types in it, and the outermost
// extension whose name belongs to the field: of the type itself or of a
// dictionary's values, which share the field.
func plainType(dt arrow.DataType) (arrow.DataType, arrow.ExtensionType) {
	switch dt := dt.(type) {
	case arrow.ExtensionType:
		storage, _ := plainType(dt.StorageType())
		return storage, dt
	case *arrow.DictionaryType:
		values, extension := plainType(dt.ValueType)
		return &arrow.DictionaryType{IndexType: dt.IndexType, ValueType: values, Ordered: dt.Ordered}, extension
	case *arrow.RunEndEncodedType:
		values, _ := plainType(dt.Encoded())
		plain := arrow.RunEndEncodedOf(dt.RunEnds(), values)
		plain.ValueNullable = dt.ValueNullable
		return plain, nil
	case *arrow.MapType:
		key, item := plainField(dt.KeyField()), plainField(dt.ItemField())
		key.Nullable = false
		plain := arrow.MapOfFields(key, item)
		plain.KeysSorted = dt.KeysSorted
		return plain, nil
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(dt.Len(), plainField(dt.ElemField())), nil
	case *arrow.ListType:
		return arrow.ListOfField(plainField(dt.ElemField())), nil
	case *arrow.LargeListType:
		return arrow.LargeListOfField(plainField(dt.ElemField())), nil
	case *arrow.ListViewType:
		return arrow.ListViewOfField(plainField(dt.ElemField())), nil
	case *arrow.LargeListViewType:
		return arrow.LargeListViewOfField(plainField(dt.ElemField())), nil
	case *arrow.StructType:
		return arrow.StructOf(plainFields(dt.Fields())...), nil
	}
	return dt, nil
}
