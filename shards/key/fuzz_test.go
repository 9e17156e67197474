package key_test

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/key"
)

var fuzzTypes = []arrow.DataType{
	arrow.FixedWidthTypes.Boolean,
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, &arrow.FixedSizeBinaryType{ByteWidth: 3},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.Duration_s,
	&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: -2},
	&arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 100},
}

// reader draws values from fuzzed bytes, zeros when they are used up.
type reader struct{ rest []byte }

func (r *reader) take(n int) []byte {
	taken := make([]byte, n)
	r.rest = r.rest[copy(taken, r.rest):]
	return taken
}

// values are some values of one type as their Arrow bytes: many are alike or
// prefixes of others.
func (r *reader) values(dt arrow.DataType, n int) [][]byte {
	values := make([][]byte, n)
	for i := range values {
		fixed, isFixed := dt.(arrow.FixedWidthDataType)
		how := r.take(1)[0]
		switch {
		case how < 64 && i > 0:
			values[i] = values[i-1]
		case how < 128 && i > 0 && !isFixed:
			values[i] = slices.Concat(values[i-1], r.take(int(how%4)))
		case isFixed:
			values[i] = r.take(fixed.Bytes())
		default:
			values[i] = r.take(int(how % 9))
		}
		if dt.ID() == arrow.BOOL {
			values[i] = []byte{values[i][0] & 1}
		}
	}
	return values
}

func columnOf(dt arrow.DataType, values [][]byte) arrow.Array {
	content := slices.Concat(values...)
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(content)}
	switch dt.ID() {
	case arrow.BOOL:
		bits := make([]byte, len(values)/8+1)
		for i, value := range values {
			bits[i/8] |= value[0] << (i % 8)
		}
		buffers[1] = memory.NewBufferBytes(bits)
	case arrow.STRING, arrow.BINARY:
		offsets := []int32{0}
		for _, value := range values {
			offsets = append(offsets, offsets[len(offsets)-1]+int32(len(value)))
		}
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(content)}
	}
	data := array.NewData(dt, len(values), buffers, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// compareTyped is the order of two values of a type.
func compareTyped(dt arrow.DataType, a, b []byte) int {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY:
		return bytes.Compare(a, b)
	case arrow.BOOL, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return unsigned(a).Cmp(unsigned(b))
	}
	return signed(a).Cmp(signed(b))
}

func unsigned(little []byte) *big.Int {
	reversed := slices.Clone(little)
	slices.Reverse(reversed)
	return new(big.Int).SetBytes(reversed)
}

func signed(little []byte) *big.Int {
	n := unsigned(little)
	if little[len(little)-1]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(little))))
	}
	return n
}

// FuzzOrder: keys of 1 to 8 columns of every type compare as their values do,
// decode to the same values, and their prefixes end where columns do.
func FuzzOrder(f *testing.F) {
	for i := range fuzzTypes {
		f.Add([]byte{byte(i)}, []byte("\xff\x00\x01\xff\x00\xffabc\x00\x01\x00\x80\x7f"))
		f.Add([]byte{byte(i), byte(i + 1), byte(i + 9)}, bytes.Repeat([]byte{0, 200, 0xFF, 1, 0}, 40))
	}
	f.Fuzz(func(t *testing.T, kinds, content []byte) {
		if len(kinds) == 0 {
			return
		}
		const rows = 4
		r := &reader{rest: content}
		var types []arrow.DataType
		var values [][][]byte
		var columns []arrow.Array
		for _, kind := range kinds[:min(len(kinds), 8)] {
			dt := fuzzTypes[int(kind)%len(fuzzTypes)]
			types = append(types, dt)
			values = append(values, r.values(dt, rows))
			columns = append(columns, columnOf(dt, values[len(values)-1]))
		}
		keys := &key.Keys{}
		require.NoError(t, key.Encode(keys, columns))
		for i := range rows {
			for j := range rows {
				want := 0
				for c := 0; c < len(types) && want == 0; c++ {
					want = compareTyped(types[c], values[c][i], values[c][j])
				}
				require.Equal(t, want, bytes.Compare(keys.At(i), keys.At(j)), "rows %d and %d of %v", i, j, types)
			}
			var joined []byte
			for c, column := range columns {
				end, err := key.Prefix(types, keys.At(i), c)
				require.NoError(t, err)
				require.Equal(t, len(joined), end)
				joined, err = key.AppendValue(joined, column, i)
				require.NoError(t, err)
			}
			require.Equal(t, keys.At(i), joined)
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		decoded, err := key.Decode(mem, types, keys)
		require.NoError(t, err)
		for c := range columns {
			require.True(t, array.Equal(columns[c], decoded[c]), "%s: %s is not %s", types[c], decoded[c], columns[c])
		}
		release(decoded)
		mem.AssertSize(t, 0)
	})
}

// FuzzDecode: bytes that are no key are refused, never a panic; those that
// decode are exactly what Encode makes of the values.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{9, 4}, []byte("foo\x00\x01\x80\x00\x00\x00\x00\x00\x00\x01"))
	f.Add([]byte{9}, []byte("foo\x00\xffbar\x00\x01"))
	f.Add([]byte{10}, []byte("foo\x00"))
	f.Add([]byte{0, 0}, []byte("\x00\x02"))
	for i := range fuzzTypes {
		f.Add([]byte{byte(i)}, make([]byte, 32))
		f.Add([]byte{byte(i)}, bytes.Repeat([]byte{0xFF}, 32))
	}
	f.Fuzz(func(t *testing.T, kinds, encoded []byte) {
		if len(kinds) == 0 || len(encoded) > 1024 {
			return
		}
		var types []arrow.DataType
		for _, kind := range kinds[:min(len(kinds), 8)] {
			types = append(types, fuzzTypes[int(kind)%len(fuzzTypes)])
		}
		require.NotEmpty(t, key.String(types, encoded))
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer mem.AssertSize(t, 0)
		keys := &key.Keys{}
		keys.Append(encoded)
		columns, err := key.Decode(mem, types, keys)
		end, prefixErr := key.Prefix(types, encoded, len(types))
		if err != nil {
			require.ErrorIs(t, err, key.ErrMalformed)
			return
		}
		defer release(columns)
		require.NoError(t, prefixErr)
		require.Equal(t, len(encoded), end)
		again := &key.Keys{}
		require.NoError(t, key.Encode(again, columns))
		require.Equal(t, encoded, again.At(0))
	})
}
