package ingest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/canonical"
)

func stamp(unit arrow.TimeUnit, zone string) arrow.DataType {
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}
}

func dec(bits int, precision, scale int32) arrow.DataType {
	switch bits {
	case 32:
		return &arrow.Decimal32Type{Precision: precision, Scale: scale}
	case 64:
		return &arrow.Decimal64Type{Precision: precision, Scale: scale}
	case 128:
		return &arrow.Decimal128Type{Precision: precision, Scale: scale}
	}
	return &arrow.Decimal256Type{Precision: precision, Scale: scale}
}

// structOf makes fields a, b, … of the types.
func structOf(types ...arrow.DataType) arrow.DataType {
	var list []arrow.Field
	for i, dt := range types {
		list = append(list, arrow.Field{Name: string(rune('a' + i)), Type: dt, Nullable: true})
	}
	return arrow.StructOf(list...)
}

// Types that never fit, whatever the values are.
func TestTypesThatDoNotMatch(t *testing.T) {
	types := arrow.PrimitiveTypes
	for _, c := range [][2]arrow.DataType{
		{types.Int64, types.Int32}, {types.Uint64, types.Int64}, {types.Int8, types.Uint64}, {types.Uint32, types.Int32},
		{types.Int64, types.Float64}, {types.Float64, types.Int64}, {types.Float64, types.Float32}, {types.Int64, arrow.BinaryTypes.String},
		{arrow.BinaryTypes.String, types.Int64}, {arrow.BinaryTypes.Binary, arrow.BinaryTypes.String}, {arrow.BinaryTypes.String, arrow.BinaryTypes.Binary},
		{&arrow.FixedSizeBinaryType{ByteWidth: 4}, arrow.BinaryTypes.Binary}, {&arrow.FixedSizeBinaryType{ByteWidth: 4}, &arrow.FixedSizeBinaryType{ByteWidth: 5}},
		{stamp(arrow.Second, ""), stamp(arrow.Second, "UTC")}, {stamp(arrow.Second, "UTC"), stamp(arrow.Second, "")},
		{types.Date32, stamp(arrow.Second, "")}, {types.Int64, stamp(arrow.Second, "")}, {stamp(arrow.Second, ""), types.Int64},
		{arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Duration_s}, {types.Int32, types.Date32},
		{dec(128, 10, 2), dec(128, 10, 3)}, {dec(128, 10, 2), dec(128, 9, 2)}, {dec(128, 10, 2), types.Int64}, {types.Int32, dec(128, 20, 0)},
		{arrow.ListOf(types.Int64), arrow.ListOf(types.Int32)}, {arrow.FixedSizeListOf(2, types.Int8), arrow.ListOf(types.Int8)},
		{arrow.FixedSizeListOf(2, types.Int8), arrow.FixedSizeListOf(3, types.Int8)}, {arrow.FixedWidthTypes.Boolean, types.Int8},
		{structOf(types.Int8, types.Int8), structOf(types.Int8)}, {structOf(types.Int64), structOf(types.Int32)},
		{types.Int8, arrow.Null}, {arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval},
	} {
		_, err := match(canonical.Type(c[0]), canonical.Type(c[1]))
		require.ErrorIs(t, err, errMismatch, "%s into %s", c[0], c[1])
	}
}

func TestConversions(t *testing.T) {
	types := arrow.PrimitiveTypes
	times := arrow.FixedWidthTypes
	for _, c := range []struct {
		from, to   arrow.DataType
		sent, want string
	}{
		{types.Int8, types.Int16, `[1,null,-128]`, `[1,null,-128]`},
		{types.Int8, types.Int64, `[1,null,-128]`, `[1,null,-128]`},
		{types.Int16, types.Int32, `[1,null,-32768]`, `[1,null,-32768]`},
		{types.Int32, types.Int64, `[1,null,-2147483648]`, `[1,null,-2147483648]`},
		{types.Uint8, types.Int16, `[255,null]`, `[255,null]`},
		{types.Uint8, types.Uint64, `[255,null]`, `[255,null]`},
		{types.Uint16, types.Uint32, `[65535]`, `[65535]`},
		{types.Uint32, types.Int64, `[4294967295]`, `[4294967295]`},
		{types.Uint32, types.Uint64, `[4294967295]`, `[4294967295]`},
		{types.Float32, types.Float64, `[1.5,null,-0.25]`, `[1.5,null,-0.25]`},
		{times.Float16, types.Float32, `[1.5,null]`, `[1.5,null]`},
		{times.Float16, types.Float64, `[1.5,null]`, `[1.5,null]`},
		{arrow.Null, types.Int64, `[null,null]`, `[null,null]`},
		{arrow.Null, arrow.BinaryTypes.String, `[null,null]`, `[null,null]`},
		{arrow.Null, arrow.ListOf(types.Int8), `[null]`, `[null]`},
		{arrow.Null, structOf(types.Int8), `[null]`, `[null]`},
		{arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, `["a",null]`, `["a",null]`},
		{arrow.BinaryTypes.StringView, arrow.BinaryTypes.String, `["a",null]`, `["a",null]`},
		{arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.Binary, `["YQ==",null]`, `["YQ==",null]`},
		{&arrow.DictionaryType{IndexType: types.Int8, ValueType: arrow.BinaryTypes.String}, arrow.BinaryTypes.LargeString, `["a",null,"b","a"]`, `["a",null,"b","a"]`},
		{arrow.RunEndEncodedOf(types.Int16, types.Int8), types.Int32, `[1,1,null,2]`, `[1,1,null,2]`},
		{arrow.LargeListOf(types.Int8), arrow.ListViewOf(types.Int64), `[[1,null],null,[]]`, `[[1,null],null,[]]`},
		{arrow.FixedSizeListOf(2, types.Int8), arrow.FixedSizeListOf(2, types.Int16), `[[1,2],null]`, `[[1,2],null]`},
		{structOf(types.Int8, arrow.BinaryTypes.LargeString), structOf(types.Int64, arrow.BinaryTypes.String, types.Int8), `[{"a":1,"b":"x"},null]`, `[{"a":1,"b":"x","c":null},null]`},
		{arrow.StructOf(arrow.Field{Name: "b", Type: types.Int8, Nullable: true}, arrow.Field{Name: "a", Type: types.Int8, Nullable: true}), structOf(types.Int64, types.Int64), `[{"b":2,"a":1}]`, `[{"a":1,"b":2}]`},
		{arrow.MapOf(arrow.BinaryTypes.LargeString, types.Int8), arrow.MapOf(arrow.BinaryTypes.String, types.Int64), `[[{"key":"a","value":1}],null]`, `[[{"key":"a","value":1}],null]`},
		{stamp(arrow.Second, ""), stamp(arrow.Nanosecond, ""), `[1,null,-1]`, `[1000000000,null,-1000000000]`},
		{stamp(arrow.Nanosecond, "UTC"), stamp(arrow.Millisecond, "Europe/Paris"), `[1000000,null,-5000000]`, `[1,null,-5]`},
		{stamp(arrow.Second, "UTC"), stamp(arrow.Second, "Asia/Tokyo"), `[7]`, `[7]`},
		{times.Time32s, times.Time64ns, `[3600]`, `[3600000000000]`},
		{times.Time64us, times.Time32ms, `[1000]`, `[1]`},
		{times.Duration_s, times.Duration_us, `[-3]`, `[-3000000]`},
		{types.Date32, types.Date64, `[-1]`, `[-86400000]`},
		{types.Date64, types.Date32, `[172800000,null]`, `[2,null]`},
		{dec(128, 10, 2), dec(128, 12, 4), `["1.25",null,"-99999999.99"]`, `["1.2500",null,"-99999999.9900"]`},
		{dec(128, 10, 2), dec(128, 12, 2), `["1.25"]`, `["1.25"]`},
		{dec(32, 9, 2), dec(64, 18, 4), `["1.25",null]`, `["1.2500",null]`},
		{dec(32, 5, 0), dec(32, 9, 2), `["-7"]`, `["-7.00"]`},
		{dec(64, 10, 2), dec(256, 70, 30), `["1.25",null]`, `["1.25",null]`},
		{dec(256, 20, 2), dec(128, 38, 10), `["1.25",null,"-3.5"]`, `["1.25",null,"-3.5"]`},
		{dec(128, 8, 2), dec(32, 9, 3), `["1.25",null,"-3.5"]`, `["1.25",null,"-3.5"]`},
		{dec(64, 8, 2), dec(32, 9, 2), `["1.25",null,"-3.5"]`, `["1.25",null,"-3.5"]`},
		{dec(256, 60, 2), dec(256, 62, 4), `["-1.25",null]`, `["-1.25",null]`},
	} {
		t.Run(c.from.String()+" into "+c.to.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			from, to := plain(t, mem, c.from, c.sent), plain(t, mem, c.to, c.want)
			defer from.Release()
			defer to.Release()
			conversion, err := match(from.DataType(), to.DataType())
			require.NoError(t, err)
			got, err := conversion.apply(mem, from)
			require.NoError(t, err)
			defer got.Release()
			require.True(t, arrow.TypeEqual(to.DataType(), got.DataType()), "%s", got.DataType())
			require.True(t, array.Equal(to, got), "want %s, got %s", to, got)
			require.NoError(t, canonical.Check(got))
		})
	}
}

// plain is a canonical array; times may be given as numbers.
func plain(t *testing.T, mem memory.Allocator, dt arrow.DataType, text string) arrow.Array {
	t.Helper()
	read := dt
	switch dt.ID() {
	case arrow.TIMESTAMP, arrow.TIME64, arrow.DURATION, arrow.DATE64:
		read = arrow.PrimitiveTypes.Int64
	case arrow.TIME32, arrow.DATE32:
		read = arrow.PrimitiveTypes.Int32
	}
	arr, _, err := array.FromJSON(mem, read, strings.NewReader(text))
	require.NoError(t, err)
	defer arr.Release()
	if read != dt {
		arr = made(dt, arr.Len(), arr.Data().Buffers(), nil, arr.NullN())
		defer arr.Release()
	}
	out, err := canonical.Normalize(mem, arr)
	require.NoError(t, err)
	return out
}

// Values that do not fit are found with their row, nulls with anything under
// them do fit.
func TestValuesThatDoNotFit(t *testing.T) {
	times := arrow.FixedWidthTypes
	for _, c := range []struct {
		from, to arrow.DataType
		sent     string
		row      int
	}{
		{stamp(arrow.Microsecond, ""), stamp(arrow.Nanosecond, ""), `[0,null,253402214400000000]`, 2},
		{stamp(arrow.Nanosecond, ""), stamp(arrow.Microsecond, ""), `[1000,1500]`, 1},
		{stamp(arrow.Second, ""), stamp(arrow.Nanosecond, ""), `[9223372036,9223372037]`, 1},
		{stamp(arrow.Second, ""), stamp(arrow.Nanosecond, ""), `[-9223372036,-9223372037]`, 1},
		{times.Time64ns, times.Time32s, `[1000000000,1]`, 1},
		{times.Time64us, times.Time32ms, `[1,3000000000000000]`, 0},
		{arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Date32, `[86400000,86400001]`, 1},
		{arrow.ListOf(stamp(arrow.Nanosecond, "")), arrow.ListOf(stamp(arrow.Second, "")), ``, 2},
	} {
		t.Run(c.from.String()+" into "+c.to.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			var from arrow.Array
			if c.sent == "" { // lists of counts: [0], [], [1000000000, 5]
				lists := plain(t, mem, arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[0],[],[1000000000,5]]`)
				defer lists.Release()
				values := lists.Data().Children()[0]
				child := array.NewData(stamp(arrow.Nanosecond, ""), values.Len(), values.Buffers(), nil, 0, 0)
				defer child.Release()
				from = made(canonical.Type(c.from), 3, lists.Data().Buffers(), []arrow.ArrayData{child}, 0)
			} else {
				from = plain(t, mem, c.from, c.sent)
			}
			defer from.Release()
			conversion, err := match(from.DataType(), canonical.Type(c.to))
			require.NoError(t, err)
			_, err = conversion.apply(mem, from)
			var bad *valueError
			require.True(t, errors.As(err, &bad), "%v", err)
			require.Equal(t, c.row, bad.row)
			require.NotEmpty(t, bad.value)
		})
	}
}

func TestGarbageUnderNullsIsNoValue(t *testing.T) {
	mem := memory.DefaultAllocator
	values := memory.NewBufferBytes(arrow.GetBytes([]int64{1, math.MaxInt64}))
	valid := memory.NewBufferBytes([]byte{1})
	from := made(stamp(arrow.Second, ""), 2, []*memory.Buffer{valid, values}, nil, 1)
	conversion, err := match(from.DataType(), stamp(arrow.Nanosecond, ""))
	require.NoError(t, err)
	got, err := conversion.apply(mem, from)
	require.NoError(t, err)
	require.Equal(t, arrow.Timestamp(1_000_000_000), got.(*array.Timestamp).Value(0))
	require.True(t, got.IsNull(1))
}

// Decimals may hold more digits than they declare; those do not widen.
func TestDecimalBeyondItsPrecision(t *testing.T) {
	values := memory.NewBufferBytes(arrow.GetBytes([]int64{5, 1, math.MinInt64, math.MinInt64}))
	from := made(dec(128, 5, 2), 2, []*memory.Buffer{nil, values}, nil, 0)
	for _, to := range []arrow.DataType{dec(128, 38, 10), dec(256, 76, 40)} {
		conversion, err := match(from.DataType(), to)
		require.NoError(t, err)
		_, err = conversion.apply(memory.DefaultAllocator, from)
		var bad *valueError
		require.True(t, errors.As(err, &bad), "%v", err)
		require.Equal(t, 0, bad.row)
	}
}

// What lies under a null struct is no value, whether or not it would fit.
func TestValuesUnderNullStructsNeedNotFit(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	from := arrow.StructOf(arrow.Field{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_ns, Nullable: true})
	to := arrow.StructOf(arrow.Field{Name: "t", Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true})
	builder := array.NewTimestampBuilder(mem, arrow.FixedWidthTypes.Timestamp_ns.(*arrow.TimestampType))
	defer builder.Release()
	builder.AppendValues([]arrow.Timestamp{1, 2000}, nil)
	child := builder.NewArray()
	defer child.Release()
	data := array.NewData(from, 2, []*memory.Buffer{memory.NewBufferBytes([]byte{2})}, []arrow.ArrayData{child.Data()}, 1, 0)
	arr := array.MakeFromData(data)
	data.Release()
	defer arr.Release()
	c, err := match(from, to)
	require.NoError(t, err)
	out, err := c.apply(mem, arr)
	require.NoError(t, err)
	defer out.Release()
	require.True(t, out.IsNull(0))
	require.Equal(t, arrow.Timestamp(2), out.(*array.Struct).Field(0).(*array.Timestamp).Value(1))
}
