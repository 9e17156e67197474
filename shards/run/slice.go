package run

import (
	"bytes"
	"fmt"

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
	hashes []uint64 // of the leaf's sharding keys
	shard  []byte   // the last sharding key hashed

	index, zoneMaps, filters [][]byte // finished parts
	info                     SliceInfo
}

func newSliceWriter(number int, k KeyColumns, most int) *sliceWriter {
	return &sliceWriter{number: number, key: k, most: most, info: SliceInfo{Slice: number}}
}

// add takes a block that has been written.
func (s *sliceWriter) add(b *cutBlock, encoded uint64) error {
	if s.info.Rows > 0 && bytes.Compare(s.info.Last, b.first()) >= 0 {
		return fmt.Errorf("BUG: key %x does not follow %x", b.first(), s.info.Last)
	}
	e := entry{
		first: bytes.Clone(b.first()), last: bytes.Clone(b.last()), blocks: 1,
		rows: uint64(b.rows), tombstones: uint64(b.tombstones),
		encoded: encoded, plain: uint64(b.plain),
		least: b.least, greatest: b.greatest,
	}
	s.leaf = append(s.leaf, e)
	s.zones.add(b.ids, b.zones)
	if err := s.hash(b); err != nil {
		return err
	}
	if s.info.Rows == 0 {
		s.info.First = e.first
	}
	s.info.Last = e.last
	s.info.Rows += e.rows
	s.info.Tombstones += e.tombstones
	s.info.Bytes += encoded
	s.info.Plain += e.plain
	s.info.Blocks++
	if len(s.leaf) == s.most {
		s.endLeaf()
	}
	return nil
}

// hash gathers the block's distinct sharding keys. Encoded columns are
// prefix-free: a key that begins with a sharding key has it.
func (s *sliceWriter) hash(b *cutBlock) error {
	if s.key.Sharding == 0 {
		return nil
	}
	for i := range b.keys.Len() {
		k := b.keys.At(i)
		if s.shard != nil && bytes.HasPrefix(k, s.shard) && len(s.hashes) > 0 {
			continue
		}
		n, err := key.Prefix(s.key.Types, k, s.key.Sharding)
		if err != nil {
			return fmt.Errorf("BUG: key of a row: %w", err)
		}
		s.shard = append(s.shard[:0], k[:n]...)
		s.hashes = append(s.hashes, key.Hash(s.shard))
	}
	return nil
}

func (s *sliceWriter) endLeaf() {
	s.leaves = append(s.leaves, sum(s.leaf))
	s.index = append(s.index, appendIndex(nil, false, s.leaf))
	s.zoneMaps = append(s.zoneMaps, s.zones.take(nil))
	s.filters = append(s.filters, appendFilter(nil, s.hashes))
	s.leaf, s.hashes = s.leaf[:0], s.hashes[:0]
}

// finish writes the tail. A slice of one leaf has it as part 0 of each kind;
// else part 0 of the index is the root, and the others begin at part 1.
func (s *sliceWriter) finish(set func(name func(dst, prefix []byte, slice, part int) []byte, part int, value []byte) error) (SliceInfo, error) {
	if len(s.leaf) > 0 {
		s.endLeaf()
	}
	first := 0
	if len(s.leaves) > 1 {
		first = 1
		root := appendIndex(nil, true, s.leaves)
		s.info.Bytes += uint64(len(root))
		if err := set(layout.AppendRunIndex, 0, root); err != nil {
			return s.info, err
		}
	}
	for _, kind := range []struct {
		name  func(dst, prefix []byte, slice, part int) []byte
		parts [][]byte
	}{
		{layout.AppendRunIndex, s.index},
		{layout.AppendRunZones, s.zoneMaps},
		{layout.AppendRunFilter, s.filters},
	} {
		for i, value := range kind.parts {
			s.info.Bytes += uint64(len(value))
			if err := set(kind.name, first+i, value); err != nil {
				return s.info, err
			}
		}
	}
	return s.info, nil
}
