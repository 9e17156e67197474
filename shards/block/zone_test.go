package block

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func floatsOf(values ...float64) arrow.Array {
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}

func textsOf(values ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(values, nil)
	return b.NewArray()
}

// ascending are arrays whose rows stand in strictly ascending order.
func ascending() map[string]arrow.Array {
	decimals := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38})
	for _, text := range []string{"-99999999999999999999999999999999999999", "-18446744073709551616", "-1", "0", "1", "9223372036854775807", "9223372036854775808", "99999999999999999999999999999999999999"} {
		number, err := decimal128.FromString(text, 38, 0)
		if err != nil {
			panic(err)
		}
		decimals.Append(number)
	}
	ints := array.NewInt16Builder(memory.DefaultAllocator)
	ints.AppendValues([]int16{-32768, -300, -1, 0, 1, 255, 32767}, nil)
	unsigned := array.NewUint64Builder(memory.DefaultAllocator)
	unsigned.AppendValues([]uint64{0, 1, 1 << 63, math.MaxUint64}, nil)
	stamps := array.NewTimestampBuilder(memory.DefaultAllocator, &arrow.TimestampType{Unit: arrow.Nanosecond})
	stamps.AppendValues([]arrow.Timestamp{math.MinInt64, -1, 0, math.MaxInt64}, nil)
	halves := array.NewFloat16Builder(memory.DefaultAllocator)
	for _, x := range []float32{float32(math.Inf(-1)), -2, 0, 0.5, float32(math.Inf(1))} {
		halves.Append(float16.New(x))
	}
	bools := array.NewBooleanBuilder(memory.DefaultAllocator)
	bools.AppendValues([]bool{false, true}, nil)
	fixed := array.NewFixedSizeBinaryBuilder(memory.DefaultAllocator, &arrow.FixedSizeBinaryType{ByteWidth: 9})
	fixed.Append([]byte("aaaaaaaaa"))
	fixed.Append([]byte("aaaaaaaab"))
	return map[string]arrow.Array{
		"decimal128": decimals.NewArray(), "int16": ints.NewArray(), "uint64": unsigned.NewArray(),
		"timestamp": stamps.NewArray(), "float16": halves.NewArray(), "bool": bools.NewArray(), "fixed": fixed.NewArray(),
		"float64": floatsOf(math.Inf(-1), -1e300, -1, -5e-324, 0, 5e-324, 1, math.Inf(1)),
		"string":  textsOf("", "\x00", "\x00\x00", "a", "a\x00", "abcdefgh", "abcdefgh\x00", "abcdefghi", "b", "é", "\xff\xff"),
	}
}

func TestZoneValuesOrderLikeTheirType(t *testing.T) {
	for name, arr := range ascending() {
		var last []byte
		for i := range arr.Len() {
			value, ok := ZoneValue(arr, i)
			require.True(t, ok)
			require.NotNil(t, value)
			if i > 0 {
				require.Negative(t, bytes.Compare(last, value), "%s, row %d: %x, %x", name, i, last, value)
			}
			last = value
		}
		z := ZoneOf(arr)
		low, _ := ZoneValue(arr, 0)
		require.Equal(t, low, z.Min, name)
		require.Equal(t, last, z.Max, name)
		require.True(t, z.MinExact && z.MaxExact && !z.NaN)
	}
}

func TestZoneOfFloats(t *testing.T) {
	z := ZoneOf(floatsOf(math.Copysign(0, -1), 0))
	require.Equal(t, z.Min, z.Max, "the zeros are one value")
	z = ZoneOf(floatsOf(1, math.NaN(), math.Float64frombits(0xFFF8000000000001), 2))
	one, _ := ZoneValue(floatsOf(1), 0)
	two, _ := ZoneValue(floatsOf(2), 0)
	require.Equal(t, Zone{Rows: 4, NaN: true, Min: one, Max: two, MinExact: true, MaxExact: true}, z)
	require.Equal(t, Zone{Rows: 1, NaN: true}, ZoneOf(floatsOf(math.NaN())))
	_, ok := ZoneValue(floatsOf(math.NaN()), 0)
	require.False(t, ok)
}

func TestZoneOfLongText(t *testing.T) {
	long := strings.Repeat("m", 40)
	z := ZoneOf(textsOf(long, "z"+strings.Repeat("\xff", 50)))
	require.Equal(t, []byte(long[:32]), z.Min)
	require.Equal(t, []byte("{"), z.Max)
	require.False(t, z.MinExact || z.MaxExact)
	z = ZoneOf(textsOf("", strings.Repeat("\xff", 33)))
	require.Equal(t, []byte{}, z.Min)
	require.True(t, z.MinExact)
	require.Nil(t, z.Max, "no short text is greater than all that begin with FF … FF")
	z = ZoneOf(textsOf(strings.Repeat("q", 32)))
	require.True(t, z.MinExact && z.MaxExact)
	require.Equal(t, z.Min, z.Max)
}

// TestZoneBoundsEveryValue compares zones of random arrays with their values.
func TestZoneBoundsEveryValue(t *testing.T) {
	eachArray(t, func(t *testing.T, rng *rand.Rand, arr arrow.Array) {
		z := ZoneOf(arr)
		require.Equal(t, arr.Len(), z.Rows)
		require.Equal(t, arr.NullN(), z.Nulls)
		values, least, most := 0, false, false
		for i := range arr.Len() {
			value, ok := ZoneValue(arr, i)
			if !ok {
				continue
			}
			values++
			if z.Min == nil || bytes.Compare(z.Min, value) > 0 {
				t.Fatalf("value %x below %x", value, z.Min)
			}
			if z.Max != nil && bytes.Compare(z.Max, value) < 0 {
				t.Fatalf("value %x above %x", value, z.Max)
			}
			least = least || bytes.Equal(value, z.Min)
			most = most || bytes.Equal(value, z.Max)
		}
		if values == 0 {
			require.Nil(t, z.Min)
			require.Nil(t, z.Max)
		}
		require.Equal(t, z.MinExact, least)
		require.Equal(t, z.MaxExact, most)
	})
}

func TestNestedTypesHaveNoBounds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, dt := range []arrow.DataType{arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.StructOf(), arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthInterval, arrow.Null} {
		arr := randomArray(rng, dt, 10, anyBytes, 0)
		z := ZoneOf(arr)
		require.Nil(t, z.Min)
		require.Nil(t, z.Max)
		require.Equal(t, 10, z.Rows)
		_, ok := ZoneValue(arr, 3)
		require.False(t, ok)
	}
}
