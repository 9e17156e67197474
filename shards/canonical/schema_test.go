package canonical

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

func TestPlainSchemaNamesExtensionTypesInMetadata(t *testing.T) {
	uuid := extensions.NewUUIDType()
	nullable := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	named := func(field arrow.Field, name, parameters string) arrow.Field {
		field.Metadata = arrow.NewMetadata([]string{extensionName, extensionParameters}, []string{name, parameters})
		return field
	}
	storage := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	opaque := extensions.NewOpaqueType(arrow.PrimitiveTypes.Int64, "geometry", "acme")
	schemaMetadata := arrow.NewMetadata([]string{"owner"}, []string{"x"})

	withUnit := nullable("id", uuid)
	withUnit.Metadata = arrow.NewMetadata([]string{"unit"}, []string{"m"})
	got := PlainSchema(arrow.NewSchema([]arrow.Field{
		nullable("plain", arrow.BinaryTypes.StringView),
		withUnit,
		{Name: "o", Type: opaque},
		nullable("l", arrow.ListOfField(nullable("element", uuid))),
		nullable("ll", arrow.LargeListOfField(nullable("item", uuid))),
		nullable("lv", arrow.ListViewOfField(nullable("item", uuid))),
		nullable("llv", arrow.LargeListViewOfField(nullable("item", uuid))),
		nullable("fsl", arrow.FixedSizeListOfField(2, nullable("item", uuid))),
		nullable("s", arrow.StructOf(nullable("a", arrow.ListOfField(nullable("item", uuid))))),
		nullable("m", arrow.MapOfFields(arrow.Field{Name: "key", Type: uuid}, nullable("value", uuid))),
		nullable("d", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: uuid, Ordered: true}),
		nullable("r", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, uuid)),
	}, &schemaMetadata))

	id := withUnit
	id.Type = storage
	id.Metadata = arrow.NewMetadata([]string{"unit", extensionName, extensionParameters}, []string{"m", "arrow.uuid", ""})
	item := named(nullable("item", storage), "arrow.uuid", "")
	element := item
	element.Name = "element"
	want := arrow.NewSchema([]arrow.Field{
		nullable("plain", arrow.BinaryTypes.StringView),
		id,
		named(arrow.Field{Name: "o", Type: arrow.PrimitiveTypes.Int64}, "arrow.opaque", opaque.Serialize()),
		nullable("l", arrow.ListOfField(element)),
		nullable("ll", arrow.LargeListOfField(item)),
		nullable("lv", arrow.ListViewOfField(item)),
		nullable("llv", arrow.LargeListViewOfField(item)),
		nullable("fsl", arrow.FixedSizeListOfField(2, item)),
		nullable("s", arrow.StructOf(nullable("a", arrow.ListOfField(item)))),
		nullable("m", arrow.MapOfFields(named(arrow.Field{Name: "key", Type: storage}, "arrow.uuid", ""), named(nullable("value", storage), "arrow.uuid", ""))),
		named(nullable("d", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: storage, Ordered: true}), "arrow.uuid", ""),
		nullable("r", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, storage)),
	}, &schemaMetadata)
	require.Equal(t, want.Metadata(), got.Metadata())
	for i, field := range want.Fields() {
		require.True(t, field.Equal(got.Field(i)), "%v\nis not\n%v", got.Field(i), field)
	}
	again := PlainSchema(got)
	require.True(t, again.Equal(got))
	require.Equal(t, got.Fields(), again.Fields())
}

func TestExtensionArraysCountAsTheirStorage(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	f := newForeign(3, mem)
	for _, dt := range []arrow.DataType{
		extensions.NewUUIDType(), extensions.NewBool8Type(),
		extensions.NewOpaqueType(arrow.ListOf(arrow.BinaryTypes.String), "words", "acme"),
		extensions.NewOpaqueType(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, "enum", "acme"),
		arrow.LargeListOf(extensions.NewUUIDType()),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: extensions.NewUUIDType()},
	} {
		t.Run(dt.String(), func(t *testing.T) {
			values := f.values(dt, 30)
			arr := f.array(dt, values)
			defer arr.Release()
			roundTrip(t, mem, arr, values)
		})
	}
}

func TestCanonicalTypesForgetWhatBelongsToTheDeclaredOnes(t *testing.T) {
	required := arrow.Field{Name: "element", Type: arrow.BinaryTypes.LargeString, Metadata: arrow.NewMetadata([]string{"a"}, []string{"b"})}
	text := arrow.ListOf(arrow.BinaryTypes.String)
	for _, dt := range []arrow.DataType{
		arrow.ListOfField(required), arrow.LargeListOfField(required), arrow.ListViewOfField(required), arrow.LargeListViewOfField(required),
		arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, arrow.ListViewOf(arrow.BinaryTypes.StringView)),
		arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}),
	} {
		require.True(t, arrow.TypeEqual(text, Type(dt), arrow.CheckMetadata()), "%s", dt)
		require.False(t, IsIdentity(dt), "%s", dt)
	}
	require.True(t, IsIdentity(text))
	require.True(t, IsIdentity(arrow.FixedWidthTypes.Timestamp_ns))
	sorted := arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8)
	require.True(t, IsIdentity(sorted))
	sorted.KeysSorted = true
	require.False(t, IsIdentity(sorted))
}

func TestUnsupportedTypesAreNamed(t *testing.T) {
	union := arrow.SparseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int8}}, []arrow.UnionTypeCode{0})
	deep := arrow.DataType(arrow.PrimitiveTypes.Int8)
	for range 70 {
		deep = arrow.ListOf(deep)
	}
	for text, dt := range map[string]arrow.DataType{
		"sparse_union":                 union,
		"(the column is list<":         arrow.ListOf(union),
		"(the column is struct<":       arrow.StructOf(arrow.Field{Name: "u", Type: union}),
		"(the column is map<":          arrow.MapOf(arrow.PrimitiveTypes.Int8, union),
		"(the column is dictionary<":   &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: union},
		"(the column is run_end_":      arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, union),
		"(the column is fixed_size_li": arrow.FixedSizeListOf(2, union),
		"its indices are no integers":  &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Float32, ValueType: deep},
		"precision":                    &arrow.Decimal32Type{Precision: 10},
		"deeper than 64":               deep,
		"negative":                     &arrow.FixedSizeBinaryType{ByteWidth: -3},
		"no items":                     &arrow.FixedSizeListType{},
		"run ends are not":             arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int8, deep),
		"without a type":               nil,
	} {
		err := CheckType(dt)
		require.ErrorContains(t, err, text)
		require.True(t, fault.Is(err, "TYPE_UNSUPPORTED"))
	}
	for _, dt := range flatTypes {
		require.NoError(t, CheckType(dt), "%s", dt)
	}
}

func TestArraysInCanonicalLayoutAreNotCopied(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	builder := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String},
		{Name: "l", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean)},
	}, nil))
	defer builder.Release()
	for i := range 64 {
		builder.Field(0).(*array.Int64Builder).Append(int64(i))
		builder.Field(1).(*array.StringBuilder).Append("some text")
		builder.Field(2).(*array.ListBuilder).AppendEmptyValue()
	}
	batch := builder.NewRecordBatch()
	defer batch.Release()
	made := mem.CurrentAlloc()
	for i, column := range batch.Columns() {
		normal, err := Normalize(mem, column)
		require.NoError(t, err)
		require.Equal(t, made, mem.CurrentAlloc(), "column %d", i)
		restored, err := Restore(mem, normal, column.DataType())
		require.NoError(t, err)
		require.Equal(t, made, mem.CurrentAlloc(), "column %d", i)
		restored.Release()
		normal.Release()
		slice := array.NewSlice(column, 8, 40)
		if normal, err = Normalize(mem, slice); i == 0 {
			require.NoError(t, err)
			require.Equal(t, made, mem.CurrentAlloc(), "a slice of numbers")
		}
		normal.Release()
		slice.Release()
	}
}
