package run

import (
	"bytes"
	"encoding/binary"
	"sort"
	"sync/atomic"
	"unsafe"
)

// leafBlocks is how many blocks one part of the tail covers: 32 blocks are 65,536
// rows, so that a lookup which finds nothing in memory reads about 2 KiB of index,
// and the root of a run of 256 MiB has some hundred entries.
const leafBlocks = 32

// Kinds of index part. Part 0 is the only leaf of a small slice, or the root,
// whose entry i stands for leaf part i+1.
const (
	indexLeaf byte = 0
	indexRoot byte = 1
)

// entry is one block, or in a root one leaf.
type entry struct {
	first, last      []byte
	blocks           uint64 // 1 in a leaf
	rows, tombstones uint64
	encoded, plain   uint64 // bytes; plain as Arrow
	least, greatest  uint64 // versions of rows; 0, 0 if the run has one version

	// In a leaf of several column groups: whether the block has all of them or
	// group 0 only, and groupsSum of those it has.
	all bool
	sum uint32
}

// index is one decoded part of a block index.
type index struct {
	root    bool
	groups  grouping // without its key columns
	entries []entry
	bytes   int64 // memory it takes

	// verified, of the leaf of a slice of one column group: the checksum of the
	// block was found right. It changes while cursors share the index.
	verified []atomic.Bool
}

// appendIndex appends one part's value.
func appendIndex(dst []byte, root bool, groups *grouping, entries []entry) []byte {
	start, kind := len(dst), indexLeaf
	if root {
		kind = indexRoot
	}
	dst = appendGrouping(append(dst, tailVersion, kind), groups)
	dst = binary.AppendUvarint(dst, uint64(len(entries)))
	var before []byte
	for i := range entries {
		e := &entries[i]
		dst = appendKey(dst, before, e.first)
		dst = appendKey(dst, e.first, e.last)
		before = e.last
		if root {
			dst = binary.AppendUvarint(dst, e.blocks)
		}
		for _, n := range [...]uint64{e.rows, e.tombstones, e.encoded, e.plain, e.least, e.greatest - e.least} {
			dst = binary.AppendUvarint(dst, n)
		}
		if !root && groups.count() > 1 {
			has := byte(0)
			if e.all {
				has = 1
			}
			dst = binary.LittleEndian.AppendUint32(append(dst, has), e.sum)
		}
	}
	return sealTail(dst, start)
}

// parseIndex decodes one part. The result does not alias value.
func parseIndex(value []byte) (*index, error) {
	payload, err := openTail(value)
	if err != nil {
		return nil, err
	}
	s := scanner{data: payload}
	kind := s.byte()
	if s.err == nil && kind > indexRoot {
		s.fail("index kind %d is not known", kind)
	}
	x := &index{root: kind == indexRoot, groups: s.grouping()}
	x.entries = make([]entry, s.count(10))
	// Keys share bytes with those before them: three times what they take here is
	// room enough for most.
	arena := make([]byte, 0, 3*len(s.data)/2)
	var before []byte
	for i := range x.entries {
		if s.err != nil {
			return nil, s.err
		}
		e := &x.entries[i]
		// The arena may move while it grows; slices into its old memory stay
		// good, they only keep it alive.
		at := len(arena)
		arena = s.key(arena, before, maxKey)
		e.first = arena[at:len(arena):len(arena)]
		at = len(arena)
		arena = s.key(arena, e.first, maxKey)
		e.last = arena[at:len(arena):len(arena)]
		e.blocks = 1
		if x.root {
			e.blocks = s.number()
		}
		e.rows, e.tombstones, e.encoded, e.plain = s.number(), s.number(), s.number(), s.number()
		e.least = s.number()
		e.greatest = e.least + s.number()
		e.all = !x.root
		if !x.root && x.groups.count() > 1 {
			has := s.byte()
			e.all, e.sum = has == 1, s.u32()
			if s.err == nil && has > 1 {
				s.fail("index entry %d has %d of its groups", i, has)
			}
		}
		switch {
		case s.err != nil:
			return nil, s.err
		case i > 0 && bytes.Compare(before, e.first) >= 0, bytes.Compare(e.first, e.last) > 0:
			return nil, tailError("index entry %d is out of order", i)
		case e.rows == 0 || e.tombstones > e.rows || e.blocks == 0 || e.blocks > e.rows:
			return nil, tailError("index entry %d has %d rows, %d of them deletes, in %d blocks", i, e.rows, e.tombstones, e.blocks)
		case !x.root && e.rows > maxBlockRows:
			return nil, tailError("index entry %d has %d rows in a block", i, e.rows)
		case e.greatest < e.least:
			return nil, tailError("index entry %d has versions from %d to %d", i, e.least, e.greatest)
		}
		before = e.last
	}
	if s.err != nil {
		return nil, s.err
	}
	if len(x.entries) == 0 || len(s.data) != 0 {
		return nil, tailError("index has %d entries and %d bytes behind them", len(x.entries), len(s.data))
	}
	if !x.root && x.groups.count() == 1 {
		x.verified = make([]atomic.Bool, len(x.entries))
	}
	x.bytes = int64(cap(arena)) + int64(cap(x.entries))*int64(unsafe.Sizeof(entry{})) +
		4*int64(cap(x.groups.starts)) + int64(len(x.verified))*int64(unsafe.Sizeof(atomic.Bool{})) + int64(unsafe.Sizeof(*x))
	return x, nil
}

// maxBlockRows bounds the rows of a block that a reader accepts.
const maxBlockRows = 1 << 20

// seek is the first entry whose last key is not below key (nil: the first).
func (x *index) seek(key []byte) int {
	if key == nil {
		return 0
	}
	return sort.Search(len(x.entries), func(i int) bool { return bytes.Compare(x.entries[i].last, key) >= 0 })
}

// seekBack is the last entry whose first key is below key (nil: the last); -1
// if there is none.
func (x *index) seekBack(key []byte) int {
	if key == nil {
		return len(x.entries) - 1
	}
	return sort.Search(len(x.entries), func(i int) bool { return bytes.Compare(x.entries[i].first, key) >= 0 }) - 1
}

// sum is the entry that stands for all of entries in a root.
func sum(entries []entry) entry {
	total := entry{first: entries[0].first, last: entries[len(entries)-1].last, least: entries[0].least}
	for i := range entries {
		e := &entries[i]
		total.blocks += e.blocks
		total.rows += e.rows
		total.tombstones += e.tombstones
		total.encoded += e.encoded
		total.plain += e.plain
		total.least = min(total.least, e.least)
		total.greatest = max(total.greatest, e.greatest)
	}
	return total
}
