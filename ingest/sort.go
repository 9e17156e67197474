package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/sheaf-db/sheaf/shards/key"
)

// sorted is the rows of a group in one slice: one row for each key, in key
// order.
type sorted struct {
	slice int
	keys  *key.Keys
	rows  []uint32 // the row of the group that each key has in the end
	first []uint32 // the first row that brought it
	again int64    // the first row that brought a key once more; -1: none
}

// split cuts the group's rows by slice and sorts each slice's. Where several
// rows have one key, the first or the last of them stays.
func (g *group) split(keepFirst bool) ([]sorted, error) {
	slice, err := g.slices()
	if err != nil {
		return nil, err
	}
	starts := make([]int, g.binding.schema.Slices+1)
	for _, s := range slice {
		starts[s+1]++
	}
	touched := 0
	for s := range starts[1:] {
		if starts[s+1] > 0 {
			touched++
		}
		starts[s+1] += starts[s]
	}
	order := make([]uint32, len(slice))
	next := slices.Clone(starts)
	for row, s := range slice {
		order[next[s]] = uint32(row)
		next[s]++
	}
	parts := make([]sorted, 0, touched)
	for s := range starts[1:] {
		if starts[s+1] > starts[s] {
			parts = append(parts, sortSlice(&g.keys, order[starts[s]:starts[s+1]], s, keepFirst))
		}
	}
	return parts, nil
}

// slices is the slice of every row.
func (g *group) slices() ([]uint16, error) {
	s := g.binding.schema
	if !s.HiddenID {
		return key.Slices(nil, &g.keys, s.KeyTypes(), len(s.Sharding), s.Slices)
	}
	list := make([]uint16, g.rows())
	for row := range list {
		list[row] = uint16(s.SliceOf(g.keys.At(row)))
	}
	return list, nil
}

// sortSlice sorts rows, which are in the order of arrival. It keeps them as
// they are if they are in key order already, as bulk loads often bring them.
func sortSlice(keys *key.Keys, rows []uint32, slice int, keepFirst bool) sorted {
	if ascending(keys, rows) {
		return sorted{slice: slice, keys: pick(keys, rows), rows: rows, first: rows, again: -1}
	}
	entries := sortRows(keys, rows)
	out := sorted{slice: slice, again: -1, rows: rows[:0:0], first: rows[:0:0]}
	out.rows = make([]uint32, 0, len(entries))
	out.first = make([]uint32, 0, len(entries))
	for i := 0; i < len(entries); {
		end := i + 1
		for end < len(entries) && entries[end].prefix == entries[i].prefix && bytes.Equal(keys.At(int(entries[end].row)), keys.At(int(entries[i].row))) {
			end++
		}
		if end > i+1 {
			if again := int64(entries[i+1].row); out.again < 0 || again < out.again {
				out.again = again
			}
		}
		kept := entries[end-1].row
		if keepFirst {
			kept = entries[i].row
		}
		out.rows = append(out.rows, kept)
		out.first = append(out.first, entries[i].row)
		i = end
	}
	out.keys = pick(keys, out.rows)
	return out
}

// ascending: every key is greater than the one before.
func ascending(keys *key.Keys, rows []uint32) bool {
	last := keys.At(int(rows[0]))
	for _, row := range rows[1:] {
		next := keys.At(int(row))
		if bytes.Compare(last, next) >= 0 {
			return false
		}
		last = next
	}
	return true
}

// entry is a row with the eight bytes of its key that decide most comparisons.
type entry struct {
	prefix uint64
	row    uint32
}

// sortRows sorts by key, rows with equal keys in the order of arrival. The
// bytes that all keys begin with are not compared.
func sortRows(keys *key.Keys, rows []uint32) []entry {
	shared := commonPrefix(keys, rows)
	entries := make([]entry, len(rows))
	for i, row := range rows {
		entries[i] = entry{prefix: leading(keys.At(int(row))[shared:]), row: row}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		if c := bytes.Compare(keys.At(int(a.row))[shared:], keys.At(int(b.row))[shared:]); c != 0 {
			return c
		}
		return cmp.Compare(a.row, b.row)
	})
	return entries
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

// pick copies keys in the order of rows.
func pick(keys *key.Keys, rows []uint32) *key.Keys {
	bytes := 0
	for _, row := range rows {
		bytes += len(keys.At(int(row)))
	}
	out := &key.Keys{}
	out.Grow(len(rows), bytes)
	for _, row := range rows {
		out.Append(keys.At(int(row)))
	}
	return out
}
