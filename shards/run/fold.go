package run

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// FoldRequest says what a fold merges and where to.
type FoldRequest struct {
	Mem     memory.Allocator // nil: memory.DefaultAllocator
	Key     KeyColumns
	Types   Types    // of the current schema, under which the new runs are written
	Columns []uint32 // every column of it
	Slice   int
	High    []byte // only rows below this key; nil: all
	// DropTombstones: the sources hold every older version of every key, so
	// that a delete has nothing left to hide.
	DropTombstones bool
	// MaxBytes ends a run once its file is about so large; 0: one run.
	MaxBytes int64
	// Pace is called with the bytes read and written since the call before, and
	// may wait; its error ends the fold. nil: none.
	Pace func(ctx context.Context, bytes uint64) error
	// Create starts the next run.
	Create func() (*Writer, error)
}

// Fold merges the sources of one slice, newest first, into new runs in key
// order, each row with its version. If no row is left there is no run. After an
// error the runs that were finished before it are worthless.
func Fold(ctx context.Context, r FoldRequest, sources []Source) ([]Info, error) {
	f := folder{r: r}
	f.ids = append(append(f.ids, r.Columns...), block.ColumnCommit)
	if !r.DropTombstones {
		f.ids = append(f.ids, block.ColumnTombstone)
	}
	for _, id := range r.Key.IDs {
		for i, column := range f.ids {
			if column == id {
				f.keyAt = append(f.keyAt, i)
				break
			}
		}
	}
	if len(f.keyAt) != len(r.Key.IDs) {
		return nil, errors.New("BUG: a fold without key columns")
	}
	scan, err := NewScan(ctx, Request{
		Mem: r.Mem, Key: r.Key, Types: r.Types, Columns: f.ids, Tombstones: !r.DropTombstones,
		Ranges: []Range{{High: r.High}},
	}, sources)
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	defer f.abort() // after an error or a panic
	for {
		b, err := scan.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = f.write(b)
		}
		if err == nil {
			err = f.pace(ctx, scan.Counters().BytesRead)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	return f.infos, nil
}

// folder writes a fold's batches.
type folder struct {
	r     FoldRequest
	ids   []uint32
	keyAt []int // places of the key columns
	keys  key.Keys
	w     *Writer
	infos []Info
	moved uint64 // bytes read and written so far
	done  uint64 // bytes of finished runs
}

// pace tells how many bytes were moved, at most once in paceBytes.
func (f *folder) pace(ctx context.Context, read uint64) error {
	if f.r.Pace == nil {
		return nil
	}
	moved := read + f.done
	if f.w != nil {
		moved += f.w.Bytes()
	}
	if moved < f.moved+paceBytes {
		return nil
	}
	n := moved - f.moved
	f.moved = moved
	return f.r.Pace(ctx, n)
}

// paceBytes: a fold waits for its bytes about so many at a time.
const paceBytes = 256 << 10

func (f *folder) write(b *Batch) error {
	defer b.Release()
	cols := make([]arrow.Array, len(f.keyAt))
	for i, at := range f.keyAt {
		cols[i] = b.Columns[at]
	}
	f.keys.Reset()
	if err := key.Encode(&f.keys, cols); err != nil {
		return err
	}
	if f.w != nil && f.r.MaxBytes > 0 && f.w.Bytes() >= uint64(f.r.MaxBytes) {
		if err := f.finish(); err != nil {
			return err
		}
	}
	if f.w == nil {
		w, err := f.r.Create()
		if err != nil {
			return err
		}
		f.w = w
	}
	return f.w.Add(f.r.Slice, &f.keys, f.ids, b.Columns)
}

func (f *folder) finish() error {
	if f.w == nil {
		return nil
	}
	w := f.w
	f.w = nil
	info, err := w.Finish()
	if err != nil {
		return err
	}
	f.done += info.Bytes
	f.infos = append(f.infos, info)
	return nil
}

func (f *folder) abort() {
	if f.w != nil {
		f.w.Abort()
		f.w = nil
	}
}
