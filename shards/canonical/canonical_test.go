package canonical

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// checkPromises fails unless the data keeps what the package comment promises.
func checkPromises(t *testing.T, data arrow.ArrayData, path string) {
	t.Helper()
	dt, rows := data.DataType(), data.Len()
	require.Zero(t, data.Offset(), path)
	size := func(i, want int) {
		require.NotNil(t, data.Buffers()[i], path)
		require.Equal(t, want, data.Buffers()[i].Len(), "%s: buffer %d of %s", path, i, dt)
	}
	if dt.ID() == arrow.NULL {
		require.Equal(t, rows, data.NullN(), path)
		return
	}
	if data.NullN() == 0 {
		require.Nil(t, data.Buffers()[0], path)
	} else {
		size(0, bitmapBytes(rows))
		require.Equal(t, data.NullN(), rows-bitutil.CountSetBits(data.Buffers()[0].Bytes(), 0, rows), path)
		require.Equal(t, rows-data.NullN(), bitutil.CountSetBits(data.Buffers()[0].Bytes(), 0, 8*bitmapBytes(rows)), "bits behind the last of %s", path)
	}
	children := rows
	switch dt := dt.(type) {
	case *arrow.StructType:
	case *arrow.FixedSizeListType:
		children = rows * int(dt.Len())
	case *arrow.BooleanType:
		size(1, bitmapBytes(rows))
	case *arrow.StringType, *arrow.BinaryType, *arrow.ListType, *arrow.MapType:
		size(1, 4*(rows+1))
		offsets := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())
		require.Zero(t, offsets[0], path)
		if children = int(offsets[rows]); len(data.Children()) == 0 {
			size(2, children)
		}
	default:
		width, ok := elementWidth(dt)
		require.True(t, ok, "%s: %s", path, dt)
		size(1, width*rows)
	}
	require.Len(t, data.Children(), len(Children(dt)), path)
	for i, child := range data.Children() {
		require.Equal(t, children, child.Len(), "%s: child %d of %s", path, i, dt)
		require.True(t, arrow.TypeEqual(Children(dt)[i], child.DataType()), "%s: child %d of %s is %s", path, i, dt, child.DataType())
		checkPromises(t, child, path+"/"+childName(dt, i))
	}
}

// roundTrip normalizes and restores, comparing values at each step.
func roundTrip(t *testing.T, mem memory.Allocator, arr arrow.Array, values []any) {
	t.Helper()
	require.NoError(t, CheckType(arr.DataType()))
	normal, err := Normalize(mem, arr)
	require.NoError(t, err)
	defer normal.Release()
	require.True(t, arrow.TypeEqual(Type(arr.DataType()), normal.DataType()), "%s, not %s", normal.DataType(), Type(arr.DataType()))
	checkPromises(t, normal.Data(), "")
	require.NoError(t, Check(normal))
	require.Equal(t, values, readAll(normal))

	restored, err := Restore(mem, normal, arr.DataType())
	require.NoError(t, err)
	defer restored.Release()
	require.True(t, arrow.TypeEqual(arr.DataType(), restored.DataType()))
	require.NoError(t, Check(restored))
	require.Equal(t, values, readAll(restored))

	again, err := Normalize(mem, restored)
	require.NoError(t, err)
	defer again.Release()
	require.Equal(t, values, readAll(again))

	from, to := len(values)/3, len(values)-len(values)/4
	part := array.NewSlice(normal, int64(from), int64(to))
	defer part.Release()
	restoredPart, err := Restore(mem, part, arr.DataType())
	require.NoError(t, err)
	defer restoredPart.Release()
	require.Equal(t, values[from:to], readAll(restoredPart))
	cutPart, err := Normalize(mem, part)
	require.NoError(t, err)
	defer cutPart.Release()
	checkPromises(t, cutPart.Data(), "")
}

func TestEveryTypeRoundTrips(t *testing.T) {
	types := append([]arrow.DataType{}, flatTypes...)
	f := newForeign(7, memory.DefaultAllocator)
	for _, nest := range nestings {
		for range 4 {
			types = append(types, nest(f, 1))
		}
	}
	for _, index := range indexTypes {
		types = append(types, &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String})
	}
	for i, dt := range types {
		for _, rows := range []int{0, 1, 7, 8, 9, 100} {
			t.Run(fmt.Sprintf("%s/%d", dt, rows), func(t *testing.T) {
				mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
				defer mem.AssertSize(t, 0)
				f := newForeign(uint64(i), mem)
				values := f.values(dt, rows)
				arr := f.array(dt, values)
				defer arr.Release()
				require.Equal(t, values, readAll(arr), "the test's own array")
				roundTrip(t, mem, arr, values)
			})
		}
	}
}

func TestRandomNestedTypesRoundTrip(t *testing.T) {
	for seed := range uint64(600) {
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		f := newForeign(seed, mem)
		dt := f.dataType(4)
		values := f.values(dt, f.rng.IntN(40))
		arr := f.array(dt, values)
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			roundTrip(t, mem, arr, values)
			from := f.rng.IntN(len(values) + 1)
			to := from + f.rng.IntN(len(values)-from+1)
			part := array.NewSlice(arr, int64(from), int64(to))
			defer part.Release()
			roundTrip(t, mem, part, values[from:to])
		})
		arr.Release()
		if ok {
			mem.AssertSize(t, 0)
		} else {
			t.Logf("seed %d: %s", seed, dt)
		}
	}
}

func TestDictionaryValuesComeInOrderOfFirstUse(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	f := newForeign(1, mem)
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.LargeString}
	arr := f.array(dt, []any{nil, "b", "a", "b", nil, "c"})
	defer arr.Release()
	normal, err := Normalize(mem, arr)
	require.NoError(t, err)
	defer normal.Release()
	restored, err := Restore(mem, normal, dt)
	require.NoError(t, err)
	defer restored.Release()
	require.Equal(t, []any{"b", "a", "c"}, readAll(restored.(*array.Dictionary).Dictionary()))
	require.Equal(t, 2, restored.NullN())
}

func TestDictionaryFullSaysHowManyRowsFit(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	builder := array.NewInt64Builder(mem)
	defer builder.Release()
	builder.AppendNull()
	for i := range int64(300) {
		builder.Append(i / 2)
	}
	arr := builder.NewArray()
	defer arr.Release()
	for _, limit := range []struct {
		index arrow.DataType
		rows  int
	}{{arrow.PrimitiveTypes.Int8, 1 + 2*128}, {arrow.PrimitiveTypes.Uint8, 301}} {
		dt := &arrow.DictionaryType{IndexType: limit.index, ValueType: arrow.PrimitiveTypes.Int64}
		restored, err := Restore(mem, arr, dt)
		if limit.rows == arr.Len() {
			require.NoError(t, err)
			restored.Release()
			continue
		}
		var full *DictionaryFull
		require.ErrorAs(t, err, &full)
		require.Equal(t, limit.rows, full.Rows)
		require.ErrorContains(t, err, "dictionary")
		part := array.NewSlice(arr, 0, int64(full.Rows))
		restored, err = Restore(mem, part, dt)
		require.NoError(t, err)
		restored.Release()
		part.Release()
	}
}

func TestRunEndsTooNarrowForTheRows(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	builder := array.NewBooleanBuilder(mem)
	defer builder.Release()
	builder.AppendEmptyValues(40_000)
	arr := builder.NewArray()
	defer arr.Release()
	_, err := Restore(mem, arr, arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, arrow.FixedWidthTypes.Boolean))
	var full *DictionaryFull
	require.True(t, errors.As(err, &full))
	require.Equal(t, 32767, full.Rows)
	restored, err := Restore(mem, arr, arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.Boolean))
	require.NoError(t, err)
	defer restored.Release()
	require.Equal(t, 1, restored.(*array.RunEndEncoded).GetPhysicalLength())
}
