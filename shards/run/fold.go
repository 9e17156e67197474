package run

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/limits"
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
	// Raw says of each source whether its blocks may be passed on as they are
	// stored: they are as dense as folds make them, each row with its version or
	// all with the block's, and their columns have the types of Types or are
	// missing. nil: none.
	Raw []bool
	// Passed, if not nil, is increased by the blocks passed on.
	Passed *uint64
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
		Ranges: []Range{{High: r.High}}, Verify: true,
	}, sources)
	if err != nil {
		return nil, err
	}
	defer scan.Close()
	f.scan = scan
	if r.Raw != nil {
		scan.pass = f.pass
	}
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
	scan  *Scan
	raw   RawBlock
	even  int // rows that two blocks share evenly, if just they come; 0: none
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
	if err := f.open(); err != nil {
		return err
	}
	even := f.even
	f.even = 0
	if even == 0 || f.w.pending.rows()+b.Rows != even {
		return f.w.Add(f.r.Slice, &f.keys, f.ids, b.Columns)
	}
	most := f.w.pending.most
	f.w.pending.most = max((even+1)/2, f.w.pending.rows()) // large rows may be few
	defer func() { f.w.pending.most = most }()
	if err := f.w.Add(f.r.Slice, &f.keys, f.ids, b.Columns); err != nil {
		return err
	}
	return f.w.cut()
}

// open makes sure that a run takes what comes next.
func (f *folder) open() error {
	if f.w != nil && f.r.MaxBytes > 0 && f.w.Bytes() >= uint64(f.r.MaxBytes) {
		if err := f.finish(); err != nil {
			return err
		}
	}
	if f.w != nil {
		return nil
	}
	w, err := f.r.Create()
	if err != nil {
		return err
	}
	f.w = w
	return nil
}

// pass takes a part that is alone in its key range as it is stored, if it is a
// block of its own that nothing has to be left out of. What is pending before it
// becomes a block; where that would be a small one, its rows and the part's are
// shared out evenly to two blocks, so that the parts behind can be passed on.
func (f *folder) pass(t *slot) (done bool, err error) {
	c, ok := t.cur.(interface{ Raw(*RawBlock) (bool, error) })
	p := t.part
	switch {
	case !ok || !f.r.Raw[t.number] || !p.Whole || p.Tombstones > 0 && f.r.DropTombstones:
		return false, nil
	case p.Rows < limits.BlockRows/2 && p.Bytes < limits.BlockBytes/2:
		return false, nil
	case f.scan.rows > 0: // written first
		f.scan.cutNow = true
		return true, nil
	}
	if f.w != nil {
		if n := f.w.pending.rows(); n > 0 && n < limits.BlockRows/2 && f.w.pending.plain < limits.BlockBytes/2 {
			f.even = n + p.Rows
			return false, nil
		}
	}
	if err := f.open(); err != nil {
		return false, err
	}
	if ok, err := c.Raw(&f.raw); !ok || err != nil {
		return false, err
	}
	if ok, err := f.w.AddRaw(f.r.Slice, &f.raw); !ok || err != nil {
		return false, err
	}
	if f.r.Passed != nil {
		*f.r.Passed++
	}
	f.scan.heap.pop()
	if err := f.pace(f.scan.ctx, f.scan.counters.BytesRead); err != nil {
		return false, err
	}
	return true, f.scan.advance(t)
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
