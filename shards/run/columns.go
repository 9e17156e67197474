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
	return c.run.damaged(c.slice, c.locate.encode(dst, &c.block, c.window.lo, c.window.hi))
}

func (c *cursor) Append(v *block.Vector, id uint32, lo, hi int) error {
	if ofEngine(id) && !c.block.Has(id) {
		c.fill.append(v, id, c.run.o.Version, hi-lo)
		return nil
	}
	return c.run.damaged(c.slice, c.wide.Append(v, &c.block, id, c.stored(id), c.window.lo+lo, c.window.lo+hi))
}

func (c *cursor) AppendRows(v *block.Vector, id uint32, rows []uint32) error {
	if ofEngine(id) && !c.block.Has(id) {
		c.fill.append(v, id, c.run.o.Version, len(rows))
		return nil
	}
	if lo := uint32(c.window.lo); lo > 0 {
		c.rows = append(c.rows[:0], rows...)
		for i := range c.rows {
			c.rows[i] += lo
		}
		rows = c.rows
	}
	return c.run.damaged(c.slice, c.wide.AppendRows(v, &c.block, id, c.stored(id), rows))
}

// Codes is block.Reader.Codes of the part's rows, of a column that is stored as
// its current type.
func (c *cursor) Codes(v *block.Vector, codes []uint32, id uint32) ([]uint32, bool, error) {
	stored := c.stored(id)
	if ofEngine(id) || stored == nil || !sameType(stored, v.Type()) || !c.block.Has(id) {
		return codes, false, nil
	}
	codes, ok, err := c.block.Codes(v, codes, id, c.window.lo, c.window.hi)
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
// have the run's version and none is a delete.
type filler struct {
	mem     memory.Allocator
	version arrow.Array // of fillRows times the version
	alive   arrow.Array // of fillRows times false
}

const fillRows = 1024

func (f *filler) append(v *block.Vector, id uint32, version uint64, n int) {
	from := f.versions(version)
	if id == block.ColumnTombstone {
		from = f.falses()
	}
	for ; n > 0; n -= fillRows {
		v.AppendArray(from, 0, min(n, fillRows))
	}
}

func (f *filler) versions(version uint64) arrow.Array {
	if f.version == nil {
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

func (f *filler) versionZone(version uint64) block.Zone { return block.ZoneOf(f.versions(version)) }

func (f *filler) release() {
	for _, a := range []arrow.Array{f.version, f.alive} {
		if a != nil {
			a.Release()
		}
	}
	f.version, f.alive = nil, nil
}
