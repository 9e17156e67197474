package ingest

import (
	"bytes"
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
	var sorter sorter
	for s := range starts[1:] {
		if starts[s+1] > starts[s] {
			parts = append(parts, sortSlice(&sorter, &g.keys, order[starts[s]:starts[s+1]], s, keepFirst))
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
func sortSlice(sorter *sorter, keys *key.Keys, rows []uint32, slice int, keepFirst bool) sorted {
	if ascending(keys, rows) {
		return sorted{slice: slice, keys: pick(keys, rows), rows: rows, first: rows, again: -1}
	}
	entries := sorter.sort(keys, rows)
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

// pick copies keys in the order of rows.
func pick(keys *key.Keys, rows []uint32) *key.Keys {
	out := &key.Keys{}
	out.AppendRows(keys, rows)
	return out
}
