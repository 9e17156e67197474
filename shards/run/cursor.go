package run

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/layout"
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

	iter   *pebble.Iterator // opened by the first Load
	key    []byte
	block  block.Reader
	loaded *entry // the block that iter stands on
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
		root, err := c.run.index(c.slice, 0)
		if err != nil {
			return err
		}
		c.root, c.leafAt = root, -1
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
		if c.bounds.Sharded {
			may, err := c.mayHold()
			if err != nil {
				return nil, err
			}
			if !may { // nothing else of this leaf is worth a look
				c.at = c.edge()
				continue
			}
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
	x, err := c.run.index(c.slice, leaf+1)
	if err != nil {
		return err
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

func (c *cursor) mayHold() (bool, error) {
	if c.run.o.Key.Sharding == 0 {
		return true, nil
	}
	f, err := c.run.filter(c.slice, c.tailPart())
	if err != nil {
		return false, err
	}
	return f.mayHold(c.bounds.Hash), nil
}

func (c *cursor) Zone(id uint32) (block.Zone, bool, error) {
	switch {
	case id == block.ColumnCommit && !c.run.o.PerRow:
		z := c.fill.versionZone(c.run.o.Version)
		z.Rows = c.part.Rows
		return z, true, nil
	case !ofEngine(id):
		stored, ok := c.run.o.Stored(id)
		if !ok { // added later: all null
			return block.Zone{Rows: c.part.Rows, Nulls: c.part.Rows}, true, nil
		}
		if current, ok := c.o.Types(id); !ok || !arrow.TypeEqual(stored, current) {
			return block.Zone{}, false, nil
		}
	}
	if c.zoneOf != c.leaf {
		clear(c.zones)
		c.zoneOf = c.leaf
	}
	zones, ok := c.zones[id]
	if !ok {
		m, err := c.run.zones(c.slice, c.tailPart())
		if err != nil {
			return block.Zone{}, false, err
		}
		if zones, err = m.column(nil, id, c.leaf); err != nil {
			return block.Zone{}, false, c.run.damaged(c.slice, err)
		}
		if c.zones == nil {
			c.zones = map[uint32][]block.Zone{}
		}
		c.zones[id] = zones
	}
	z := zones[c.at]
	return z, z.Rows > 0, nil
}

func (c *cursor) Load() (int, error) {
	e := &c.leaf.entries[c.at]
	if c.loaded != e {
		if err := c.read(e); err != nil {
			return 0, c.run.damaged(c.slice, err)
		}
	}
	c.window = window{0, c.block.Rows()}
	if !c.part.Whole {
		var err error
		if c.window, err = c.locate.find(&c.block, c.bounds.Low, c.bounds.High); err != nil {
			return 0, c.run.damaged(c.slice, err)
		}
	}
	return c.window.hi - c.window.lo, nil
}

// read moves the iterator to a block and opens it. The block aliases the
// iterator's value, which is good until the iterator moves. An iterator with an
// error is closed: it would repeat it.
func (c *cursor) read(e *entry) error {
	c.loaded = nil
	err := c.readAt(e)
	if err != nil && c.iter != nil {
		_ = c.iter.Close() // says err again
		c.iter = nil
	}
	return err
}

func (c *cursor) readAt(e *entry) error {
	if c.iter == nil {
		bound := layout.AppendBlock(nil, c.run.prefix, c.slice, nil, 0)
		lower := bound[:len(bound)-2]
		upper := bytes.Clone(lower)
		upper[len(upper)-1]++
		iter, err := c.run.o.DB.NewIterWithContext(c.o.Context, &pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return err
		}
		c.iter = iter
	}
	// The index names the key, so it is sought exactly: no block that nobody
	// wants is read on the way, and nothing is copied backwards, as Pebble does
	// when it steps.
	c.key = layout.AppendBlock(c.key[:0], c.run.prefix, c.slice, e.last, 0)
	if !c.iter.SeekGE(c.key) || !bytes.Equal(c.iter.Key(), c.key) {
		if err := c.iter.Error(); err != nil {
			return err
		}
		return tailError("the block that ends with key %x is missing", e.last)
	}
	value, err := c.iter.ValueAndErr()
	if err != nil {
		return err
	}
	if c.block, err = block.Open(value); err != nil {
		return err
	}
	if uint64(c.block.Rows()) != e.rows {
		return tailError("a block has %d rows, the index says %d", c.block.Rows(), e.rows)
	}
	c.o.Counters.BlocksRead++
	c.o.Counters.BytesRead += uint64(len(value))
	c.loaded = e
	return nil
}

func (c *cursor) Close() error {
	c.locate.release()
	c.wide.Release()
	c.fill.release()
	c.loaded = nil
	if c.iter == nil {
		return nil
	}
	err := c.iter.Close()
	c.iter = nil
	return c.run.damaged(c.slice, err)
}
