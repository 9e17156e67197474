package run

import (
	"bytes"

	"github.com/sheaf-db/sheaf/shards/block"
)

// RawBlock is one whole block as it is stored, for Writer.AddRaw: nothing of it
// is decoded. It is valid until its cursor moves.
type RawBlock struct {
	stored  storedBlock
	groups  grouping
	columns []uint32 // of all groups
	zoned   []block.Zone
}

// Columns are the ids of the columns that the block has, the engine's among them.
func (r *RawBlock) Columns() []uint32 { return r.columns }

// Rows is the number of rows, Tombstones how many of them are deletes.
func (r *RawBlock) Rows() (rows, tombstones int) {
	return int(r.stored.entry.rows), int(r.stored.entry.tombstones)
}

// Raw reads the block of the cursor's present part as it is stored; false if the
// bounds cut the part. The columns' types are those of the run's schema.
func (c *cursor) Raw(r *RawBlock) (bool, error) {
	if !c.part.Whole {
		return false, nil
	}
	return true, c.run.damaged(c.slice, c.raw(r))
}

func (c *cursor) raw(r *RawBlock) error {
	e := &c.leaf.entries[c.at]
	r.groups, r.columns, r.zoned = c.groups, r.columns[:0], r.zoned[:0]
	s := &r.stored
	s.entry, s.ids, s.groups = *e, s.ids[:0], s.groups[:0]
	if !c.run.o.PerRow {
		s.entry.least, s.entry.greatest = c.run.o.Version, c.run.o.Version
	}
	s.filter = nil
	if c.run.o.Key.Sharding > 0 {
		value, err := c.fetchFilter(e)
		if err != nil {
			return err
		}
		s.filter = bytes.Clone(value)
	}
	n := 1
	if e.all {
		n = c.groups.count()
	}
	for g := range n {
		b, err := c.group(e, g)
		if err != nil {
			return err
		}
		s.groups = append(s.groups, c.blocks.values[g])
		r.columns = append(r.columns, b.Columns()...)
	}
	for _, id := range r.columns {
		if ofEngine(id) {
			continue
		}
		zone, err := c.storedZone(id)
		if err != nil {
			return err
		}
		s.ids, r.zoned = append(s.ids, id), append(r.zoned, zone)
	}
	s.zones = r.zoned
	return nil
}

// AddRaw takes a block as Add takes its rows; false, and nothing is written, if
// the slice's blocks are grouped otherwise: then its rows have to be added. All
// rows of the run then have versions of their own.
func (w *Writer) AddRaw(slice int, r *RawBlock) (bool, error) {
	if w.err != nil {
		return false, w.err
	}
	ok, err := w.addRaw(slice, r)
	if err != nil {
		return false, w.fail(err)
	}
	return ok, nil
}

func (w *Writer) addRaw(slice int, r *RawBlock) (bool, error) {
	if err := w.begin(slice); err != nil {
		return false, err
	}
	if err := w.cut(); err != nil { // may decide the groups
		return false, err
	}
	s := w.slice
	others := r.groups.hasOthers(r.columns)
	switch {
	case !others: // group 0 only, and that is the same everywhere
	case !s.decided:
		s.decided = true
		s.groups.starts = append([]uint32(nil), r.groups.starts...)
	case !s.groups.equal(&r.groups):
		return false, nil
	}
	e := &r.stored.entry
	if err := w.versioned(true, e.least, e.greatest); err != nil {
		return false, err
	}
	e.first, e.last = bytes.Clone(e.first), bytes.Clone(e.last)
	r.stored.seal(others)
	return true, w.store(&r.stored)
}
