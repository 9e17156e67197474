package run

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/sheaf-db/sheaf/shards/block"
)

// cursor moves over the blocks of one slice of a run: a Part is the piece of
// one block inside the bounds.
type cursor struct {
	run   *Run
	slice int
	o     CursorOptions

	bounds Bounds
	fresh  bool // sought, not yet moved
	root   *index
	leaf   *index
	leafAt int // which leaf: index of the root's entry, 0 if the root is the leaf
	at     int // entry in leaf
	part   Part

	zones  map[uint32][]block.Zone // of leaf, as far as asked for
	zoneOf *index                  // the leaf that zones belong to

	blocks blocks
	groups grouping
	window window // rows of the block that are in the part
	locate locator
	wide   Widener
	fill   filler
	rows   []uint32
}

// window is rows [lo, hi) of a block.
type window struct{ lo, hi int }

func newCursor(r *Run, slice int, o CursorOptions) *cursor {
	c := &cursor{run: r, slice: slice, o: o}
	c.locate.mem, c.locate.key = o.Mem, r.o.Key
	c.wide.mem, c.fill.mem = o.Mem, o.Mem
	return c
}

func (c *cursor) Seek(b Bounds) error {
	c.bounds, c.fresh = b, true
	if c.root == nil {
		root, err := c.run.index(c.slice, 0, c.o.Counters)
		if err != nil {
			return err
		}
		c.root, c.leafAt = root, -1
		c.groups = grouping{key: c.run.o.Key.IDs, starts: root.groups.starts}
	}
	return nil
}

func (c *cursor) Next() (*Part, error) {
	for {
		ok, err := c.step()
		if err != nil || !ok {
			return nil, err
		}
		e := &c.leaf.entries[c.at]
		if c.bounds.High != nil && bytes.Compare(e.first, c.bounds.High) >= 0 ||
			c.bounds.Low != nil && bytes.Compare(e.last, c.bounds.Low) < 0 {
			return nil, nil
		}
		c.part = Part{
			First: e.first, Last: e.last,
			Rows: int(e.rows), Tombstones: int(e.tombstones), Bytes: int(e.plain),
			Greatest: c.run.o.Version,
			Whole: (c.bounds.Low == nil || bytes.Compare(e.first, c.bounds.Low) >= 0) &&
				(c.bounds.High == nil || bytes.Compare(e.last, c.bounds.High) < 0),
		}
		if c.run.o.PerRow {
			c.part.Greatest = e.greatest
		}
		// A whole block has rows inside the bounds, whatever its filter.
		if c.bounds.Sharded && !c.part.Whole {
			may, err := c.mayHold(e)
			if err != nil {
				return nil, err
			}
			if !may {
				continue
			}
		}
		return &c.part, nil
	}
}

// edge is the last entry of the leaf in the cursor's direction.
func (c *cursor) edge() int {
	if c.o.Desc {
		return 0
	}
	return len(c.leaf.entries) - 1
}

// step moves to the next block of the slice, or after Seek to the first that
// may be inside the bounds; false at the end of the slice.
func (c *cursor) step() (bool, error) {
	if c.fresh {
		c.fresh = false
		return c.jump()
	}
	if c.leaf == nil {
		return false, nil
	}
	if c.at != c.edge() {
		if c.o.Desc {
			c.at--
		} else {
			c.at++
		}
		return true, nil
	}
	if !c.root.root {
		return false, nil
	}
	next := c.leafAt + 1
	if c.o.Desc {
		next = c.leafAt - 1
	}
	if next < 0 || next == len(c.root.entries) {
		return false, nil
	}
	// The root tells before the leaf is loaded that it is out of bounds.
	e := &c.root.entries[next]
	if c.bounds.High != nil && bytes.Compare(e.first, c.bounds.High) >= 0 ||
		c.bounds.Low != nil && bytes.Compare(e.last, c.bounds.Low) < 0 {
		return false, nil
	}
	if err := c.enter(next); err != nil {
		return false, err
	}
	c.at = len(c.leaf.entries) - 1 - c.edge()
	return true, nil
}

func (c *cursor) jump() (bool, error) {
	if c.root.root {
		leaf := c.find(c.root)
		if leaf < 0 {
			c.leaf, c.leafAt = nil, -1
			return false, nil
		}
		if err := c.enter(leaf); err != nil {
			return false, err
		}
	} else {
		c.leaf, c.leafAt = c.root, 0
	}
	c.at = c.find(c.leaf)
	if c.at < 0 {
		c.leaf, c.leafAt = nil, -1
		return false, nil
	}
	return true, nil
}

// find is the first entry inside the bounds in the cursor's direction, or -1.
func (c *cursor) find(x *index) int {
	if c.o.Desc {
		return x.seekBack(c.bounds.High)
	}
	if at := x.seek(c.bounds.Low); at < len(x.entries) {
		return at
	}
	return -1
}

func (c *cursor) enter(leaf int) error {
	if c.leafAt == leaf && c.leaf != nil {
		return nil
	}
	x, err := c.run.index(c.slice, leaf+1, c.o.Counters)
	if err != nil {
		return err
	}
	if !slices.Equal(x.groups.starts, c.groups.starts) {
		return c.run.damaged(c.slice, tailError("index part %d has other column groups than the root", leaf+1))
	}
	c.leaf, c.leafAt = x, leaf
	return nil
}

// tailPart is the number of the tail part that covers the current leaf.
func (c *cursor) tailPart() int {
	if c.root.root {
		return c.leafAt + 1
	}
	return 0
}

func (c *cursor) Zone(id uint32) (block.Zone, bool, error) {
	switch {
	case id == block.ColumnCommit:
		return c.versionZone(), true, nil
	case id == block.ColumnTombstone:
		return block.Zone{}, false, nil
	}
	stored, ok := c.run.o.Stored(id)
	if !ok { // added later: all null
		return block.Zone{Rows: c.part.Rows, Nulls: c.part.Rows}, true, nil
	}
	if current, ok := c.o.Types(id); !ok || !sameType(stored, current) {
		return block.Zone{}, false, nil
	}
	z, err := c.storedZone(id)
	return z, z.Rows > 0, err
}

// versionZone is the zone of the rows' versions, which the index knows.
func (c *cursor) versionZone() block.Zone {
	least, greatest := c.versions(&c.leaf.entries[c.at])
	return block.Zone{
		Rows: c.part.Rows, MinExact: true, MaxExact: true,
		Min: binary.BigEndian.AppendUint64(nil, least), Max: binary.BigEndian.AppendUint64(nil, greatest),
	}
}

// versions bounds the versions of a block's rows.
func (c *cursor) versions(e *entry) (least, greatest uint64) {
	if c.run.o.PerRow {
		return e.least, e.greatest
	}
	return c.run.o.Version, c.run.o.Version
}

// storedZone is the zone of a column of the part as it was written; it has no
// rows if none is known.
func (c *cursor) storedZone(id uint32) (block.Zone, error) {
	if c.zoneOf != c.leaf {
		clear(c.zones)
		c.zoneOf = c.leaf
	}
	zones, ok := c.zones[id]
	if !ok {
		m, err := c.run.zones(c.slice, c.tailPart(), c.groups.of(id), c.o.Counters)
		if err != nil {
			return block.Zone{}, err
		}
		if zones, err = m.column(nil, id, c.leaf); err != nil {
			return block.Zone{}, c.run.damaged(c.slice, err)
		}
		if c.zones == nil {
			c.zones = map[uint32][]block.Zone{}
		}
		c.zones[id] = zones
	}
	return zones[c.at], nil
}

func (c *cursor) Load() (int, error) {
	e := &c.leaf.entries[c.at]
	c.blocks.enter(e)
	c.window = window{0, int(e.rows)}
	if c.part.Whole {
		return c.window.hi, nil // its groups are read when they are asked for
	}
	b, err := c.group(e, 0)
	if err == nil {
		c.window, err = c.locate.find(b, c.bounds.Low, c.bounds.High)
	}
	if err != nil {
		return 0, c.run.damaged(c.slice, err)
	}
	return c.window.hi - c.window.lo, nil
}

func (c *cursor) Close() error {
	c.locate.release()
	c.wide.Release()
	c.fill.release()
	return c.run.damaged(c.slice, c.blocks.close())
}
