package run

import (
	"math"
	"slices"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// memSource is rows in memory, in parts of a few rows whose bounds are wider
// than they are: what a scan may expect of a Source and no more.
type memSource struct {
	rows []row
	part int
}

func (m *memSource) Versions() (least, greatest uint64) { return 0, math.MaxUint64 }

func (m *memSource) Cursor(o CursorOptions) (Cursor, error) { return &memCursor{src: m, o: o}, nil }

type memCursor struct {
	src      *memSource
	o        CursorOptions
	todo     [][]row // parts, bounds not looked at
	all      []row
	rows     []row
	low, end []byte
}

func (c *memCursor) Seek(b Bounds) error {
	c.low, c.end = b.Low, b.High
	c.todo = nil
	for chunk := range slices.Chunk(c.src.rows, c.src.part) {
		first, last := chunk[0].key(), chunk[len(chunk)-1].key()
		if (b.High == nil || first < string(b.High)) && last >= string(b.Low) {
			c.todo = append(c.todo, chunk)
		}
	}
	if c.o.Desc {
		slices.Reverse(c.todo)
	}
	return nil
}

func (c *memCursor) Next() (*Part, error) {
	if len(c.todo) == 0 {
		return nil, nil
	}
	c.all, c.todo = c.todo[0], c.todo[1:]
	p := &Part{
		First: []byte(c.all[0].key()), Last: []byte(c.all[len(c.all)-1].key()),
		Rows: len(c.all), Bytes: 50 * len(c.all), Greatest: math.MaxUint64,
	}
	for _, r := range c.all {
		if r.dead {
			p.Tombstones++
		}
	}
	return p, nil
}

func (c *memCursor) Zone(uint32) (block.Zone, bool, error) { return block.Zone{}, false, nil }

func (c *memCursor) Load() (int, error) {
	c.rows = nil
	for _, r := range c.all {
		if k := r.key(); k >= string(c.low) && (c.end == nil || k < string(c.end)) {
			c.rows = append(c.rows, r)
		}
	}
	return len(c.rows), nil
}

func (c *memCursor) Keys(dst *key.Keys) error {
	for _, r := range c.rows {
		dst.Append([]byte(r.key()))
	}
	return nil
}

func (c *memCursor) Append(v *block.Vector, id uint32, lo, hi int) error {
	cols := columnsOf(c.o.Mem, c.o.Types, []uint32{id}, c.rows)
	defer releaseAll(cols)
	v.AppendArray(cols[0], lo, hi)
	return nil
}

func (c *memCursor) AppendRows(v *block.Vector, id uint32, rows []uint32) error {
	cols := columnsOf(c.o.Mem, c.o.Types, []uint32{id}, c.rows)
	defer releaseAll(cols)
	v.AppendRows(cols[0], rows)
	return nil
}

func (c *memCursor) Close() error { return nil }
