package run

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// storedBlock is one block as it is stored, with what the slice's tail says of it.
type storedBlock struct {
	entry  entry
	filter []byte   // nil: the table has no sharding key
	groups [][]byte // group 0, or all
	ids    []uint32 // of the columns with zones
	zones  []block.Zone
}

// writeBlock encodes and writes the rows of one block.
func (w *Writer) writeBlock(b *cutBlock) error {
	if err := w.versioned(b.perRow, b.least, b.greatest); err != nil {
		return err
	}
	s := &w.stored
	*s = storedBlock{groups: s.groups[:0], filter: s.filter[:0], ids: s.ids[:0], zones: s.zones[:0]}
	for i, id := range b.ids {
		if !ofEngine(id) {
			s.ids, s.zones = append(s.ids, id), append(s.zones, b.zones[i])
		}
	}
	if w.o.Key.Sharding > 0 {
		var err error
		if w.hashes, err = w.o.Key.hashes(w.hashes[:0], b.keys); err != nil {
			return err
		}
		s.filter = appendFilter(s.filter, w.hashes)
	}
	if err := w.encode(b); err != nil {
		return fmt.Errorf("encode a block: %w", err)
	}
	s.entry = entry{
		first: bytes.Clone(b.first()), last: bytes.Clone(b.last()), blocks: 1,
		rows: uint64(b.rows), tombstones: uint64(b.tombstones), plain: uint64(b.plain),
		least: b.least, greatest: b.greatest,
	}
	s.seal(w.slice.groups.hasOthers(b.ids))
	return w.store(s)
}

// encode makes the groups of a block. The first that can be split decides how
// all of its slice are.
func (w *Writer) encode(b *cutBlock) error {
	groups, s := &w.slice.groups, &w.stored
	whole := false
	if !w.slice.decided && groups.hasOthers(b.ids) {
		w.slice.decided = true
		if worthSplitting(len(b.ids), b.plain) {
			var err error
			if w.value, err = w.encoder.Encode(w.value[:0], b.rows, b.ids, b.cols); err != nil {
				return err
			}
			r, err := block.Open(w.value)
			if err != nil {
				return err
			}
			groups.split(&r)
			whole = groups.count() == 1
		}
	}
	n := 1
	if groups.hasOthers(b.ids) {
		n = groups.count()
	}
	if n == 1 {
		var err error
		if !whole {
			w.value, err = w.encoder.Encode(w.value[:0], b.rows, b.ids, b.cols)
		}
		s.groups = append(s.groups, w.value)
		return err
	}
	w.parts = resized(w.parts, n)
	for i, id := range b.ids {
		p := &w.parts[groups.of(id)]
		p.ids, p.cols = append(p.ids, id), append(p.cols, b.cols[i])
	}
	w.value = w.value[:0]
	ends := make([]int, n)
	for i := range w.parts {
		p := &w.parts[i]
		var err error
		if w.value, err = w.encoder.Encode(w.value, b.rows, p.ids, p.cols); err != nil {
			return err
		}
		ends[i] = len(w.value)
		clear(p.cols)
		p.ids, p.cols = p.ids[:0], p.cols[:0]
	}
	start := 0
	for _, end := range ends {
		s.groups = append(s.groups, w.value[start:end:end])
		start = end
	}
	return nil
}

// groupPart is the columns of one group of a block.
type groupPart struct {
	ids  []uint32
	cols []arrow.Array
}

// resized has so many elements, the old ones kept.
func resized[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s[:n]
}

// seal fills in what the entry says of the groups; all: they are not group 0
// only.
func (s *storedBlock) seal(all bool) {
	e := &s.entry
	e.encoded = 0
	for _, g := range s.groups {
		e.encoded += uint64(len(g))
	}
	e.all, e.sum = all, groupsSum(s.groups)
}

// groupsSum tells groups of a block that belong together from others: the low
// half of xxhash64 over their own checksums.
func groupsSum(groups [][]byte) uint32 {
	const checksum = 8
	h := xxhash.New()
	for _, g := range groups {
		_, _ = h.Write(g[max(0, len(g)-checksum):]) // a hash takes everything
	}
	var sum [8]byte
	binary.LittleEndian.PutUint64(sum[:], h.Sum64())
	return binary.LittleEndian.Uint32(sum[:])
}

// store writes a block, its filter before it, and notes it in the tail.
func (w *Writer) store(b *storedBlock) error {
	tail := 0
	if w.o.Key.Sharding > 0 {
		tail = len(b.filter)
		w.name = layout.AppendBlockFilter(w.name[:0], w.prefix, w.slice.number, b.entry.last)
		if err := w.set(w.name, b.filter); err != nil {
			return err
		}
	}
	for i, value := range b.groups {
		w.name = layout.AppendBlock(w.name[:0], w.prefix, w.slice.number, b.entry.last, i)
		if err := w.set(w.name, value); err != nil {
			return err
		}
	}
	return w.slice.add(b.entry, b.ids, b.zones, tail)
}
