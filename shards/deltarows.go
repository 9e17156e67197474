package shards

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// Zone knows nothing: the delta has no zone maps.
func (c *deltaCursor) Zone(uint32) (block.Zone, bool, error) { return block.Zone{}, false, nil }

// Load fetches the payloads that the part points into, and notes for each row which
// of them it is in.
func (c *deltaCursor) Load() (rows int, err error) {
	if c.held > heldPayloads {
		c.payloads, c.held = nil, 0
	}
	if c.payloads == nil {
		c.payloads = map[uint64]*payload{}
	}
	c.places.reset()
	for i, version := range c.versions {
		if c.rows[i] == deletedRow {
			c.places.add(deletedPlace)
			continue
		}
		p := c.payloads[version]
		if p == nil {
			if p = c.source.shelf.get(c.source.generation, version); p == nil {
				if p, err = c.fetch(version); err != nil {
					return 0, c.failed(err)
				}
				c.source.shelf.put(c.source.generation, version, p)
			}
			c.payloads[version] = p
			c.held += p.size
		}
		if int(c.rows[i]) >= p.reader.Rows() {
			return 0, c.failed(block.ErrCorrupt)
		}
		c.places.add(version)
	}
	return len(c.rows), nil
}

func (c *deltaCursor) fetch(version uint64) (*payload, error) {
	t := c.source.table
	value, closer, err := t.store.db.Get(layout.AppendDeltaPayload(nil, c.prefix, version))
	if err == pebble.ErrNotFound {
		return nil, fault.New(fault.DataLoss, "DELTA_PAYLOAD_MISSING",
			"%s, slice %d: the rows of commit %d are not on disk; run sheaf doctor", t.label(), c.source.generation.slice, version)
	}
	if err != nil {
		return nil, err
	}
	// Blocks must stay valid, Pebble's values do not.
	copied := append(make([]byte, 0, len(value)), value...)
	closer.Close()
	number, data, err := splitPayload(copied)
	if err != nil {
		return nil, err
	}
	p := &payload{size: len(copied)}
	if p.schema, err = t.schemaVersion(number); err != nil {
		return nil, err
	}
	if p.reader, err = block.Open(data); err != nil {
		return nil, err
	}
	if c.o.Counters != nil {
		c.o.Counters.BlocksRead++
		c.o.Counters.BytesRead += uint64(p.size)
	}
	return p, nil
}

// Keys appends the keys of the part.
func (c *deltaCursor) Keys(dst *key.Keys) error {
	dst.Grow(c.keys.Len(), len(c.keys.Data))
	for i := range c.keys.Len() {
		dst.Append(c.keys.At(i))
	}
	return nil
}

// Append appends rows [lo, hi) of one column to v.
func (c *deltaCursor) Append(v *block.Vector, id uint32, lo, hi int) error {
	c.picks = c.picks[:0]
	for i := lo; i < hi; i++ {
		c.picks = append(c.picks, uint32(i))
	}
	return c.failed(c.appendRows(v, id, c.picks))
}

// AppendRows appends some rows of one column to v.
func (c *deltaCursor) AppendRows(v *block.Vector, id uint32, rows []uint32) error {
	c.picks = append(c.picks[:0], rows...)
	return c.failed(c.appendRows(v, id, c.picks))
}

// appendRows appends rows of the part; it uses them up. Neighbours in key order
// often lie in different payloads, and a call for each would decode the same text
// again and again. Then the rows of each payload are decoded in one go, and put in
// order afterwards.
func (c *deltaCursor) appendRows(v *block.Vector, id uint32, rows []uint32) error {
	switch id {
	case block.ColumnCommit:
		appendNumbers(v, c.versions, rows)
		return nil
	case block.ColumnTombstone:
		return c.eachStretch(rows, func(rows []uint32) error {
			appendBools(v, c.rows[rows[0]] == deletedRow, len(rows))
			return nil
		})
	}
	if !c.places.scattered(rows) {
		return c.eachStretch(rows, func(rows []uint32) error { return c.appendGroup(v, id, rows) })
	}
	gathered := c.scratch(v.Type())
	defer gathered.Reset()
	sorted, back := c.places.sort(rows)
	err := c.eachStretch(sorted, func(rows []uint32) error { return c.appendGroup(gathered, id, rows) })
	if err != nil {
		return err
	}
	view := gathered.View()
	defer view.Release()
	v.AppendRows(view, back)
	return nil
}

// eachStretch calls do for rows that follow each other and lie in one place; do may
// use them up.
func (c *deltaCursor) eachStretch(rows []uint32, do func(rows []uint32) error) error {
	for at := 0; at < len(rows); {
		end := at + 1
		for end < len(rows) && c.places.of[rows[at]] == c.places.of[rows[end]] {
			end++
		}
		if err := do(rows[at:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// scratch is an empty vector of a type.
func (c *deltaCursor) scratch(dt arrow.DataType) *block.Vector {
	v := c.vectors[dt]
	if v == nil {
		if c.vectors == nil {
			c.vectors = map[arrow.DataType]*block.Vector{}
		}
		v = block.NewVector(c.o.Mem, dt)
		c.vectors[dt] = v
	}
	return v
}

// appendGroup appends rows of the part that lie together; it uses up rows.
func (c *deltaCursor) appendGroup(v *block.Vector, id uint32, rows []uint32) error {
	first := rows[0]
	if c.rows[first] == deletedRow {
		return c.appendDeleted(v, id, rows)
	}
	p := c.payloads[c.versions[first]]
	if c.storedOf != p.schema || c.storedID != id { // most payloads have one schema
		c.storedOf, c.storedID = p.schema, id
		c.stored, _ = p.schema.CanonicalByID(id) // nil: the column came later
	}
	for i, row := range rows {
		rows[i] = uint32(c.rows[row])
	}
	return c.widener.AppendRows(v, &p.reader, id, c.stored, rows)
}

// appendDeleted appends deleted rows: key columns come from the key, all others
// are null.
func (c *deltaCursor) appendDeleted(v *block.Vector, id uint32, rows []uint32) error {
	at := slices.Index(c.source.table.key.IDs, id)
	if at < 0 {
		v.AppendNulls(len(rows))
		return nil
	}
	var some key.Keys
	for _, row := range rows {
		some.Append(c.keys.At(int(row)))
	}
	columns, err := key.Decode(c.o.Mem, c.source.table.key.Types, &some)
	if err != nil {
		return err
	}
	v.AppendArray(columns[at], 0, len(rows))
	releaseAll(columns)
	return nil
}

// Close closes the iterator and gives scratch memory back.
func (c *deltaCursor) Close() error {
	c.widener.Release()
	for _, v := range c.vectors {
		v.Release()
	}
	c.payloads, c.vectors = nil, nil
	if c.it == nil {
		return nil
	}
	err := c.it.Close()
	c.it = nil
	return err
}

// failed says where damaged bytes were met.
func (c *deltaCursor) failed(err error) error {
	return c.source.table.damaged(c.source.generation.slice, "the delta", err)
}

// damaged turns corruption into DATA_LOSS that names table and slice; other
// errors pass.
func (t *Table) damaged(slice int, where string, err error) error {
	if err == nil || fault.Of(err) != nil || !isCorrupt(err) {
		return err
	}
	return fault.New(fault.DataLoss, "CHECKSUM_FAILED",
		"%s, slice %d: %s is damaged on disk (%w); other slices can be read, run sheaf doctor", t.label(), slice, where, err)
}

func releaseAll(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}
