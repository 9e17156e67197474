package run

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// wholeSlices is rows of several slices, one of them deletes, over one batch.
func wholeSlices(b *bed, slices int) (srcs [][]arrow.Array, rows []SliceRows) {
	var all []row
	for slice := range slices {
		of := numbered(fmt.Sprintf("a%02d", slice), 0, 1+slice*7%40, 1, 1)
		given := SliceRows{Slice: 2 * slice, Keys: keysOf(of), Deletes: slice == 5}
		for i := range of {
			given.Refs = append(given.Refs, block.Ref{Row: uint32(len(all) + i)})
		}
		all, rows = append(all, of...), append(rows, given)
	}
	for _, arr := range columnsOf(b.mem, typesNow, allColumns, all) {
		srcs = append(srcs, []arrow.Array{arr})
		b.t.Cleanup(arr.Release)
	}
	return srcs, rows
}

func (b *bed) fileOf(write func(w *Writer) error) ([]byte, Info) {
	w := b.writer()
	require.NoError(b.t, write(w))
	info, err := w.Finish()
	require.NoError(b.t, err)
	f, err := b.fs.Open(b.file(w.o.Run))
	require.NoError(b.t, err)
	defer f.Close()
	data := make([]byte, info.Bytes)
	_, err = f.ReadAt(data, 0)
	require.NoError(b.t, err)
	return data, info
}

func TestSlicesEncodedSideBySideGiveTheSameBytes(t *testing.T) {
	b := newBed(t)
	srcs, rows := wholeSlices(b, 24)
	write := func(parallel int) ([]byte, Info) {
		b.runs = 0 // the run's number is in its keys
		return b.fileOf(func(w *Writer) error {
			return w.AddSlices(t.Context(), allColumns, srcs, rows, parallel)
		})
	}
	alone, info := write(1)
	require.Len(t, info.Slices, 24)
	for _, parallel := range []int{2, 3, 8, 100} {
		together, same := write(parallel)
		require.Equal(t, alone, together)
		require.Equal(t, info, same)
	}
}

func TestSlicesEncodedSideBySideStopAtAnError(t *testing.T) {
	b := newBed(t)
	srcs, rows := wholeSlices(b, 24)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := b.writer()
	require.ErrorIs(t, w.AddSlices(ctx, allColumns, srcs, rows, 3), context.Canceled)
	w.Abort()

	rows[7].Keys = &key.Keys{} // no keys for its rows
	w = b.writer()
	require.ErrorContains(t, w.AddSlices(t.Context(), allColumns, srcs, rows, 3), "BUG: 0 keys")
	_, err := w.Finish()
	require.ErrorContains(t, err, "BUG: 0 keys")
}

// BenchmarkSlices is the encoding of whole slices, all cores against one.
func BenchmarkSlices(b *testing.B) {
	bed := newBed(b)
	srcs, rows := wholeSlices(bed, 64)
	for _, parallel := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) {
			for range b.N {
				f, err := vfs.NewMem().Create("x", vfs.WriteCategoryUnspecified)
				require.NoError(b, err)
				w := NewWriter(WriterOptions{Mem: bed.mem, File: objstorageprovider.NewFileWritable(f), Table: 1, Run: 1, Key: testKey})
				require.NoError(b, w.AddSlices(b.Context(), allColumns, srcs, rows, parallel))
				_, err = w.Finish()
				require.NoError(b, err)
			}
		})
	}
}
