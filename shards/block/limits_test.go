package block

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func TestEncoderRefusesWhatABlockCannotHold(t *testing.T) {
	mem := memory.DefaultAllocator
	two := floatsOf(1, 2)
	nulls := func(dt arrow.DataType, rows int) arrow.Array {
		v := NewVector(mem, dt)
		v.AppendNulls(rows)
		return v.NewArray()
	}
	views := array.NewStringViewBuilder(mem)
	views.AppendValues([]string{"a", "b"}, nil)
	for _, c := range []struct {
		want string
		rows int
		ids  []uint32
		cols []arrow.Array
	}{
		{"column 1 is in the block twice", 2, []uint32{1, 1}, []arrow.Array{two, two}},
		{"column 9 has 2 rows in a block of 3", 3, []uint32{9}, []arrow.Array{two}},
		{"1 columns with 2 ids", 2, []uint32{1, 2}, []arrow.Array{two}},
		{"at most 1048576", MaxRows + 1, []uint32{1}, []arrow.Array{nulls(arrow.Null, MaxRows+1)}},
		{"column 4: type string_view is not canonical", 2, []uint32{4}, []arrow.Array{views.NewArray()}},
		{"column 5: more than 67108864 bytes", 1 << 16, []uint32{5}, []arrow.Array{nulls(&arrow.FixedSizeBinaryType{ByteWidth: 1024}, 1<<16)}},
	} {
		_, err := NewEncoder().Encode(nil, c.rows, c.ids, c.cols)
		require.ErrorContains(t, err, c.want)
		require.NotErrorIs(t, err, ErrCorrupt)
	}
}

func TestDirectoryIsOrderedById(t *testing.T) {
	one, two := floatsOf(1), textsOf("two")
	data := encode(t, 1, []uint32{ColumnCommit, 3}, one, two)
	require.Equal(t, data, encode(t, 1, []uint32{3, ColumnCommit}, two, one))
	r, err := Open(data)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, ColumnCommit}, r.Columns())
	require.True(t, r.Has(3))
	require.False(t, r.Has(4))
	require.Zero(t, r.ChunkBytes(4))
	require.Positive(t, r.ChunkBytes(3))

	empty := encode(t, 7, nil)
	r, err = Open(empty)
	require.NoError(t, err)
	require.Equal(t, 7, r.Rows())
	require.Empty(t, r.Columns())
}

func TestReaderNamesTheColumn(t *testing.T) {
	data := encode(t, 2, []uint32{8}, floatsOf(1, 2))
	r, err := Open(data)
	require.NoError(t, err)
	v := NewVector(memory.DefaultAllocator, arrow.PrimitiveTypes.Float64)
	require.ErrorContains(t, r.Append(v, 7, 0, 2), "column 7 is not in the block")
	require.ErrorContains(t, r.Append(v, 8, 0, 3), "column 8: rows [0, 3) of a block of 2")
	require.ErrorContains(t, r.AppendRows(v, 8, []uint32{0, 2}), "column 8: row 2 of a block of 2")
	text := NewVector(memory.DefaultAllocator, arrow.BinaryTypes.String)
	err = r.Append(text, 8, 0, 2)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "column 8: corrupt block: chunk of type tag 12 read as utf8, tag 27")
	require.Zero(t, text.Len())
}

// forge is a sealed block of one chunk.
func forge(rows int, chunk ...byte) []byte {
	data := []byte{blockVersion}
	data = binary.LittleEndian.AppendUint32(data, uint32(rows))
	data = binary.LittleEndian.AppendUint16(data, 1)
	data = binary.LittleEndian.AppendUint32(data, 1)
	data = binary.LittleEndian.AppendUint32(data, uint32(headerBytes+entryBytes+len(chunk)))
	return seal(append(append(data, chunk...), make([]byte, checksumBytes)...))
}

// TestFewBytesCannotAskForMuchMemory: what a forged chunk says it holds is
// refused before room is made for it.
func TestFewBytesCannotAskForMuchMemory(t *testing.T) {
	constantText := append([]byte{27, encConstant}, make([]byte, 100)...)
	lists := []byte{29, encList, 0, 0xFF, 7, 0, 0, 0, 0, 0, 0x80} // 2047 elements a row
	for name, c := range map[string]struct {
		dt    arrow.DataType
		chunk []byte
	}{
		"constant text": {arrow.BinaryTypes.String, constantText},
		"nulls":         {&arrow.FixedSizeBinaryType{ByteWidth: 100}, []byte{26, encNulls}},
		"empty lists":   {arrow.ListOf(arrow.PrimitiveTypes.Int64), append(lists, 5, encPacked, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		"wide lists":    {arrow.FixedSizeListOf(1000, arrow.PrimitiveTypes.Int8), []byte{30, encFixedList, 2, encConstant, 7}},
		"null structs":  {arrow.StructOf(arrow.Field{Name: "f", Type: &arrow.FixedSizeBinaryType{ByteWidth: 100}}), []byte{31, encNulls}},
		"lz4":           {&arrow.FixedSizeBinaryType{ByteWidth: 16}, []byte{26, encRawLZ4, 0x1F, 0, 1, 0, 255, 255, 0}},
	} {
		r, err := Open(forge(MaxRows, c.chunk...))
		require.NoError(t, err)
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		v := NewVector(mem, c.dt)
		err = r.Append(v, 1, 0, MaxRows)
		require.ErrorIs(t, err, ErrCorrupt, name)
		require.LessOrEqual(t, mem.CurrentAlloc(), 8*MaxRows, name)
		v.Release()
		mem.AssertSize(t, 0)
	}
}

// TestNoKeyOfAMapIsNull: arrow panics on such an array, so a block that holds
// one is refused.
func TestNoKeyOfAMapIsNull(t *testing.T) {
	dt := arrow.MapOf(arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int8)
	arr := randomArray(rand.New(rand.NewPCG(1, 1)), dt, 20, same, 0)
	data := encode(t, 20, []uint32{1}, arr)
	// The key's chunk is the first field of the entries: make it nulls.
	r, err := Open(data)
	require.NoError(t, err)
	chunk := append([]byte{}, r.chunk(0)...)
	key := len(chunk) - 2*(4+3) // two fields: length, tag, constant, value
	require.Equal(t, []byte{3, 0, 0, 0, 2, encConstant}, chunk[key:key+6])
	forged := append(append([]byte{}, chunk[:key]...), 2, 0, 0, 0, 2, encNulls)
	forged = append(forged, chunk[key+7:]...)
	r, err = Open(forge(20, forged...))
	require.NoError(t, err)
	v := NewVector(memory.DefaultAllocator, dt)
	require.ErrorIs(t, r.Append(v, 1, 0, 20), ErrCorrupt)
	require.ErrorIs(t, r.AppendRows(v, 1, []uint32{0, 3, 5, 7, 9, 11}), ErrCorrupt)
	require.Zero(t, v.Len())
}

// TestVectorKeepsItsMemory: a vector that was reset takes no more memory for
// as many rows.
func TestVectorKeepsItsMemory(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	arr := randomArray(rand.New(rand.NewPCG(1, 1)), arrow.BinaryTypes.String, 500, anyBytes, 0.3)
	v := NewVector(mem, arr.DataType())
	defer v.Release()
	v.AppendArray(arr, 0, 500)
	size, held := v.Bytes(), mem.CurrentAlloc()
	for range 3 {
		v.Reset()
		require.Zero(t, v.Bytes())
		v.AppendArray(arr, 0, 500)
		require.Equal(t, size, v.Bytes())
		require.Equal(t, held, mem.CurrentAlloc())
	}
}
