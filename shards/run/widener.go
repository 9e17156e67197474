package run

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
)

// Widener appends columns of blocks that were written under an older schema
// version to vectors of the current types. One goroutine uses it; the caller
// calls Release.
type Widener struct {
	mem     memory.Allocator
	scratch map[string]*block.Vector // by the type read, as text
}

// NewWidener makes a Widener whose scratch memory comes from mem.
func NewWidener(mem memory.Allocator) *Widener { return &Widener{mem: mem} }

// Append appends rows [lo, hi) of column id of r to v. stored is the canonical
// type the column had when r was written; nil: it did not exist, and v gets
// nulls, as it does where the block leaves the column out.
func (w *Widener) Append(v *block.Vector, r *block.Reader, id uint32, stored arrow.DataType, lo, hi int) error {
	switch {
	case stored == nil || !r.Has(id):
		v.AppendNulls(hi - lo)
		return nil
	case sameType(stored, v.Type()):
		return r.Append(v, id, lo, hi)
	}
	return w.widen(v, stored, func(from *block.Vector) error { return r.Append(from, id, lo, hi) })
}

// AppendRows is Append for some rows, in any order.
func (w *Widener) AppendRows(v *block.Vector, r *block.Reader, id uint32, stored arrow.DataType, rows []uint32) error {
	switch {
	case stored == nil || !r.Has(id):
		v.AppendNulls(len(rows))
		return nil
	case sameType(stored, v.Type()):
		return r.AppendRows(v, id, rows)
	}
	return w.widen(v, stored, func(from *block.Vector) error { return r.AppendRows(from, id, rows) })
}

// sameType asks for identity first: schema versions share most types.
func sameType(a, b arrow.DataType) bool { return a == b || arrow.TypeEqual(a, b) }

func (w *Widener) widen(v *block.Vector, stored arrow.DataType, read func(*block.Vector) error) error {
	name := stored.String()
	from, ok := w.scratch[name]
	if !ok {
		from = block.NewVector(w.mem, stored)
		if w.scratch == nil {
			w.scratch = map[string]*block.Vector{}
		}
		w.scratch[name] = from
	}
	if err := read(from); err != nil {
		from.Reset()
		return err
	}
	narrow := from.NewArray()
	defer narrow.Release()
	wide, err := widen(w.mem, narrow, v.Type())
	if err != nil {
		return err
	}
	defer wide.Release()
	v.AppendArray(wide, 0, wide.Len())
	return nil
}

// Release gives scratch memory back.
func (w *Widener) Release() {
	for _, v := range w.scratch {
		v.Release()
	}
	w.scratch = nil
}
