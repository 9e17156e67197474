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

// Load fetches the payloads that the part points into.
func (c *deltaCursor) Load() (rows int, err error) {
	if c.held > heldPayloads {
		c.payloads, c.held = nil, 0
	}
	if c.payloads == nil {
		c.payloads = map[uint64]*payload{}
	}
	for i, version := range c.versions {
		if c.rows[i] == deletedRow {
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
	for at := lo; at < hi; {
		end := at + 1
		for end < hi && c.together(at, end) {
			end++
		}
		c.picks = c.picks[:0]
		for i := at; i < end; i++ {
			c.picks = append(c.picks, uint32(i))
		}
		if err := c.appendGroup(v, id, c.picks); err != nil {
			return c.failed(err)
		}
		at = end
	}
	return nil
}

// AppendRows appends some rows of one column to v.
func (c *deltaCursor) AppendRows(v *block.Vector, id uint32, rows []uint32) error {
	for at := 0; at < len(rows); {
		end := at + 1
		for end < len(rows) && c.together(int(rows[at]), int(rows[end])) {
			end++
		}
		c.picks = append(c.picks[:0], rows[at:end]...)
		if err := c.appendGroup(v, id, c.picks); err != nil {
			return c.failed(err)
		}
		at = end
	}
	return nil
}

// together reports whether two rows come from one place, so that one call
// appends them.
func (c *deltaCursor) together(a, b int) bool {
	return (c.rows[a] == deletedRow) == (c.rows[b] == deletedRow) &&
		(c.rows[a] == deletedRow || c.versions[a] == c.versions[b])
}

// appendGroup appends rows of the part that lie together; it uses up rows.
func (c *deltaCursor) appendGroup(v *block.Vector, id uint32, rows []uint32) error {
	first := rows[0]
	deleted := c.rows[first] == deletedRow
	switch {
	case id == block.ColumnCommit:
		appendNumbers(v, c.versions, rows)
		return nil
	case id == block.ColumnTombstone:
		appendBools(v, deleted, len(rows))
		return nil
	case deleted:
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
	c.payloads = nil
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
