package run

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

func TestRowsThatLieScatteredAreWrittenLikeRowsInOrder(t *testing.T) {
	b := newBed(t)
	rows := numbered("a", 0, 100, 1, 1)
	for i := range rows {
		rows[i].note = ptr(strings.Repeat("x", i))
	}
	ids := allColumns
	// Three batches, rows dealt out at random.
	rng := rand.New(rand.NewPCG(1, 1))
	dealt := make([][]row, 3)
	refs := make([]block.Ref, len(rows))
	for i, r := range rows {
		n := rng.IntN(3)
		refs[i] = block.Ref{Batch: uint32(n), Row: uint32(len(dealt[n]))}
		dealt[n] = append(dealt[n], r)
	}
	srcs := make([][]arrow.Array, len(ids))
	for _, batch := range dealt {
		for c, arr := range columnsOf(b.mem, typesNow, ids, batch) {
			srcs[c] = append(srcs[c], arr)
			defer arr.Release()
		}
	}
	w := b.writer()
	require.NoError(t, w.AddRefs(3, keysOf(rows[:60]), ids, srcs, refs[:60]))
	require.NoError(t, w.AddRefs(3, keysOf(rows[60:]), ids, srcs, refs[60:]))
	scattered := b.values(b.ingest(w, typesNow, 1))
	ordered := b.values(b.run(rows, typesNow, false))
	require.Equal(t, len(ordered), len(scattered))
	for i := range ordered {
		require.Equal(t, ordered[i].value, scattered[i].value)
	}
}

func TestInfoSaysWhatARunHolds(t *testing.T) {
	b := newBed(t)
	w := b.writer()
	dead := numbered("a", 0, 5, 0, 1)
	require.NoError(t, w.AddDeletes(2, keysOf(dead)))
	live := numbered("b", 0, 10, 1, 1)
	cols := columnsOf(b.mem, typesNow, allColumns, live)
	defer releaseAll(cols)
	require.NoError(t, w.Add(7, keysOf(live), allColumns, cols))
	info, err := w.Finish()
	require.NoError(t, err)
	require.False(t, info.PerRow)
	require.Len(t, info.Slices, 2)
	first, second := info.Slices[0], info.Slices[1]
	require.Equal(t, []uint64{5, 5, 2}, []uint64{first.Rows, first.Tombstones, uint64(first.Blocks)})
	require.Equal(t, []uint64{10, 0, 3}, []uint64{second.Rows, second.Tombstones, uint64(second.Blocks)})
	require.Equal(t, live[0].key(), string(second.First))
	require.Equal(t, live[9].key(), string(second.Last))
	require.Equal(t, []int{2, 7}, []int{first.Slice, second.Slice})
	stat, err := b.fs.Stat(b.file(w.o.Run))
	require.NoError(t, err)
	require.EqualValues(t, stat.Size(), info.Bytes)
	require.Greater(t, info.Bytes, first.Bytes+second.Bytes)

	require.NoError(t, b.db.Ingest(t.Context(), []string{b.file(w.o.Run)}))
	r := b.open(w.o.Run, info, typesNow, 9)
	got, _ := b.scan(Request{Tombstones: true, Columns: []uint32{colSort, colNum, block.ColumnCommit, block.ColumnTombstone}}, r.Source(2))
	require.Len(t, got, 5)
	require.Equal(t, "0|null|9|true", got[0])
}

func TestEveryValueHasABlockOfPebblesOfItsOwn(t *testing.T) {
	b := newBed(t)
	r := b.run(numbered("a", 0, 100, 1, 1), typesNow, false)
	names, err := b.fs.List("db")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := b.fs.Open("db/" + name)
		require.NoError(t, err)
		readable, err := sstable.NewSimpleReadable(f)
		require.NoError(t, err)
		reader, err := sstable.NewReader(t.Context(), readable, sstable.ReaderOptions{})
		require.NoError(t, err)
		format, err := reader.TableFormat()
		require.NoError(t, err)
		require.Equal(t, sstable.TableFormatPebblev4, format)
		props, err := reader.ReadPropertiesBlock(t.Context(), nil)
		require.NoError(t, err)
		require.EqualValues(t, len(b.values(r)), props.NumDataBlocks)
		require.Equal(t, "NoCompression", props.CompressionName)
		require.Zero(t, props.NumValueBlocks)
		require.NoError(t, reader.Close())
	}
}

// sized are rows whose notes take so many bytes.
func sized(bytes ...int) []row {
	var rows []row
	for i, n := range bytes {
		rows = append(rows, row{shard: "a", sort: int64(i), note: ptr(strings.Repeat("x", n)), version: 1})
	}
	return rows
}

func TestBlocksAreBoundedInBytes(t *testing.T) {
	b := newBed(t)
	b.blockRows = limits.BlockRows
	half, most := limits.BlockBytes/2, limits.BlockBytes
	for _, c := range []struct {
		bytes  []int
		blocks int
	}{
		{[]int{half, half, half}, 3},
		{[]int{half - 200, half - 200, half}, 2},
		{[]int{1, 1, 3 * most, 1, 1}, 3},
		{[]int{most, most}, 2},
		{make([]int, 2*limits.BlockRows+1), 3},
	} {
		w := b.writer()
		rows := sized(c.bytes...)
		cols := columnsOf(b.mem, typesNow, allColumns, rows)
		require.NoError(t, w.Add(0, keysOf(rows), allColumns, cols))
		releaseAll(cols)
		info, err := w.Finish()
		require.NoError(t, err)
		require.Equal(t, c.blocks, info.Slices[0].Blocks, "%d rows", len(rows))
	}
}

func TestPlainBytesOfEveryShape(t *testing.T) {
	mem := memory.DefaultAllocator
	for _, c := range []struct {
		dt   arrow.DataType
		json string
		want int64 // of rows 1 and 2
	}{
		{arrow.Null, `[null, null, null]`, 0},
		{arrow.FixedWidthTypes.Boolean, `[true, false, true]`, 0},
		{arrow.PrimitiveTypes.Int32, `[1, 2, 3]`, 8},
		{arrow.BinaryTypes.String, `["aaa", "bb", "c"]`, 8 + 3},
		{arrow.BinaryTypes.Binary, `["AAAA", "AAAA", "AAAA"]`, 8 + 6},
		{arrow.ListOf(arrow.PrimitiveTypes.Int16), `[[1], [2, 3], [4]]`, 8 + 6},
		{arrow.ListOf(arrow.BinaryTypes.String), `[["a"], ["b", "cc"], []]`, 8 + 8 + 3},
		{arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), `[["a", "a"], ["b", "b"], ["c", "cc"]]`, 16 + 5},
		{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int8), `[[1, 2], [1, 2], [1, 2]]`, 4},
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String}), `[{"x": 1, "y": "a"}, {"x": 1, "y": "bb"}, {"x": 1, "y": ""}]`, 16 + 8 + 2},
		{arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int32), `[[], [{"key": 1, "value": 2}], []]`, 8 + 8},
	} {
		arr, _, err := array.FromJSON(mem, c.dt, strings.NewReader(c.json))
		require.NoError(t, err)
		require.Equal(t, c.want, plainBytes(arr, 1, 3), "%s", c.dt)
		require.Equal(t, int64(0), plainBytes(arr, 2, 2))
		part := array.NewSlice(arr, 1, 3)
		require.Equal(t, c.want, plainBytes(part, 0, 2), "%s sliced", c.dt)
	}
}

func TestMistakesOfTheProgramAreErrors(t *testing.T) {
	b := newBed(t)
	rows := numbered("a", 0, 4, 1, 1)
	cols := columnsOf(b.mem, typesNow, allColumns, rows)
	defer releaseAll(cols)
	versioned := append(append([]uint32{}, allColumns...), block.ColumnCommit)
	more := columnsOf(b.mem, typesNow, versioned, rows)
	defer releaseAll(more)
	for name, add := range map[string]func(w *Writer) error{
		"keys in disorder": func(w *Writer) error {
			var keys key.Keys
			for _, i := range []int{0, 2, 1, 3} {
				keys.Append([]byte(rows[i].key()))
			}
			return w.Add(0, &keys, allColumns, cols)
		},
		"a key twice": func(w *Writer) error {
			if err := w.Add(0, keysOf(rows), allColumns, cols); err != nil {
				return err
			}
			return w.Add(0, keysOf(rows), allColumns, cols)
		},
		"slices in disorder": func(w *Writer) error {
			if err := w.Add(1, keysOf(rows), allColumns, cols); err != nil {
				return err
			}
			return w.Add(0, keysOf(rows), allColumns, cols)
		},
		"no such slice": func(w *Writer) error { return w.Add(limits.MaxSlices, keysOf(rows), allColumns, cols) },
		"fewer columns": func(w *Writer) error { return w.Add(0, keysOf(rows), allColumns, cols[:2]) },
		"versions for some": func(w *Writer) error {
			if err := w.Add(0, keysOf(rows), allColumns, cols); err != nil {
				return err
			}
			return w.Add(1, keysOf(rows), versioned, more)
		},
		"no rows": func(*Writer) error { return nil },
	} {
		w := b.writer()
		err := add(w)
		_, finished := w.Finish()
		require.Error(t, finished, name)
		if err != nil {
			require.ErrorIs(t, finished, err)
		}
		w.Abort()
	}
}

func TestTheSameRowsGiveTheSameBytes(t *testing.T) {
	write := func() []byte {
		fs := vfs.NewMem()
		f, err := fs.Create("x", vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		w := NewWriter(WriterOptions{File: objstorageprovider.NewFileWritable(f), Table: 1, Run: 1, Key: testKey})
		for slice := range 3 {
			rows := numbered(fmt.Sprint("a", slice), 0, 3000, 1, 1)
			cols := columnsOf(memory.DefaultAllocator, typesNow, allColumns, rows)
			require.NoError(t, w.Add(slice, keysOf(rows), allColumns, cols))
		}
		info, err := w.Finish()
		require.NoError(t, err)
		f, err = fs.Open("x")
		require.NoError(t, err)
		data := make([]byte, info.Bytes)
		_, err = f.ReadAt(data, 0)
		require.NoError(t, err)
		return data
	}
	require.True(t, bytes.Equal(write(), write()))
}
