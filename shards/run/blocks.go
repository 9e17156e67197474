package run

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// blocks reads the groups of one block after another, as they are asked for.
type blocks struct {
	iter   *pebble.Iterator // opened by the first read
	name   []byte
	entry  *entry         // the block that groups are of
	groups []block.Reader // by group; Columns and Rows only where read
	values [][]byte       // by group; nil: not read
	copies [][]byte       // memory for values of slices of several groups

	filter   filter
	filterOf *entry // the block whose filter that is
}

// enter makes a block the present one.
func (b *blocks) enter(e *entry) {
	if b.entry == e {
		return
	}
	b.entry = e
	clear(b.values)
}

// group is a group of a block, read now unless it was before. The block stays
// valid until another is entered, or a filter is read.
func (c *cursor) group(e *entry, group int) (*block.Reader, error) {
	b := &c.blocks
	b.enter(e)
	if group < len(b.values) && b.values[group] != nil {
		return &b.groups[group], nil
	}
	n := c.groups.count()
	b.groups, b.values = resized(b.groups, n), resized(b.values, n)
	b.name = layout.AppendBlock(b.name[:0], c.run.prefix, c.slice, e.last, group)
	value, err := c.fetch(b.name)
	if err == nil && value == nil {
		err = tailError("column group %d of the block that ends with key %x is missing", group, e.last)
	}
	if err != nil {
		return nil, err
	}
	if n > 1 {
		// The value is good until the iterator moves: a slice of one group uses it
		// in place.
		b.copies = resized(b.copies, n)
		b.copies[group] = append(b.copies[group][:0], value...)
		value = b.copies[group]
	}
	r, err := c.open(value, e, group)
	if err != nil {
		return nil, err
	}
	if !b.counted() {
		c.o.Counters.BlocksRead++
	}
	c.o.Counters.BytesRead += uint64(len(value))
	b.groups[group], b.values[group] = r, value
	return &b.groups[group], nil
}

// open opens a group's value. Of slices of one group a block's checksum is
// computed once for as long as its index part is cached: for three columns of
// many, or one row, it costs more than the decoding.
func (c *cursor) open(value []byte, e *entry, group int) (block.Reader, error) {
	once := c.groups.count() == 1
	var r block.Reader
	var err error
	if once && !c.o.Verify && c.leaf.verified[c.at].Load() {
		r, err = block.Reopen(value)
	} else {
		r, err = block.Open(value)
	}
	if err == nil {
		err = c.check(&r, e, group)
	}
	if err == nil && once {
		c.leaf.verified[c.at].Store(true)
	}
	return r, err
}

// counted is true if some group of the block was read before.
func (b *blocks) counted() bool {
	for _, v := range b.values {
		if v != nil {
			return true
		}
	}
	return false
}

// check holds a group against the index.
func (c *cursor) check(r *block.Reader, e *entry, group int) error {
	if uint64(r.Rows()) != e.rows {
		return tailError("column group %d of a block has %d rows, the index says %d", group, r.Rows(), e.rows)
	}
	if c.groups.count() == 1 {
		return nil
	}
	for _, id := range r.Columns() {
		if at := c.groups.of(id); at != group {
			return tailError("column group %d of a block has column %d of group %d", group, id, at)
		}
	}
	return nil
}

// holding is the group of the present block that has a column; nil if the block
// leaves it out.
func (c *cursor) holding(id uint32) (*block.Reader, error) {
	e := &c.leaf.entries[c.at]
	group := c.groups.of(id)
	if group > 0 && !e.all {
		return nil, nil
	}
	r, err := c.group(e, group)
	if err != nil || !r.Has(id) {
		return nil, c.run.damaged(c.slice, err)
	}
	return r, nil
}

// mayHold asks a block's filter for the sharding key of the bounds.
func (c *cursor) mayHold(e *entry) (bool, error) {
	if c.run.o.Key.Sharding == 0 {
		return true, nil
	}
	if c.blocks.filterOf != e {
		f, err := c.filter(e)
		if err != nil {
			return false, err
		}
		c.blocks.filter, c.blocks.filterOf = *f, e
	}
	return c.blocks.filter.mayHold(c.bounds.Hash), nil
}

// filter is a block's filter, from the cache or from disk.
func (c *cursor) filter(e *entry) (*filter, error) {
	k := tailKey{c.run.o.Table, c.run.o.Run, uint16(c.slice), tailFilter, uint32(c.tailPart()), uint32(c.at)}
	if f, ok := c.run.o.Cache.get(k).(*filter); ok {
		return f, nil
	}
	value, err := c.fetchFilter(e)
	if err != nil {
		return nil, c.run.damaged(c.slice, err)
	}
	f, err := openFilter(bytes.Clone(value))
	if err != nil {
		return nil, c.run.damaged(c.slice, err)
	}
	c.run.o.Cache.put(k, f, f.bytes())
	return f, nil
}

// fetchFilter reads a block's filter; the value is good until the iterator moves.
func (c *cursor) fetchFilter(e *entry) ([]byte, error) {
	b := &c.blocks
	b.name = layout.AppendBlockFilter(b.name[:0], c.run.prefix, c.slice, e.last)
	value, err := c.fetch(b.name)
	if err == nil && value == nil {
		err = tailError("the filter of the block that ends with key %x is missing", e.last)
	}
	if err != nil {
		return nil, err
	}
	c.o.Counters.BytesRead += uint64(len(value))
	return value, nil
}

// fetch moves the iterator to a key, whose value is good until it moves again;
// nil if there is none. An iterator with an error is closed: it would repeat it.
func (c *cursor) fetch(name []byte) ([]byte, error) {
	b := &c.blocks
	if c.groups.count() == 1 {
		clear(b.values) // they lie where the iterator was
	}
	value, err := c.fetchAt(name)
	if err != nil && b.iter != nil {
		_ = b.iter.Close() // says err again
		b.iter = nil
	}
	return value, err
}

func (c *cursor) fetchAt(name []byte) ([]byte, error) {
	b := &c.blocks
	if b.iter == nil {
		lower := layout.AppendBlocks(nil, c.run.prefix, c.slice)
		upper := bytes.Clone(lower)
		upper[len(upper)-1]++
		iter, err := c.run.o.DB.NewIterWithContext(c.o.Context, &pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return nil, err
		}
		b.iter = iter
	}
	// The index names the keys, so they are sought exactly: nothing that nobody
	// wants is read on the way, and nothing is copied backwards, as Pebble does
	// when it steps.
	if !b.iter.SeekGE(name) || !bytes.Equal(b.iter.Key(), name) {
		return nil, b.iter.Error()
	}
	value, err := b.iter.ValueAndErr()
	if err == nil && value == nil {
		value = []byte{}
	}
	return value, err
}

// Unpin lets go of the block that was read: of the iterator whose value it lies
// in, and of copies.
func (c *cursor) Unpin() error {
	clear(c.blocks.copies)
	return c.blocks.close()
}

func (b *blocks) close() error {
	b.entry, b.filterOf = nil, nil
	clear(b.values)
	if b.iter == nil {
		return nil
	}
	err := b.iter.Close()
	b.iter = nil
	return err
}
