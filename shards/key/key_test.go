package key_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/key"
)

// TestHandWrittenBytes: worked out by hand from the package comment, so that
// the vectors are not only what this code says of itself.
func TestHandWrittenBytes(t *testing.T) {
	for _, c := range []struct {
		dt    string
		value any
		want  string
	}{
		{"int8", "-128", "00"}, {"int8", "-1", "7f"}, {"int8", "0", "80"}, {"int8", "127", "ff"},
		{"int16", "-2", "7ffe"}, {"int16", "258", "8102"},
		{"int32", "-2147483648", "00000000"}, {"int32", "1", "80000001"},
		{"int64", "-1", "7fffffffffffffff"}, {"int64", "72623859790382856", "8102030405060708"},
		{"uint16", "258", "0102"}, {"uint32", "16909060", "01020304"}, {"uint64", "18446744073709551615", "ffffffffffffffff"},
		{"bool", false, "00"}, {"bool", true, "01"},
		{"string", "", "0001"}, {"string", "a", "610001"}, {"string", "a\x00b", "6100ff620001"}, {"string", "\x00", "00ff0001"},
		{"string", "é", "c3a90001"}, {"binary", "00ff00", "00ffff00ff0001"},
		{"fixed_size_binary[3]", "00ff01", "00ff01"},
		{"date32[day]", "-1", "7fffffff"}, {"date64[ms]", "86400000", "8000000005265c00"},
		{"time32[s]", "86399", "8001517f"}, {"timestamp[us]", "-1", "7fffffffffffffff"}, {"duration[ns]", "1", "8000000000000001"},
		{"decimal32(9, 2)", "-1", "7fffffff"}, {"decimal64(18, 4)", "1", "8000000000000001"},
		{"decimal128(38, 10)", "-1", "7f" + strings.Repeat("ff", 15)},
		{"decimal128(38, 10)", "18446744073709551616", "80000000000000010000000000000000"},
		{"decimal256(76, 20)", "0", "80" + strings.Repeat("00", 31)},
	} {
		_, columns := vector{Types: []string{c.dt}, Values: []any{c.value}}.columns(t, memory.DefaultAllocator)
		got, err := key.AppendValue([]byte{0xAA}, columns[0], 0)
		require.NoError(t, err)
		require.Equal(t, "aa"+c.want, hex.EncodeToString(got), "%s %v", c.dt, c.value)
	}
}

// TestHashIsXXHash64 checks values published with the algorithm.
func TestHashIsXXHash64(t *testing.T) {
	require.Equal(t, uint64(0xEF46DB3751D8E999), key.Hash(nil))
	require.Equal(t, uint64(0xD24EC4F1A98C6E5B), key.Hash([]byte("a")))
	require.Equal(t, uint64(0x44BC2CF5AD770999), key.Hash([]byte("abc")))
}

func TestSlicesOwnContiguousHashesAndSplitInTwo(t *testing.T) {
	previous := 0
	for high := range uint64(1 << 16) {
		hash := high<<48 | 0x1234
		slice := key.SliceOf(hash, 1000)
		require.GreaterOrEqual(t, slice, previous)
		require.Less(t, slice, 1000)
		require.Equal(t, slice, key.SliceOf(hash, 2000)/2)
		previous = slice
	}
	require.Equal(t, 999, key.SliceOf(^uint64(0), 1000))
	require.Equal(t, 0, key.SliceOf(0, 1000))
}

// columns of the test table: two rows of which one may be null.
func table(t *testing.T, mem memory.Allocator, rows int) []arrow.Array {
	names := array.NewStringBuilder(mem)
	numbers := array.NewInt64Builder(mem)
	flags := array.NewBooleanBuilder(mem)
	defer names.Release()
	defer numbers.Release()
	defer flags.Release()
	for i := range rows {
		names.Append(strings.Repeat("x\x00", i%5))
		numbers.Append(int64(i) - 50)
		flags.Append(i%3 == 0)
	}
	return []arrow.Array{names.NewArray(), numbers.NewArray(), flags.NewArray()}
}

func TestRangesAndSlicesGiveTheSameKeys(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	columns := table(t, mem, 100)
	defer release(columns)
	whole := &key.Keys{}
	require.NoError(t, key.Encode(whole, columns))
	require.Equal(t, 100, whole.Len())

	pieces := &key.Keys{}
	pieces.Grow(100, 10)
	for lo := 0; lo < 100; lo += 7 {
		require.NoError(t, key.EncodeRange(pieces, columns, lo, min(lo+7, 100)))
	}
	require.Equal(t, whole, pieces)

	for _, cut := range [][2]int64{{0, 100}, {1, 99}, {8, 16}, {13, 14}, {50, 50}} {
		sliced := make([]arrow.Array, len(columns))
		for i, column := range columns {
			sliced[i] = array.NewSlice(column, cut[0], cut[1])
		}
		keys := &key.Keys{}
		require.NoError(t, key.Encode(keys, sliced))
		require.Equal(t, int(cut[1]-cut[0]), keys.Len())
		for i := range keys.Len() {
			require.Equal(t, whole.At(int(cut[0])+i), keys.At(i))
		}
		release(sliced)
	}
}

func TestKeysListsGrowAndReset(t *testing.T) {
	keys := &key.Keys{}
	keys.Append([]byte("ab"))
	keys.Append(nil)
	keys.Append([]byte("c"))
	require.Equal(t, 3, keys.Len())
	require.Equal(t, []byte("ab"), keys.At(0))
	require.Empty(t, keys.At(1))
	require.Equal(t, []byte("c"), keys.At(2))
	_ = append(keys.At(0), "overwrites nothing"...)
	require.Equal(t, []byte("c"), keys.At(2))
	keys.Reset()
	require.Zero(t, keys.Len())
	keys.Append([]byte("d"))
	require.Equal(t, []byte("d"), keys.At(0))
}

func TestNullsAreRefusedByTheFirstRow(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	builder := array.NewInt32Builder(mem)
	defer builder.Release()
	builder.AppendValues([]int32{1, 2, 3, 4}, []bool{true, true, true, false})
	late := builder.NewArray()
	builder.AppendValues([]int32{1, 2, 3, 4}, []bool{true, true, false, true})
	early := builder.NewArray()
	defer release([]arrow.Array{late, early})

	keys := &key.Keys{}
	keys.Append([]byte("before"))
	var row *key.RowError
	require.ErrorAs(t, key.Encode(keys, []arrow.Array{late, early}), &row)
	require.Equal(t, key.RowError{Column: 1, Row: 2, Reason: key.Null}, *row)
	require.Contains(t, row.Error(), "row 2: key column 1 is null")
	require.Equal(t, 1, keys.Len(), "the list is as before")
	require.Equal(t, []byte("before"), keys.Data)

	require.NoError(t, key.EncodeRange(keys, []arrow.Array{late, early}, 0, 2))
	require.ErrorAs(t, key.EncodeRange(keys, []arrow.Array{late, early}, 3, 4), &row)
	require.Equal(t, key.RowError{Column: 0, Row: 3, Reason: key.Null}, *row)
	slice := array.NewSlice(early, 1, 4)
	defer slice.Release()
	require.ErrorAs(t, key.Encode(keys, []arrow.Array{slice}), &row)
	require.Equal(t, 1, row.Row, "rows count from the slice's start")
	_, err := key.AppendValue(nil, early, 2)
	require.ErrorAs(t, err, &row)
}

func TestLongKeysAreRefusedByTheirEncodedLength(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	long := func(texts ...string) arrow.Array {
		builder := array.NewStringBuilder(mem)
		defer builder.Release()
		builder.AppendValues(texts, nil)
		return builder.NewArray()
	}
	for _, c := range []struct {
		columns []arrow.Array
		bytes   int // 0: accepted
		column  int
	}{
		{[]arrow.Array{long(strings.Repeat("a", 1000))}, 0, 0},
		{[]arrow.Array{long(strings.Repeat("a", limits.KeyBytes-2))}, 0, 0},
		{[]arrow.Array{long(strings.Repeat("a", limits.KeyBytes-1))}, limits.KeyBytes + 1, 0},
		{[]arrow.Array{long(strings.Repeat("a", 1100))}, 1102, 0},
		{[]arrow.Array{long(strings.Repeat("\x00", 600))}, 1202, 0},
		{[]arrow.Array{long(strings.Repeat("\x00", 511))}, 0, 0},
		{[]arrow.Array{long(strings.Repeat("a", 1<<20))}, 1<<20 + 2, 0},
		{[]arrow.Array{long(strings.Repeat("a", 500)), long(strings.Repeat("b", 520))}, 0, 0},
		{[]arrow.Array{long(strings.Repeat("a", 500)), long(strings.Repeat("b", 521))}, 1025, 1},
	} {
		keys := &key.Keys{}
		err := key.Encode(keys, c.columns)
		if c.bytes == 0 {
			require.NoError(t, err)
			require.LessOrEqual(t, len(keys.At(0)), limits.KeyBytes)
		} else {
			var row *key.RowError
			require.ErrorAs(t, err, &row)
			require.Equal(t, key.RowError{Column: c.column, Row: 0, Reason: key.TooLong, Bytes: c.bytes}, *row)
			require.Contains(t, err.Error(), "1024")
			require.Zero(t, keys.Len())
			literal, err := key.AppendValue(nil, c.columns[0], 0)
			require.NoError(t, err, "literals of filters may be longer")
			require.Greater(t, len(literal), 2)
		}
		release(c.columns)
	}
	wide := oneValue(t, mem, &arrow.FixedSizeBinaryType{ByteWidth: 1025}, strings.Repeat("00", 1025))
	defer wide.Release()
	var row *key.RowError
	require.ErrorAs(t, key.Encode(&key.Keys{}, []arrow.Array{wide}), &row)
	require.Equal(t, 1025, row.Bytes)
}

func TestWrongUseIsAnError(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	columns := table(t, mem, 3)
	defer release(columns)
	short := array.NewSlice(columns[0], 0, 2)
	defer short.Release()
	floats := array.NewFloat64Builder(mem)
	defer floats.Release()
	floats.AppendEmptyValues(3)
	float := floats.NewArray()
	defer float.Release()
	keys := &key.Keys{}
	require.Error(t, key.Encode(keys, nil))
	require.Error(t, key.Encode(keys, []arrow.Array{columns[0], short}))
	require.Error(t, key.Encode(keys, []arrow.Array{float}))
	require.Error(t, key.EncodeRange(keys, columns, 2, 1))
	require.Error(t, key.EncodeRange(keys, columns, -1, 1))
	require.Error(t, key.EncodeRange(keys, columns, 0, 4))
	require.Error(t, key.Encode(keys, []arrow.Array{columns[0], columns[0], columns[0], columns[0], columns[0], columns[0], columns[0], columns[0], columns[0]}))
	require.Zero(t, keys.Len())
	_, err := key.AppendValue(nil, float, 0)
	require.Error(t, err)
	_, err = key.Decode(mem, []arrow.DataType{arrow.PrimitiveTypes.Float64}, keys)
	require.Error(t, err)
	_, err = key.Prefix([]arrow.DataType{arrow.PrimitiveTypes.Float64}, []byte("12345678"), 1)
	require.Error(t, err)
	_, err = key.Prefix(nil, nil, 1)
	require.Error(t, err)
}

func TestSupportedTypes(t *testing.T) {
	for _, v := range vectorSources() {
		for _, name := range v.Types {
			require.NoError(t, key.Supported(parseType(t, name)), name)
		}
	}
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.PrimitiveTypes.Float32}
	for text, dt := range map[string]arrow.DataType{
		"float64 cannot be a key: NaN":          arrow.PrimitiveTypes.Float64,
		"float16 cannot be a key":               arrow.FixedWidthTypes.Float16,
		"(the column is dictionary<":            dictionary,
		"(the column is run_end_encoded<":       arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, dictionary),
		"null cannot be a key":                  arrow.Null,
		"list<item: int8, nullable> cannot":     arrow.ListOf(arrow.PrimitiveTypes.Int8),
		"struct<a: int8> cannot":                arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int8}),
		"month_day_nano_interval cannot":        arrow.FixedWidthTypes.MonthDayNanoInterval,
		"fixed_size_binary[0] cannot be a key:": &arrow.FixedSizeBinaryType{},
	} {
		err := key.Supported(dt)
		require.ErrorContains(t, err, text)
		require.True(t, fault.Is(err, "KEY_TYPE"))
	}
}

func TestNextIsTheLeastKeyBehindAPrefix(t *testing.T) {
	for prefix, want := range map[string][]byte{
		"":             nil,
		"\xff\xff":     nil,
		"a":            []byte("b"),
		"a\xff":        []byte("b"),
		"a\x00\xff":    []byte("a\x01"),
		"foo\x00\x01":  []byte("foo\x00\x02"),
		"\xfe\xff\xff": []byte("\xff"),
	} {
		before := []byte(prefix)
		got := key.Next(before)
		require.Equal(t, want, got, "%q", prefix)
		require.Equal(t, prefix, string(before))
		if got != nil {
			require.Positive(t, bytes.Compare(got, []byte(prefix+"\xff\xff\xff")))
		}
	}
}

func TestPrefixIsWhereAColumnEnds(t *testing.T) {
	types := []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.Binary}
	encoded := []byte("fo\x00\xffo\x00\x01\x80\x01\x00\x01")
	for n, want := range []int{0, 7, 9, 11} {
		got, err := key.Prefix(types, encoded, n)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if n > 0 {
			_, err = key.Prefix(types, encoded[:want-1], n)
			require.ErrorIs(t, err, key.ErrMalformed)
		}
	}
}

func TestMalformedKeysAreErrors(t *testing.T) {
	for _, c := range []struct {
		dt  arrow.DataType
		key string
	}{
		{arrow.PrimitiveTypes.Int32, "\x80\x00\x00"},
		{arrow.PrimitiveTypes.Int32, "\x80\x00\x00\x00\x00"},
		{arrow.PrimitiveTypes.Int32, ""},
		{arrow.FixedWidthTypes.Boolean, "\x02"},
		{arrow.BinaryTypes.String, "abc"},
		{arrow.BinaryTypes.String, "abc\x00"},
		{arrow.BinaryTypes.String, "abc\x00\x02"},
		{arrow.BinaryTypes.String, "abc\x00\xff"},
		{arrow.BinaryTypes.String, "abc\x00\x01d"},
		{arrow.BinaryTypes.String, ""},
	} {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		keys := &key.Keys{}
		keys.Append([]byte(c.key))
		_, err := key.Decode(mem, []arrow.DataType{c.dt}, keys)
		require.ErrorIs(t, err, key.ErrMalformed, "%s %q", c.dt, c.key)
		mem.AssertSize(t, 0)
		require.Equal(t, "0x"+hex.EncodeToString([]byte(c.key)), key.String([]arrow.DataType{c.dt}, []byte(c.key)))
	}
	for _, keys := range []*key.Keys{
		{Data: []byte{1, 2}, Ends: []uint32{2, 1}},
		{Data: []byte{1, 2}, Ends: []uint32{1, 3}},
	} {
		_, err := key.Decode(memory.DefaultAllocator, []arrow.DataType{arrow.PrimitiveTypes.Uint8}, keys)
		require.Error(t, err)
	}
	_, err := key.Slices(nil, &key.Keys{Data: []byte{1}, Ends: []uint32{1}}, []arrow.DataType{arrow.PrimitiveTypes.Int32}, 1, 16)
	require.ErrorIs(t, err, key.ErrMalformed)
	_, err = key.Slices(nil, &key.Keys{Data: []byte{1}, Ends: []uint32{1}}, []arrow.DataType{arrow.BinaryTypes.String}, 1, 16)
	require.ErrorIs(t, err, key.ErrMalformed)
}

func TestKeysAsText(t *testing.T) {
	for want, v := range map[string]vector{
		`"N14228", 2013-01-01T10:00:00Z`: {Types: []string{"string", "timestamp[us, tz=UTC]"}, Values: []any{"N14228", "1357034400000000"}},
		`"a\x00\"b", -7, true`:           {Types: []string{"string", "int16", "bool"}, Values: []any{"a\x00\"b", "-7", true}},
		`0x00ff, 0x61`:                   {Types: []string{"binary", "fixed_size_binary[1]"}, Values: []any{"00ff", "61"}},
		`-0.01, 12.34, 1234, 1e3`:        {Types: []string{"decimal128(10, 2)", "decimal32(9, 2)", "decimal64(9, 0)", "decimal256(20, -3)"}, Values: []any{"-1", "1234", "1234", "1"}},
		`1582-10-15, 1969-12-31`:         {Types: []string{"date32[day]", "date64[ms]"}, Values: []any{"-141427", "-86400000"}},
		`1969-12-31T23:59:59.999`:        {Types: []string{"timestamp[ms]"}, Values: []any{"-1"}},
		`1970-01-01T00:00:00.001`:        {Types: []string{"date64[ms]"}, Values: []any{"1"}},
		`2147483647, 9223372036854775807, -9223372036854775808`: {Types: []string{"date32[day]", "timestamp[s]", "timestamp[s]"},
			Values: []any{"2147483647", "9223372036854775807", "-9223372036854775808"}},
		`23:59:59, 00:00:00.5, 00:00:00.000001, 00:00:00.000000001`: {Types: []string{"time32[s]", "time32[ms]", "time64[us]", "time64[ns]"}, Values: []any{"86399", "500", "1", "1"}},
		`-5ms, 18446744073709551615`:                                {Types: []string{"duration[ms]", "uint64"}, Values: []any{"-5", "18446744073709551615"}},
	} {
		types, columns := v.columns(t, memory.DefaultAllocator)
		keys := &key.Keys{}
		require.NoError(t, key.Encode(keys, columns))
		require.Equal(t, want, key.String(types, keys.At(0)))
	}
}
