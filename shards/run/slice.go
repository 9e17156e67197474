package run

import (
	"bytes"
	"fmt"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// sliceWriter gathers the tail of the slice being written.
type sliceWriter struct {
	number int
	key    KeyColumns
	most   int     // blocks of a leaf
	leaf   []entry // blocks of the leaf being gathered
	leaves []entry
	zones  zoneWriter

	// groups is decided by the first block that has other columns than go into
	// group 0 in any case.
	groups  grouping
	decided bool

	index    [][]entry  // the leaves' blocks
	zoneMaps [][][]byte // [leaf][group], finished
	info     SliceInfo
}

func newSliceWriter(number int, k KeyColumns, most int) *sliceWriter {
	return &sliceWriter{
		number: number, key: k, most: most, groups: grouping{key: k.IDs},
		info: SliceInfo{Slice: number},
	}
}

// add takes a block that has been written; tail is what its filter takes.
func (s *sliceWriter) add(e entry, ids []uint32, zones []block.Zone, tail int) error {
	if s.info.Rows > 0 && bytes.Compare(s.info.Last, e.first) >= 0 {
		return fmt.Errorf("BUG: key %x does not follow %x", e.first, s.info.Last)
	}
	s.leaf = append(s.leaf, e)
	s.zones.add(ids, zones)
	if s.info.Rows == 0 {
		s.info.First = e.first
	}
	s.info.Last = e.last
	s.info.Rows += e.rows
	s.info.Tombstones += e.tombstones
	s.info.Bytes += e.encoded + uint64(tail)
	s.info.Plain += e.plain
	s.info.Blocks++
	if len(s.leaf) == s.most {
		s.endLeaf()
	}
	return nil
}

// hashes appends the hashes of the distinct sharding keys of a block. Encoded
// columns are prefix-free: a key that begins with a sharding key has it.
func (k KeyColumns) hashes(dst []uint64, keys *key.Keys) ([]uint64, error) {
	var shard []byte
	for i := range keys.Len() {
		next := keys.At(i)
		if shard != nil && bytes.HasPrefix(next, shard) {
			continue
		}
		n, err := key.Prefix(k.Types, next, k.Sharding)
		if err != nil {
			return dst, fmt.Errorf("BUG: key of a row: %w", err)
		}
		shard = next[:n]
		dst = append(dst, key.Hash(shard))
	}
	return dst, nil
}

func (s *sliceWriter) endLeaf() {
	s.leaves = append(s.leaves, sum(s.leaf))
	s.index = append(s.index, s.leaf)
	s.zoneMaps = append(s.zoneMaps, s.zones.take(&s.groups))
	s.leaf = nil
}

// finish writes the tail. A slice of one leaf has it as part 0 of each kind;
// else part 0 of the index is the root, and the others begin at part 1.
func (s *sliceWriter) finish(prefix []byte, set func(name, value []byte) error) (SliceInfo, error) {
	if len(s.leaf) > 0 {
		s.endLeaf()
	}
	var name []byte
	write := func(at, value []byte) error {
		name = at
		s.info.Bytes += uint64(len(value))
		return set(name, value)
	}
	first := 0
	if len(s.leaves) > 1 {
		first = 1
		if err := write(layout.AppendRunIndex(name[:0], prefix, s.number, 0), appendIndex(nil, true, &s.groups, s.leaves)); err != nil {
			return s.info, err
		}
	}
	for i, entries := range s.index {
		value := appendIndex(nil, false, &s.groups, entries)
		if err := write(layout.AppendRunIndex(name[:0], prefix, s.number, first+i), value); err != nil {
			return s.info, err
		}
	}
	for i, values := range s.zoneMaps {
		for group := range s.groups.count() {
			value := s.zonesOf(i, group, values)
			if err := write(layout.AppendRunZones(name[:0], prefix, s.number, first+i, group), value); err != nil {
				return s.info, err
			}
		}
	}
	return s.info, nil
}

// zonesOf is the zone maps of a leaf and group. A leaf that ended before there
// were groups has no columns of theirs.
func (s *sliceWriter) zonesOf(leaf, group int, values [][]byte) []byte {
	if group < len(values) {
		return values[group]
	}
	none := zoneWriter{blocks: len(s.index[leaf])}
	return none.value(nil)
}
