package run

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// ofEngine is true for the columns that no schema names.
func ofEngine(id uint32) bool { return id == block.ColumnCommit || id == block.ColumnTombstone }

// typeOf is the current type of a column, the engine's own included.
func typeOf(types Types, id uint32) (arrow.DataType, bool) {
	switch id {
	case block.ColumnCommit:
		return arrow.PrimitiveTypes.Uint64, true
	case block.ColumnTombstone:
		return arrow.FixedWidthTypes.Boolean, true
	}
	return types(id)
}

func (c *cursor) Keys(dst *key.Keys) error {
	b, err := c.group(&c.leaf.entries[c.at], 0)
	if err == nil {
		err = c.locate.encode(dst, b, c.window.lo, c.window.hi)
	}
	return c.run.damaged(c.slice, err)
}

func (c *cursor) Append(v *block.Vector, id uint32, lo, hi int) error {
	stored := c.stored(id)
	if stored == nil { // added later
		v.AppendNulls(hi - lo)
		return nil
	}
	b, err := c.holding(id)
	if err != nil {
		return err
	}
	if b == nil {
		c.leftOut(v, id, hi-lo)
		return nil
	}
	return c.run.damaged(c.slice, c.wide.Append(v, b, id, stored, c.window.lo+lo, c.window.lo+hi))
}

func (c *cursor) AppendRows(v *block.Vector, id uint32, rows []uint32) error {
	stored := c.stored(id)
	if stored == nil {
		v.AppendNulls(len(rows))
		return nil
	}
	b, err := c.holding(id)
	if err != nil {
		return err
	}
	if b == nil {
		c.leftOut(v, id, len(rows))
		return nil
	}
	if lo := uint32(c.window.lo); lo > 0 {
		c.rows = append(c.rows[:0], rows...)
		for i := range c.rows {
			c.rows[i] += lo
		}
		rows = c.rows
	}
	return c.run.damaged(c.slice, c.wide.AppendRows(v, b, id, stored, rows))
}

// leftOut appends n rows of a column that the block does not hold: nulls, or
// versions that are all the same, or no deletes.
func (c *cursor) leftOut(v *block.Vector, id uint32, n int) {
	if !ofEngine(id) {
		v.AppendNulls(n)
		return
	}
	version, _ := c.versions(&c.leaf.entries[c.at])
	c.fill.append(v, id, version, n)
}

// Codes is block.Reader.Codes of the part's rows, of a column that is stored as
// its current type.
func (c *cursor) Codes(v *block.Vector, codes []uint32, id uint32) ([]uint32, bool, error) {
	stored := c.stored(id)
	if ofEngine(id) || stored == nil || !sameType(stored, v.Type()) {
		return codes, false, nil
	}
	b, err := c.holding(id)
	if err != nil || b == nil {
		return codes, false, err
	}
	codes, ok, err := b.Codes(v, codes, id, c.window.lo, c.window.hi)
	return codes, ok, c.run.damaged(c.slice, err)
}

// stored is the type that a column was written with; nil: it did not exist.
func (c *cursor) stored(id uint32) arrow.DataType {
	if t, ok := typeOf(c.run.o.Stored, id); ok {
		return t
	}
	return nil
}

// filler gives the engine's columns of blocks that do not hold them: all rows
// have one version and none is a delete.
type filler struct {
	mem     memory.Allocator
	of      uint64      // what version holds
	version arrow.Array // of fillRows times of
	alive   arrow.Array // of fillRows times false
}

const fillRows = 1024

func (f *filler) append(v *block.Vector, id uint32, version uint64, n int) {
	var from arrow.Array
	if id == block.ColumnTombstone {
		from = f.falses()
	} else {
		from = f.versions(version)
	}
	for ; n > 0; n -= fillRows {
		v.AppendArray(from, 0, min(n, fillRows))
	}
}

func (f *filler) versions(version uint64) arrow.Array {
	if f.version != nil && f.of != version {
		f.version.Release()
		f.version = nil
	}
	if f.version == nil {
		f.of = version
		b := array.NewUint64Builder(f.mem)
		defer b.Release()
		b.Reserve(fillRows)
		for range fillRows {
			b.UnsafeAppend(version)
		}
		f.version = b.NewArray()
	}
	return f.version
}

func (f *filler) falses() arrow.Array {
	if f.alive == nil {
		b := array.NewBooleanBuilder(f.mem)
		defer b.Release()
		b.Reserve(fillRows)
		for range fillRows {
			b.UnsafeAppend(false)
		}
		f.alive = b.NewArray()
	}
	return f.alive
}

func (f *filler) release() {
	for _, a := range []arrow.Array{f.version, f.alive} {
		if a != nil {
			a.Release()
		}
	}
	f.version, f.alive = nil, nil
}
