package canonical

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Arrays as the most perverse correct client would send them, made from plain
// Go values: nil, the raw bytes of a fixed-width value as a string, text as a
// string, bool, and []any for lists, maps (of pairs) and structs. Each level
// has foreign rows before and behind its own, rubbish under nulls, unused and
// repeated dictionary values, and items in any order where the layout permits.
// read is the inverse, by arrow-go's own accessors.

type foreign struct {
	rng *rand.Rand
	mem memory.Allocator
}

func newForeign(seed uint64, mem memory.Allocator) *foreign {
	return &foreign{rng: rand.New(rand.NewPCG(seed, 1)), mem: mem}
}

var fixedTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: -2},
	&arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 3},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Timestamp_s, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Paris"},
	arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_ns,
	arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
	&arrow.FixedSizeBinaryType{ByteWidth: 0}, &arrow.FixedSizeBinaryType{ByteWidth: 5},
}

var flatTypes = append([]arrow.DataType{
	arrow.Null, arrow.FixedWidthTypes.Boolean,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
}, fixedTypes...)

var indexTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
}

// nestings make a type out of others.
var nestings []func(f *foreign, depth int) arrow.DataType

func init() { // it refers to itself
	nestings = []func(f *foreign, depth int) arrow.DataType{
		func(f *foreign, depth int) arrow.DataType { return arrow.ListOfField(f.field("element", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.LargeListOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.ListViewOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.LargeListViewOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType {
			return arrow.FixedSizeListOfField(1+f.rng.Int32N(3), f.field("item", depth))
		},
		func(f *foreign, depth int) arrow.DataType {
			key := flatTypes[1+f.rng.IntN(len(flatTypes)-1)]
			dt := arrow.MapOf(key, f.dataType(depth-1))
			dt.KeysSorted = f.rng.IntN(2) == 0
			return dt
		},
		func(f *foreign, depth int) arrow.DataType {
			fields := make([]arrow.Field, f.rng.IntN(4))
			for i := range fields {
				fields[i] = f.field(fmt.Sprint("f", i/2), depth)
			}
			return arrow.StructOf(fields...)
		},
		func(f *foreign, depth int) arrow.DataType {
			return &arrow.DictionaryType{IndexType: indexTypes[f.rng.IntN(len(indexTypes))], ValueType: f.dataType(depth - 1), Ordered: f.rng.IntN(2) == 0}
		},
		func(f *foreign, depth int) arrow.DataType {
			ends := []arrow.DataType{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64}[f.rng.IntN(3)]
			return arrow.RunEndEncodedOf(ends, f.dataType(depth-1))
		},
	}
}

func (f *foreign) field(name string, depth int) arrow.Field {
	field := arrow.Field{Name: name, Type: f.dataType(depth - 1), Nullable: true}
	if f.rng.IntN(4) == 0 {
		field.Metadata = arrow.NewMetadata([]string{"unit"}, []string{"m"})
	}
	return field
}

func (f *foreign) dataType(depth int) arrow.DataType {
	if depth <= 0 || f.rng.IntN(3) == 0 {
		return flatTypes[f.rng.IntN(len(flatTypes))]
	}
	return nestings[f.rng.IntN(len(nestings))](f, depth)
}

// value is a random value of the type: often null, often one met before.
func (f *foreign) value(dt arrow.DataType) any {
	if dt.ID() == arrow.NULL || f.rng.IntN(4) == 0 {
		return nil
	}
	return f.valid(dt)
}

func (f *foreign) valid(dt arrow.DataType) any {
	some := func(n int, dt arrow.DataType) []any {
		values := make([]any, n)
		for i := range values {
			values[i] = f.value(dt)
		}
		return values
	}
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return f.rng.IntN(2) == 0
	case *arrow.DictionaryType:
		return f.value(dt.ValueType)
	case *arrow.RunEndEncodedType:
		return f.value(dt.Encoded())
	case arrow.ExtensionType:
		return f.value(dt.StorageType())
	case *arrow.StructType:
		values := make([]any, dt.NumFields())
		for i := range values {
			values[i] = f.value(dt.Field(i).Type)
		}
		return values
	case *arrow.MapType:
		values := make([]any, f.rng.IntN(3))
		for i := range values {
			values[i] = []any{f.valid(dt.KeyType()), f.value(dt.ItemType())}
		}
		return values
	case *arrow.FixedSizeListType:
		return some(int(dt.Len()), dt.Elem())
	case arrow.ListLikeType:
		return some(f.rng.IntN(4), dt.Elem())
	}
	if width, ok := elementWidth(dt); ok {
		return f.bytes(width)
	}
	drawn := f.bytes(f.rng.IntN(30))
	switch dt.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return string([]rune(drawn))
	}
	return drawn
}

// bytes draws from few values, so that some repeat.
func (f *foreign) bytes(n int) string {
	b := make([]byte, n)
	seed := byte(f.rng.IntN(5))
	for i := range b {
		if b[i] = seed * byte(i+37); f.rng.IntN(40) == 0 {
			b[i] = byte(f.rng.Uint32())
		}
	}
	return string(b)
}

func (f *foreign) values(dt arrow.DataType, n int) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = f.value(dt)
	}
	return values
}

// read is row i as the value it was made from.
func read(arr arrow.Array, i int) any {
	if arr.DataType().ID() != arrow.RUN_END_ENCODED && arr.IsNull(i) || arr.DataType().ID() == arrow.NULL {
		return nil
	}
	list := func(items arrow.Array, from, to int64) []any {
		values := make([]any, 0, to-from)
		for ; from < to; from++ {
			values = append(values, read(items, int(from)))
		}
		return values
	}
	switch arr := arr.(type) {
	case *array.Boolean:
		return arr.Value(i)
	case *array.String:
		return arr.Value(i)
	case *array.LargeString:
		return arr.Value(i)
	case *array.StringView:
		return arr.Value(i)
	case *array.Binary:
		return string(arr.Value(i))
	case *array.LargeBinary:
		return string(arr.Value(i))
	case *array.BinaryView:
		return string(arr.Value(i))
	case *array.Dictionary:
		return read(arr.Dictionary(), arr.GetValueIndex(i))
	case *array.RunEndEncoded:
		return read(arr.Values(), arr.GetPhysicalIndex(i))
	case array.ExtensionArray:
		return read(arr.Storage(), i)
	case *array.Struct:
		values := make([]any, arr.NumField())
		for field := range values {
			values[field] = read(arr.Field(field), i)
		}
		return values
	case array.ListLike:
		from, to := arr.ValueOffsets(i)
		return list(arr.ListValues(), from, to)
	}
	width, _ := elementWidth(arr.DataType())
	at := (arr.Data().Offset() + i) * width
	return string(arr.Data().Buffers()[1].Bytes()[at : at+width])
}

func readAll(arr arrow.Array) []any {
	values := make([]any, arr.Len())
	for i := range values {
		values[i] = read(arr, i)
	}
	return values
}
