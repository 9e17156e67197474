package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/sheaf-db/sheaf/shards/key"
)

// entry is a row with the eight bytes of its key that decide most comparisons.
type entry struct {
	prefix uint64
	row    uint32
}

// sorter sorts rows by their keys. Its memory is kept from one sort to the next;
// one goroutine uses it at a time.
type sorter struct {
	keys           *key.Keys
	entries, spare []entry
	counts         [8][256]uint32
}

// sorters lends sorters, whose memory is worth keeping.
var sorters = sync.Pool{New: func() any { return &sorter{} }}

const (
	// radixLeast is how many rows are sorted by counting bytes, which costs a
	// little however few there are; fewer are compared.
	radixLeast = 256
	// insertionMost rows are sorted by insertion.
	insertionMost = 12
)

// sort sorts rows, which are in the order of arrival, by key; rows with equal
// keys stay in the order of arrival. The result is valid until the next sort.
//
// Rows are sorted by eight bytes of their keys at a time, from the first byte on
// in which keys differ, and those that tie by what follows; ties that are in
// order already, as those of one sharding key often are, cost a look.
func (s *sorter) sort(keys *key.Keys, rows []uint32) []entry {
	s.keys = keys
	if cap(s.entries) < len(rows) {
		s.entries = make([]entry, len(rows), len(rows)+len(rows)/4)
		s.spare = make([]entry, cap(s.entries))
	}
	s.entries = s.entries[:len(rows)]
	for i, row := range rows {
		s.entries[i].row = row
	}
	if len(rows) > 1 {
		s.order(s.entries, s.spare[:len(rows)], commonPrefix(keys, rows))
	}
	s.keys = nil
	return s.entries
}

// order sorts entries whose keys agree in the first depth bytes.
func (s *sorter) order(entries, spare []entry, depth int) {
	for i := range entries {
		entries[i].prefix = leading(s.rest(entries[i].row, depth))
	}
	s.byPrefix(entries, spare)
	for i := 0; i < len(entries); {
		end := i + 1
		for end < len(entries) && entries[end].prefix == entries[i].prefix {
			end++
		}
		if end > i+1 {
			s.ties(entries[i:end], spare[:end-i], depth)
		}
		i = end
	}
}

// rest is the key of a row behind depth bytes.
func (s *sorter) rest(row uint32, depth int) []byte {
	k := s.keys.At(int(row))
	return k[min(depth, len(k)):]
}

// ties sorts entries with one prefix, which begins at depth; they are in the
// order of arrival.
func (s *sorter) ties(entries, spare []entry, depth int) {
	ascending := true
	last := s.rest(entries[0].row, depth)
	for _, e := range entries[1:] {
		next := s.rest(e.row, depth)
		if bytes.Compare(last, next) > 0 {
			ascending = false
			break
		}
		last = next
	}
	switch {
	case ascending:
	case len(entries) <= insertionMost || s.short(entries, depth+8):
		s.compare(entries, depth)
	default:
		s.order(entries, spare, depth+8)
	}
}

// short: some key ends before depth. It was filled with zeros, which are not in
// the key of another that ties with it. (Keys of one table are never so: none of
// them begins with another.)
func (s *sorter) short(entries []entry, depth int) bool {
	for _, e := range entries {
		if len(s.keys.At(int(e.row))) < depth {
			return true
		}
	}
	return false
}

// compare sorts by the bytes behind depth.
func (s *sorter) compare(entries []entry, depth int) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return bytes.Compare(s.rest(a.row, depth), s.rest(b.row, depth))
	})
}

// byPrefix sorts stably by prefix: by counting its bytes, least first, without
// those that are the same in all.
func (s *sorter) byPrefix(entries, spare []entry) {
	if len(entries) < radixLeast {
		slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.prefix, b.prefix) })
		return
	}
	clear(s.counts[:])
	for i := range entries {
		p := entries[i].prefix
		s.counts[0][byte(p)]++
		s.counts[1][byte(p>>8)]++
		s.counts[2][byte(p>>16)]++
		s.counts[3][byte(p>>24)]++
		s.counts[4][byte(p>>32)]++
		s.counts[5][byte(p>>40)]++
		s.counts[6][byte(p>>48)]++
		s.counts[7][byte(p>>56)]++
	}
	from, to := entries, spare
	for digit := range s.counts {
		counts, shift := &s.counts[digit], 8*digit
		if int(counts[byte(entries[0].prefix>>shift)]) == len(entries) {
			continue
		}
		at := uint32(0)
		for i, n := range counts {
			counts[i] = at
			at += n
		}
		for _, e := range from {
			slot := &counts[byte(e.prefix>>shift)]
			to[*slot] = e
			*slot++
		}
		from, to = to, from
	}
	if &from[0] != &entries[0] {
		copy(entries, from)
	}
}

// leading is the first eight bytes of a key as a number that orders as they do;
// keys that are shorter are filled with zeros.
func leading(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var padded [8]byte
	copy(padded[:], key)
	return binary.BigEndian.Uint64(padded[:])
}

// commonPrefix is how many bytes all keys begin with.
func commonPrefix(keys *key.Keys, rows []uint32) int {
	first := keys.At(int(rows[0]))
	shared := len(first)
	for _, row := range rows[1:] {
		k := keys.At(int(row))
		shared = min(shared, len(k))
		for i := range shared {
			if k[i] != first[i] {
				shared = i
				break
			}
		}
		if shared == 0 {
			break
		}
	}
	return shared
}
