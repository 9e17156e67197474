package run

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// SliceRows is all rows of one slice of a run: rows that lie together, scattered
// rows, or the keys of deleted ones.
type SliceRows struct {
	Slice   int
	Keys    *key.Keys
	Columns []arrow.Array // as in AddColumns; nil: there are Refs
	Order   []uint32
	Refs    []block.Ref // as in AddRefs; unused by Deletes
	Deletes bool
}

// encodedAhead is how many slices more than there are goroutines may be encoded
// but not written: enough that an uneven slice stops nobody.
const encodedAhead = 2

// AddSlices is AddColumns, AddRefs and AddDeletes for whole slices, in increasing order,
// which up to parallel goroutines encode at a time. They have ended when it
// returns. Of each slice ahead its encoded bytes are held.
func (w *Writer) AddSlices(ctx context.Context, ids []uint32, srcs [][]arrow.Array, rows []SliceRows, parallel int) error {
	parallel = min(parallel, len(rows))
	if parallel < 2 {
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				return w.fail(err)
			}
			if err := w.addSlice(ids, srcs, r); err != nil {
				return err
			}
		}
		return nil
	}
	if w.err != nil {
		return w.err
	}
	if err := w.leave(); err != nil {
		return w.fail(err)
	}
	window := parallel + encodedAhead
	jobs := make(chan int, window)
	done := make([]chan *image, len(rows))
	for i := range done {
		done[i] = make(chan *image, 1)
	}
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			var e imager
			defer e.release()
			for i := range jobs {
				done[i] <- e.encode(w, ids, srcs, rows[i])
			}
		})
	}
	defer workers.Wait()
	defer close(jobs)
	for i, next := 0, 0; i < len(rows); i++ {
		for ; next < min(len(rows), i+window); next++ {
			jobs <- next
		}
		encoded := <-done[i]
		if err := ctx.Err(); err != nil {
			return w.fail(err)
		}
		if err := w.write(encoded); err != nil {
			return w.fail(err)
		}
	}
	return nil
}

func (w *Writer) addSlice(ids []uint32, srcs [][]arrow.Array, r SliceRows) error {
	switch {
	case r.Deletes:
		return w.AddDeletes(r.Slice, r.Keys)
	case r.Columns != nil:
		return w.AddColumns(r.Slice, r.Keys, ids, r.Columns, r.Order)
	}
	return w.AddRefs(r.Slice, r.Keys, ids, srcs, r.Refs)
}

// image is one slice as it goes into the file: names and values by turns.
type image struct {
	bytes []byte
	ends  []int
	info  Info
	err   error
}

func (m *image) set(name, value []byte) error {
	m.bytes = append(m.bytes, name...)
	m.ends = append(m.ends, len(m.bytes))
	m.bytes = append(m.bytes, value...)
	m.ends = append(m.ends, len(m.bytes))
	return nil
}

// imager is one goroutine's writer, which goes from slice to slice.
type imager struct{ w *Writer }

// encode makes the image of a slice. A bug in an encoder must not end the
// process: nobody else recovers on this goroutine.
func (e *imager) encode(of *Writer, ids []uint32, srcs [][]arrow.Array, r SliceRows) (m *image) {
	m = &image{}
	defer func() {
		if p := recover(); p != nil {
			e.w = nil // what it holds is in no known state
			m.err = fmt.Errorf("BUG: encoding slice %d of a run: %v\n%s", r.Slice, p, debug.Stack())
		}
	}()
	if e.w == nil {
		e.w = of.part()
	}
	e.w.set, e.w.info, e.w.perRow = m.set, newInfo(), 0
	if m.err = e.w.addSlice(ids, srcs, r); m.err == nil {
		m.err = e.w.leave()
	}
	m.info = e.w.info
	return m
}

func (e *imager) release() {
	if e.w != nil {
		e.w.pending.release()
	}
}

// write adds a slice that was encoded apart.
func (w *Writer) write(m *image) error {
	if m.err != nil || len(m.ends) == 0 {
		return m.err
	}
	if err := w.versioned(m.info.PerRow, m.info.Least, m.info.Greatest); err != nil {
		return err
	}
	start := 0
	for i := 0; i < len(m.ends); i += 2 {
		if err := w.set(m.bytes[start:m.ends[i]], m.bytes[m.ends[i]:m.ends[i+1]]); err != nil {
			return err
		}
		start = m.ends[i+1]
	}
	w.info.Slices = append(w.info.Slices, m.info.Slices...)
	return nil
}
