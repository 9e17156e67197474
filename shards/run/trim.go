package run

import (
	"bytes"
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// SourceFrom is the rows of one slice from the key low on (nil: all of them):
// what a fold that works in steps has not merged yet.
func (r *Run) SourceFrom(slice int, low []byte) Source {
	if low == nil {
		return r.Source(slice)
	}
	return &trimmedSource{source: source{run: r, slice: slice}, low: low}
}

type trimmedSource struct {
	source
	low []byte
}

func (s *trimmedSource) Cursor(o CursorOptions) (Cursor, error) {
	return &trimmedCursor{cursor: newCursor(s.run, s.slice, o), low: s.low}, nil
}

// trimmedCursor is a cursor that never goes below a key.
type trimmedCursor struct {
	*cursor
	low  []byte
	none bool // the bounds lie below
}

func (c *trimmedCursor) Seek(b Bounds) error {
	c.none = b.High != nil && bytes.Compare(b.High, c.low) <= 0
	if c.none {
		return nil
	}
	if bytes.Compare(b.Low, c.low) < 0 {
		b.Low = c.low
	}
	return c.cursor.Seek(b)
}

func (c *trimmedCursor) Next() (*Part, error) {
	if c.none {
		return nil, nil
	}
	return c.cursor.Next()
}

// Trim is what the run holds of a slice from the key low on, exactly: whole
// blocks are counted by the index, the one that low cuts is read. Rows is 0 if
// nothing is left.
func (r *Run) Trim(ctx context.Context, mem memory.Allocator, slice int, low []byte) (left SliceInfo, err error) {
	c := newCursor(r, slice, CursorOptions{Context: ctx, Mem: mem, Types: r.o.Stored, Counters: &Counters{}})
	defer func() { err = errors.Join(err, c.Close()) }()
	left.Slice = slice
	if err := c.Seek(Bounds{Low: low}); err != nil {
		return left, err
	}
	part, err := c.Next()
	if err == nil && part != nil && !part.Whole {
		if err = c.trimBlock(&left); err == nil {
			part, err = c.Next()
		}
	}
	if err != nil || part == nil {
		return left, err
	}
	left.addAll(c.leaf.entries[c.at:])
	if c.root.root && c.leafAt+1 < len(c.root.entries) {
		left.addAll(c.root.entries[c.leafAt+1:])
	}
	return left, nil
}

// addAll counts blocks, or the leaves of a root, that follow what is counted.
func (s *SliceInfo) addAll(entries []entry) {
	e := sum(entries)
	if s.Rows == 0 {
		s.First = bytes.Clone(e.first)
	}
	s.Last = bytes.Clone(e.last)
	s.Rows += e.rows
	s.Tombstones += e.tombstones
	s.Bytes += e.encoded
	s.Plain += e.plain
	s.Blocks += int(e.blocks)
}

// trimBlock counts the rows of the block that the bounds cut.
func (c *cursor) trimBlock(left *SliceInfo) error {
	e := c.leaf.entries[c.at]
	rows, err := c.Load()
	if err != nil || rows == 0 {
		return err
	}
	var keys key.Keys
	if err := c.Keys(&keys); err != nil {
		return err
	}
	e.first, e.last = keys.At(0), keys.At(rows-1)
	e.encoded, e.plain = e.encoded*uint64(rows)/e.rows, e.plain*uint64(rows)/e.rows
	e.rows = uint64(rows)
	if e.tombstones > 0 {
		v := block.NewVector(c.o.Mem, arrow.FixedWidthTypes.Boolean)
		defer v.Release()
		if err := c.Append(v, block.ColumnTombstone, 0, rows); err != nil {
			return err
		}
		deletes := v.NewArray()
		defer deletes.Release()
		e.tombstones = uint64(countTrue(deletes.(*array.Boolean)))
	}
	left.addAll([]entry{e})
	return nil
}
