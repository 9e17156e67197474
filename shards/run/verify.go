package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// Verify reads everything that a slice has in this run: checksums, every chunk,
// the order of keys, and index, zone maps and filter against the rows. report
// gets a text for each thing that is wrong, reading goes on behind it where it
// can; the error is for what stops the verification itself. Blocks in Pebble's
// cache are not read from disk again.
func (r *Run) Verify(ctx context.Context, slice int, report func(what string)) error {
	v := verifier{report: report, counters: &Counters{}}
	v.c = newCursor(r, slice, CursorOptions{
		Context: ctx, Mem: memory.DefaultAllocator, Types: r.o.Stored, Counters: v.counters, Verify: true,
	})
	err := v.run(ctx)
	if err == nil {
		err = v.names(ctx)
	}
	if closed := v.c.Close(); err == nil {
		err = closed
	}
	return v.damage("", err)
}

type verifier struct {
	c        *cursor
	report   func(string)
	counters *Counters
	keys     key.Keys
	last     []byte
}

// damage reports an error that is about stored bytes and returns any other.
func (v *verifier) damage(where string, err error) error {
	if found := fault.Of(err); found != nil && found.Kind == fault.DataLoss {
		text := found.Message
		if cause := errors.Unwrap(found); cause != nil {
			text = cause.Error()
		}
		v.report(where + text)
		return nil
	}
	return err
}

func (v *verifier) run(ctx context.Context) error {
	if err := v.c.Seek(Bounds{}); err != nil {
		return err
	}
	var leaf *index
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		part, err := v.c.Next()
		if err != nil || part == nil {
			return err
		}
		if leaf != v.c.leaf {
			leaf = v.c.leaf
			v.leaf()
		}
		where := fmt.Sprintf("block %d of index part %d: ", v.c.at, v.c.tailPart())
		if err := v.damage(where, v.block(where, part)); err != nil {
			return err
		}
	}
}

// leaf holds the root's word about a leaf against the leaf.
func (v *verifier) leaf() {
	if !v.c.root.root {
		return
	}
	told, is := v.c.root.entries[v.c.leafAt], sum(v.c.leaf.entries)
	if !bytes.Equal(told.first, is.first) || !bytes.Equal(told.last, is.last) ||
		told.rows != is.rows || told.tombstones != is.tombstones || told.blocks != is.blocks {
		v.report(fmt.Sprintf("index part %d is not what the root says", v.c.tailPart()))
	}
}

func (v *verifier) block(where string, part *Part) error {
	wrong := func(format string, args ...any) { v.report(where + fmt.Sprintf(format, args...)) }
	rows, err := v.c.Load()
	if err != nil {
		return err
	}
	v.keys.Reset()
	if err := v.c.Keys(&v.keys); err != nil {
		return err
	}
	if !bytes.Equal(v.keys.At(0), part.First) || !bytes.Equal(v.keys.At(rows-1), part.Last) {
		wrong("first and last key are not what the index says")
	}
	for i := range rows {
		if k := v.keys.At(i); v.last != nil && bytes.Compare(v.last, k) >= 0 {
			wrong("row %d is out of order", i)
			break
		} else {
			v.last = append(v.last[:0], k...)
		}
	}
	v.last = append(v.last[:0], v.keys.At(rows-1)...)
	if err := v.filter(wrong); err != nil {
		return err
	}
	tombstones, err := v.groups(rows, wrong)
	if err != nil {
		return err
	}
	if tombstones != part.Tombstones {
		wrong("%d rows are deletes, the index says %d", tombstones, part.Tombstones)
	}
	return nil
}

// groups decodes all columns of all groups of a block; the result is how many
// rows are deletes.
func (v *verifier) groups(rows int, wrong func(string, ...any)) (tombstones int, err error) {
	c := v.c
	e := &c.leaf.entries[c.at]
	n := 1
	if e.all {
		n = c.groups.count()
	}
	encoded := 0
	for g := range n {
		b, err := c.group(e, g)
		if err != nil {
			return 0, c.run.damaged(c.slice, err)
		}
		encoded += len(c.blocks.values[g])
		if g == 0 {
			v.versions(b, e, wrong)
		}
		for _, id := range b.Columns() {
			dead, err := v.column(b, id, rows, wrong)
			if err != nil {
				return 0, err
			}
			tombstones += dead
			if c.blocks.values[g] == nil { // a zone's read moved the iterator
				if b, err = c.group(e, g); err != nil {
					return 0, c.run.damaged(c.slice, err)
				}
			}
		}
	}
	if uint64(encoded) != e.encoded {
		wrong("its column groups have %d bytes, the index says %d", encoded, e.encoded)
	}
	if c.groups.count() > 1 && groupsSum(c.blocks.values[:n]) != e.sum {
		wrong("its column groups do not belong together")
	}
	return tombstones, nil
}

// versions holds the rows' versions against the index.
func (v *verifier) versions(b *block.Reader, e *entry, wrong func(string, ...any)) {
	per := b.Has(block.ColumnCommit)
	switch {
	case per && !v.c.run.o.PerRow:
		wrong("its rows have versions of their own, the run has one")
	case !per && e.least != e.greatest:
		wrong("its rows have no versions, the index says from %d to %d", e.least, e.greatest)
	}
}

// names looks for entries that no index names.
func (v *verifier) names(ctx context.Context) error {
	c := v.c
	if c.blocks.iter == nil { // no block was read, which has been told
		return nil
	}
	if err := c.Seek(Bounds{}); err != nil {
		return v.damage("", err)
	}
	it := c.blocks.iter
	ok := it.First()
	expect := func(name []byte) bool {
		if !ok || !bytes.Equal(it.Key(), name) {
			return false
		}
		ok = it.Next()
		return true
	}
	var name []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := c.step()
		if err != nil {
			return v.damage("", err)
		}
		if !more {
			break
		}
		e := &c.leaf.entries[c.at]
		if c.run.o.Key.Sharding > 0 {
			name = layout.AppendBlockFilter(name[:0], c.run.prefix, c.slice, e.last)
			if !expect(name) {
				v.stray(it.Key(), ok)
				return nil
			}
		}
		n := 1
		if e.all {
			n = c.groups.count()
		}
		for g := range n {
			name = layout.AppendBlock(name[:0], c.run.prefix, c.slice, e.last, g)
			if !expect(name) {
				v.stray(it.Key(), ok)
				return nil
			}
		}
	}
	v.stray(it.Key(), ok)
	return nil
}

func (v *verifier) stray(name []byte, is bool) {
	if is {
		v.report(fmt.Sprintf("an entry %x that no index names, or one before it is missing", name))
	}
}

// column decodes a column and holds its zone against it; the result is how many
// rows it says are deletes.
func (v *verifier) column(b *block.Reader, id uint32, rows int, wrong func(string, ...any)) (tombstones int, err error) {
	t, ok := typeOf(v.c.run.o.Stored, id)
	if !ok {
		wrong("column %d is not in the schema it was written under", id)
		return 0, nil
	}
	vector := block.NewVector(v.c.o.Mem, t)
	defer vector.Release()
	if err := b.Append(vector, id, 0, rows); err != nil {
		return 0, v.c.run.damaged(v.c.slice, err)
	}
	arr := vector.NewArray()
	defer arr.Release()
	switch id {
	case block.ColumnTombstone:
		return countTrue(arr.(*array.Boolean)), nil
	case block.ColumnCommit:
		versions := arr.(*array.Uint64).Uint64Values()
		if least, greatest := v.c.versions(&v.c.leaf.entries[v.c.at]); slices.Min(versions) != least || slices.Max(versions) != greatest {
			wrong("the index says its versions are from %d to %d", least, greatest)
		}
		return 0, nil
	}
	told, known, err := v.c.Zone(id)
	if err != nil {
		return 0, err
	}
	is := block.ZoneOf(arr)
	if !known || told.Rows != is.Rows || told.Nulls != is.Nulls || told.NaN != is.NaN ||
		!bytes.Equal(told.Min, is.Min) || !bytes.Equal(told.Max, is.Max) {
		wrong("the zone map of column %d does not fit its values", id)
	}
	return 0, nil
}

// filter asks the sharding-key filter for every row.
func (v *verifier) filter(wrong func(string, ...any)) error {
	k := v.c.run.o.Key
	if k.Sharding == 0 {
		return nil
	}
	f, err := v.c.filter(&v.c.leaf.entries[v.c.at])
	if err != nil {
		return err
	}
	for i := range v.keys.Len() {
		n, err := key.Prefix(k.Types, v.keys.At(i), k.Sharding)
		if err != nil {
			return v.c.run.damaged(v.c.slice, tailError("key of row %d: %v", i, err))
		}
		if !f.mayHold(key.Hash(v.keys.At(i)[:n])) {
			wrong("the filter does not know the sharding key of row %d", i)
			return nil
		}
	}
	return nil
}
