package run

import (
	"fmt"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/shards/key"
)

// AddColumns is Add for rows that lie together in arrays: row i of the slice is
// row order[i] of keys and cols, or row i where order is nil. Blocks are then
// encoded straight from the arrays.
func (w *Writer) AddColumns(slice int, keys *key.Keys, ids []uint32, cols []arrow.Array, order []uint32) error {
	if w.err != nil {
		return w.err
	}
	n := keys.Len()
	if order != nil {
		n = len(order)
	}
	rows := &whole{arrays: arrays{cols: cols}, keys: keys, order: order}
	err := w.enter(slice, ids, rows)
	if err == nil {
		err = w.cut()
	}
	for lo := 0; lo < n && err == nil; {
		var b *cutBlock
		if b, err = w.pending.cut(rows, lo, n); err == nil {
			lo += b.rows
			err = w.writeBlock(b)
			b.release()
		}
	}
	if err != nil {
		return w.fail(err)
	}
	return nil
}

// whole is the rows of AddColumns.
type whole struct {
	arrays
	keys  *key.Keys
	order []uint32
}

// column is rows [lo, hi) of a column; the caller releases it before it asks for
// others.
func (r *whole) column(p *pending, column, lo, hi int) arrow.Array {
	if r.order == nil {
		return array.NewSlice(r.cols[column], int64(lo), int64(hi))
	}
	v := p.vectors[column]
	v.Reset()
	v.AppendRows(r.cols[column], r.order[lo:hi])
	return v.View()
}

// cut makes a block of rows from lo on: as many as most and blockBytes allow, but
// one at least. Nothing is pending.
func (p *pending) cut(r *whole, lo, n int) (*cutBlock, error) {
	take := min(n-lo, p.most)
	cols := p.gather(r, lo, lo+take)
	plain, room := plainOf(cols, take), blockBytes(len(cols))
	if plain > room && take > 1 {
		take = max(1, sort.Search(take, func(i int) bool { return plainOf(cols, i+1) > room }))
		releaseColumns(cols)
		cols = p.gather(r, lo, lo+take)
		plain = plainOf(cols, take)
	}
	if r.order == nil {
		p.keys.AppendRange(r.keys, lo, lo+take)
	} else {
		p.keys.AppendRows(r.keys, r.order[lo:lo+take])
	}
	b := &cutBlock{pending: p, keys: &p.keys, rows: take, plain: plain}
	for i, arr := range cols {
		b.column(p.ids[i], arr)
	}
	if at := p.keys.Descent(); at < take {
		err := fmt.Errorf("BUG: key %x does not follow %x", p.keys.At(at), p.keys.At(at-1))
		b.release()
		return nil, err
	}
	return b, nil
}

// gather is rows [lo, hi) of every column.
func (p *pending) gather(r *whole, lo, hi int) []arrow.Array {
	cols := make([]arrow.Array, len(p.ids))
	for i := range cols {
		cols[i] = r.column(p, i, lo, hi)
	}
	return cols
}

// plainOf is about what the first rows of columns take as plain Arrow.
func plainOf(cols []arrow.Array, rows int) (total int64) {
	for _, c := range cols {
		total += plainBytes(c, 0, rows)
	}
	return total
}

func releaseColumns(cols []arrow.Array) {
	for _, c := range cols {
		c.Release()
	}
}
