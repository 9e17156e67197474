package run

import (
	"encoding/binary"
	"slices"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
)

// A slice's blocks are split into column groups, a key-value each, if they have
// many columns or a few large ones: reading some columns then reads their groups
// only. What a block of many columns costs more for it is about 2 µs a group, so
// groups are as few as keep 3 of 300 columns, wherever they are, below 5 % of
// the bytes.
const (
	// wideColumns is from how many columns beside the key on a block is split by
	// number. A group then has groupColumns columns, or more so that there are no
	// more than about mostGroups, and about a groupShare-th of the block's bytes at
	// most.
	wideColumns  = 64
	groupColumns = 4
	mostGroups   = 96
	groupShare   = 72
	// wideBytes: a block that is smaller (encoded) is cheaper read as a whole.
	wideBytes = 128 << 10

	// Of fewer columns those are split off that take so many bytes, encoded, and a
	// quarter of the block: documents, vectors. Blocks that are small as plain
	// Arrow are not looked at.
	largeColumn = 64 << 10
	largePlain  = 512 << 10

	// maxGroups bounds the groups of a slice that a reader accepts.
	maxGroups = limits.Columns + 1
)

// blockBytes bounds a block of so many columns as plain Arrow: in a wide table a
// group would be too small for its overhead otherwise.
func blockBytes(columns int) int64 {
	const perColumn, most = 8 << 10, 4
	return int64(min(max(perColumn*columns, limits.BlockBytes), most*limits.BlockBytes))
}

// grouping says in which group of a slice's blocks a column is. It is the same
// for all blocks of the slice. Group 0 has the key and the engine's columns, and
// those before the first start.
type grouping struct {
	key    []uint32
	starts []uint32 // of groups 1, 2, …: the least column id; ascending
}

func (g *grouping) count() int { return 1 + len(g.starts) }

// of is the group of a column.
func (g *grouping) of(id uint32) int {
	if len(g.starts) == 0 || g.always(id) {
		return 0
	}
	at, found := slices.BinarySearch(g.starts, id)
	if found {
		at++
	}
	return at
}

// always is true for columns of group 0, whatever the starts.
func (g *grouping) always(id uint32) bool {
	return ofEngine(id) || slices.Contains(g.key, id)
}

// hasOthers is true if some of the columns need not be in group 0: only then
// does a block have its other groups.
func (g *grouping) hasOthers(ids []uint32) bool {
	return slices.ContainsFunc(ids, func(id uint32) bool { return !g.always(id) })
}

func (g *grouping) equal(o *grouping) bool { return slices.Equal(g.starts, o.starts) }

// worthSplitting tells from what is known before it is encoded whether a block
// may be split.
func worthSplitting(columns int, plain int64) bool {
	return columns >= wideColumns || plain >= largePlain
}

// split finds the groups of a slice whose first block is whole, in one group.
func (g *grouping) split(whole *block.Reader) {
	var ids []uint32
	for _, id := range whole.Columns() {
		if !g.always(id) {
			ids = append(ids, id)
		}
	}
	total := 0
	for _, id := range ids {
		total += whole.ChunkBytes(id)
	}
	if len(ids) >= wideColumns {
		if total >= wideBytes {
			g.splitMany(ids, total, whole)
		}
		return
	}
	g.splitLarge(ids, total, whole)
}

// splitMany puts neighbours into groups of a few columns.
func (g *grouping) splitMany(ids []uint32, total int, whole *block.Reader) {
	most := max(groupColumns, (len(ids)+mostGroups-1)/mostGroups)
	columns, bytes := 0, 0
	for _, id := range ids {
		size := whole.ChunkBytes(id)
		if columns == 0 || columns == most || bytes+size > total/groupShare {
			g.starts = append(g.starts, id)
			columns, bytes = 0, 0
		}
		columns++
		bytes += size
	}
}

// splitLarge gives large columns groups of their own, and those between them one.
func (g *grouping) splitLarge(ids []uint32, total int, whole *block.Reader) {
	after := len(ids) == 1 // nothing would be read without it
	for i, id := range ids {
		size := whole.ChunkBytes(id)
		large := size >= largeColumn && size >= total/4 && len(ids) > 1
		if large || after && i > 0 {
			g.starts = append(g.starts, id)
		}
		after = large
	}
}

// appendGrouping appends the number of groups and their starts.
func appendGrouping(dst []byte, g *grouping) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.count()))
	before := uint32(0)
	for _, id := range g.starts {
		dst = binary.AppendUvarint(dst, uint64(id-before))
		before = id
	}
	return dst
}

// grouping reads what appendGrouping wrote; the caller sets the key columns.
func (s *scanner) grouping() (g grouping) {
	count := s.number()
	if s.err == nil && (count == 0 || count > maxGroups || count-1 > uint64(len(s.data))) {
		s.fail("%d column groups", count)
	}
	if s.err != nil || count == 1 {
		return g
	}
	g.starts = make([]uint32, count-1)
	before := uint64(0)
	for i := range g.starts {
		next := s.number()
		if next == 0 || next > 1<<32-1-before {
			s.fail("column group %d begins %d columns behind %d", i+1, next, before)
			return g
		}
		before += next
		g.starts[i] = uint32(before)
	}
	return g
}
