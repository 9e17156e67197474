package run

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
)

func ts(unit arrow.TimeUnit, zone string) arrow.DataType {
	return &arrow.TimestampType{Unit: unit, TimeZone: zone}
}

// widening is a column as written and as read.
var widenings = []struct {
	from arrow.DataType
	have string
	to   arrow.DataType
	want string
}{
	{arrow.PrimitiveTypes.Int8, `[-128, null, 127]`, arrow.PrimitiveTypes.Int16, `[-128, null, 127]`},
	{arrow.PrimitiveTypes.Int16, `[-32768, null, 32767]`, arrow.PrimitiveTypes.Int64, `[-32768, null, 32767]`},
	{arrow.PrimitiveTypes.Int32, `[-2147483648, null, 1]`, arrow.PrimitiveTypes.Int64, `[-2147483648, null, 1]`},
	{arrow.PrimitiveTypes.Uint8, `[255, null]`, arrow.PrimitiveTypes.Uint16, `[255, null]`},
	{arrow.PrimitiveTypes.Uint16, `[65535, null]`, arrow.PrimitiveTypes.Int32, `[65535, null]`},
	{arrow.PrimitiveTypes.Uint32, `[4294967295]`, arrow.PrimitiveTypes.Int64, `[4294967295]`},
	{arrow.PrimitiveTypes.Uint32, `[4294967295]`, arrow.PrimitiveTypes.Uint64, `[4294967295]`},
	{arrow.PrimitiveTypes.Int8, `[-7, null]`, arrow.FixedWidthTypes.Float16, `[-7, null]`},
	{arrow.PrimitiveTypes.Int16, `[-32768]`, arrow.PrimitiveTypes.Float32, `[-32768]`},
	{arrow.PrimitiveTypes.Uint32, `[4294967295]`, arrow.PrimitiveTypes.Float64, `[4294967295]`},
	{arrow.FixedWidthTypes.Float16, `[1.5, null, -2]`, arrow.PrimitiveTypes.Float64, `[1.5, null, -2]`},
	{arrow.PrimitiveTypes.Float32, `[1.5, null, -2.25]`, arrow.PrimitiveTypes.Float64, `[1.5, null, -2.25]`},
	{arrow.PrimitiveTypes.Int32, `[-5, null]`, &arrow.Decimal64Type{Precision: 12, Scale: 2}, `["-5", null]`},
	{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, &arrow.Decimal128Type{Precision: 22, Scale: 2}, `["18446744073709551615"]`},
	{&arrow.Decimal32Type{Precision: 5, Scale: 2}, `["-123.45", null]`, &arrow.Decimal32Type{Precision: 9, Scale: 4}, `["-123.45", null]`},
	{&arrow.Decimal64Type{Precision: 12, Scale: 2}, `["-1.5", null]`, &arrow.Decimal128Type{Precision: 38, Scale: 20}, `["-1.5", null]`},
	{&arrow.Decimal128Type{Precision: 38, Scale: 2}, `["-123456789012345678901234567890.12", null]`, &arrow.Decimal256Type{Precision: 76, Scale: 10}, `["-123456789012345678901234567890.12", null]`},
	{arrow.FixedWidthTypes.Date32, `["1950-03-01", null]`, arrow.FixedWidthTypes.Date64, `["1950-03-01", null]`},
	{arrow.FixedWidthTypes.Time32s, `["23:59:59", null]`, arrow.FixedWidthTypes.Time32ms, `["23:59:59", null]`},
	{arrow.FixedWidthTypes.Time32ms, `["23:59:59.125"]`, arrow.FixedWidthTypes.Time64ns, `["23:59:59.125"]`},
	{ts(arrow.Second, "UTC"), `["1950-01-01T00:00:01Z", null]`, ts(arrow.Nanosecond, "UTC"), `["1950-01-01T00:00:01Z", null]`},
	{arrow.FixedWidthTypes.Duration_ms, `[-5, null]`, arrow.FixedWidthTypes.Duration_us, `[-5000, null]`},
}

func fromJSON(t *testing.T, mem memory.Allocator, dt arrow.DataType, text string) arrow.Array {
	arr, _, err := array.FromJSON(mem, dt, strings.NewReader(text))
	require.NoError(t, err)
	return arr
}

func TestColumnsWidenAsTheyAreRead(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	for _, c := range widenings {
		require.True(t, Widens(c.from, c.to), "%s to %s", c.from, c.to)
		require.False(t, Widens(c.to, c.from), "%s to %s", c.to, c.from)
		have, want := fromJSON(t, mem, c.from, c.have), fromJSON(t, mem, c.to, c.want)
		encoded, err := block.NewEncoder().Encode(nil, have.Len(), []uint32{1}, []arrow.Array{have})
		require.NoError(t, err)
		r, err := block.Open(encoded)
		require.NoError(t, err)
		v := block.NewVector(mem, c.to)
		w := NewWidener(mem)
		require.NoError(t, w.Append(v, &r, 1, c.from, 0, have.Len()))
		require.NoError(t, w.AppendRows(v, &r, 1, c.from, []uint32{0}))
		require.NoError(t, w.Append(v, &r, 2, c.from, 0, 2), "a column that the block leaves out")
		require.NoError(t, w.AppendRows(v, &r, 1, nil, []uint32{0}), "a column that did not exist")
		got := v.NewArray()
		n := int64(want.Len())
		require.True(t, array.SliceEqual(got, 0, n, want, 0, n), "%s to %s: %s", c.from, c.to, got)
		require.True(t, array.SliceEqual(got, n, n+1, want, 0, 1))
		require.EqualValues(t, n+4, got.Len())
		require.Equal(t, want.NullN()+3, got.NullN())
		for _, a := range []arrow.Array{have, want, got} {
			a.Release()
		}
		w.Release()
		v.Release()
	}
}

func TestWhatDoesNotWiden(t *testing.T) {
	for _, c := range []struct{ from, to arrow.DataType }{
		{arrow.PrimitiveTypes.Uint64, arrow.PrimitiveTypes.Int64},
		{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64},
		{arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Float32},
		{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64},
		{arrow.PrimitiveTypes.Int32, &arrow.Decimal128Type{Precision: 10, Scale: 1}},
		{arrow.PrimitiveTypes.Int32, ts(arrow.Second, "")},
		{arrow.PrimitiveTypes.Float32, &arrow.Decimal128Type{Precision: 38, Scale: 1}},
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, &arrow.Decimal128Type{Precision: 11, Scale: 4}},
		{&arrow.Decimal128Type{Precision: 5, Scale: 2}, &arrow.Decimal64Type{Precision: 9, Scale: 2}},
		{ts(arrow.Second, "UTC"), ts(arrow.Millisecond, "")},
		{ts(arrow.Millisecond, ""), ts(arrow.Second, "")},
		{arrow.FixedWidthTypes.Date32, ts(arrow.Millisecond, "")},
		{arrow.FixedWidthTypes.Time64ns, arrow.FixedWidthTypes.Time32s},
		{arrow.BinaryTypes.String, arrow.BinaryTypes.Binary},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.ListOf(arrow.PrimitiveTypes.Int16)},
	} {
		require.False(t, Widens(c.from, c.to), "%s to %s", c.from, c.to)
	}
	require.True(t, Widens(arrow.BinaryTypes.String, arrow.BinaryTypes.String))
}

func TestAStoredTimeBeyondTheFinerUnitIsAnError(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := array.NewTimestampBuilder(mem, &arrow.TimestampType{Unit: arrow.Second})
	defer b.Release()
	b.Append(arrow.Timestamp(1 << 40))
	arr := b.NewArray()
	defer arr.Release()
	_, err := widen(mem, arr, ts(arrow.Nanosecond, ""))
	require.True(t, fault.Is(err, "VALUE_OUT_OF_RANGE"), "%v", err)
	wide, err := widen(mem, arr, ts(arrow.Microsecond, ""))
	require.NoError(t, err)
	require.EqualValues(t, int64(1<<40)*1e6, wide.(*array.Timestamp).Value(0))
	wide.Release()
}
