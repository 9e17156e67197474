package run

import (
	"bytes"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// A search in a block encodes the keys of searchSamples rows at a time until no
// more than searchRows are left, whose keys are all encoded: for 2,048 rows two
// vectorised steps instead of eleven single ones or 2,048 keys.
const (
	searchSamples = 32
	searchRows    = 64
)

// locator re-encodes the key columns of blocks.
type locator struct {
	mem     memory.Allocator
	key     KeyColumns
	vectors []*block.Vector
	keys    key.Keys
	lo      int // keys are those of rows [lo, lo + keys.Len())
	samples []uint32
	cols    []arrow.Array
}

func (l *locator) release() {
	for _, v := range l.vectors {
		v.Release()
	}
}

// encode appends the keys of rows [lo, hi).
func (l *locator) encode(dst *key.Keys, b *block.Reader, lo, hi int) error {
	return l.encodeColumns(dst, b, func(v *block.Vector, id uint32) error { return b.Append(v, id, lo, hi) })
}

// encodeRows appends the keys of some rows.
func (l *locator) encodeRows(dst *key.Keys, b *block.Reader, rows []uint32) error {
	return l.encodeColumns(dst, b, func(v *block.Vector, id uint32) error { return b.AppendRows(v, id, rows) })
}

func (l *locator) encodeColumns(dst *key.Keys, b *block.Reader, fetch func(*block.Vector, uint32) error) error {
	if l.vectors == nil {
		l.vectors = make([]*block.Vector, len(l.key.IDs))
		l.cols = make([]arrow.Array, len(l.key.IDs))
		for i, t := range l.key.Types {
			l.vectors[i] = block.NewVector(l.mem, t)
		}
	}
	defer func() {
		for i, c := range l.cols {
			l.vectors[i].Reset()
			if c != nil {
				c.Release()
				l.cols[i] = nil
			}
		}
	}()
	for i, id := range l.key.IDs {
		if !b.Has(id) {
			return tailError("a block lacks key column %d", i)
		}
		if err := fetch(l.vectors[i], id); err != nil {
			return err
		}
	}
	for i, v := range l.vectors {
		l.cols[i] = v.NewArray()
	}
	if err := key.Encode(dst, l.cols); err != nil {
		return tailError("a block's key: %v", err)
	}
	return nil
}

// find is the rows whose keys are in [low, high); nil is open.
func (l *locator) find(b *block.Reader, low, high []byte) (window, error) {
	w := window{0, b.Rows()}
	l.lo = 0
	l.keys.Reset()
	var err error
	if low != nil {
		if w.lo, err = l.seek(b, low, 0); err != nil {
			return w, err
		}
	}
	if high != nil {
		if w.hi, err = l.seek(b, high, w.lo); err != nil {
			return w, err
		}
	}
	return w, nil
}

// seek is the first row, not below from, whose key is not below bound.
func (l *locator) seek(b *block.Reader, bound []byte, from int) (int, error) {
	// The keys that the last search left are often the right ones: both ends of
	// a lookup are neighbours.
	if n := l.keys.Len(); n > 0 && l.lo <= from && from < l.lo+n && bytes.Compare(l.keys.At(n-1), bound) >= 0 {
		return l.lo + search(&l.keys, bound), nil
	}
	lo, hi := from, b.Rows()
	for hi-lo > searchRows {
		step := (hi - lo + searchSamples - 1) / searchSamples
		l.samples = l.samples[:0]
		for row := lo; row < hi; row += step {
			l.samples = append(l.samples, uint32(row))
		}
		l.keys.Reset()
		if err := l.encodeRows(&l.keys, b, l.samples); err != nil {
			return 0, err
		}
		i := search(&l.keys, bound)
		if i < len(l.samples) {
			hi = int(l.samples[i])
		}
		if i == 0 {
			l.keys.Reset()
			return hi, nil
		}
		lo = int(l.samples[i-1]) + 1
	}
	// The window ends one row behind hi, so that the row found is in it.
	l.keys.Reset()
	l.lo = lo
	if err := l.encode(&l.keys, b, lo, min(hi+1, b.Rows())); err != nil {
		return 0, err
	}
	return lo + search(&l.keys, bound), nil
}

// search is the first key that is not below bound.
func search(keys *key.Keys, bound []byte) int {
	return sort.Search(keys.Len(), func(i int) bool { return bytes.Compare(keys.At(i), bound) >= 0 })
}
