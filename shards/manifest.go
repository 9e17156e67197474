package shards

import (
	"slices"

	"github.com/sheaf-db/sheaf/shards/run"
)

// listing is the manifest entry of one run: what the store needs to know about
// it without opening it. It is immutable; a fold that takes slices out of a
// shared run lists it again with the slices left.
type listing struct {
	id      uint64
	schema  uint32 // version it was written under
	slices  []run.SliceInfo
	of      int    // slices of the table when the run was written
	written int    // slices the run was written with; more than len(slices): dead bytes
	bytes   uint64 // of the file
	// sequence is shared by the runs that one fold wrote, which do not overlap:
	// the id of the first of them.
	sequence uint64
	commit   uint64 // version of all rows, unless perRow
	perRow   bool
	// least and greatest bound the versions of the rows.
	least, greatest uint64
	// cuts are the slices that a fold is taking step by step, ascending; the
	// SliceInfo of such a slice is what is left of it.
	cuts []cut
}

// cut says how far a fold has come with a run's share of a slice.
type cut struct {
	slice int
	into  uint64 // sequence of what the fold writes
	low   []byte // rows below are folded and dead; nil: none are yet
}

const listingFormat byte = 1

func (l *listing) encode() []byte {
	r := newRecord(listingFormat).number(uint64(l.schema)).number(uint64(l.of)).number(uint64(l.written)).number(l.bytes).number(l.sequence)
	perRow := uint64(0)
	if l.perRow {
		perRow = 1
	}
	r.number(perRow).number(l.commit).number(l.least).number(l.greatest)
	r.number(uint64(len(l.slices)))
	for _, s := range l.slices {
		r.number(uint64(s.Slice)).number(s.Rows).number(s.Tombstones).number(s.Bytes).number(s.Plain).number(uint64(s.Blocks))
		r.bytes(s.First).bytes(s.Last)
	}
	r.number(uint64(len(l.cuts)))
	for _, c := range l.cuts {
		r.number(uint64(c.slice)).number(c.into).bytes(c.low)
	}
	return r.seal()
}

func decodeListing(id uint64, data []byte) (*listing, error) {
	r := readRecord("manifest entry of a run", listingFormat, append([]byte(nil), data...))
	l := &listing{id: id, schema: uint32(r.number()), of: int(r.number()), written: int(r.number()), bytes: r.number(), sequence: r.number()}
	l.perRow, l.commit, l.least, l.greatest = r.number() == 1, r.number(), r.number(), r.number()
	for range r.count() {
		s := run.SliceInfo{
			Slice: int(r.number()), Rows: r.number(), Tombstones: r.number(),
			Bytes: r.number(), Plain: r.number(), Blocks: int(r.number()),
		}
		s.First, s.Last = r.bytes(), r.bytes()
		if n := len(l.slices); s.Slice < 0 || s.Slice >= l.of || n > 0 && l.slices[n-1].Slice >= s.Slice {
			r.fail("names slice %d of %d, or not in order", s.Slice, l.of)
		}
		l.slices = append(l.slices, s)
	}
	for range r.count() {
		c := cut{slice: int(r.number()), into: r.number(), low: r.bytes()}
		if n := len(l.cuts); l.slice(c.slice) == nil || c.into == 0 || n > 0 && l.cuts[n-1].slice >= c.slice {
			r.fail("cuts slice %d, which it does not hold, or not in order", c.slice)
		}
		if len(c.low) == 0 {
			c.low = nil
		}
		l.cuts = append(l.cuts, c)
	}
	return l, r.done()
}

// listingOf describes a run just written, which is a sequence of its own.
func listingOf(id uint64, schema *Schema, info run.Info) *listing {
	return &listing{
		id: id, sequence: id, schema: schema.Version, slices: info.Slices, of: schema.Slices, written: len(info.Slices),
		bytes: info.Bytes, perRow: info.PerRow, least: info.Least, greatest: info.Greatest,
	}
}

// slice is what the run holds of one slice, by binary search; nil if nothing.
func (l *listing) slice(slice int) *run.SliceInfo {
	low, high := 0, len(l.slices)
	for low < high {
		if mid := (low + high) / 2; l.slices[mid].Slice < slice {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(l.slices) && l.slices[low].Slice == slice {
		return &l.slices[low]
	}
	return nil
}

// cut is how far a fold has come with a slice; nil if none has begun.
func (l *listing) cut(slice int) *cut {
	for i := range l.cuts {
		if l.cuts[i].slice == slice {
			return &l.cuts[i]
		}
	}
	return nil
}

// trimmed is the listing when a fold's step has left info of a slice.
func (l *listing) trimmed(info run.SliceInfo, c cut) *listing {
	left := *l
	left.slices = slices.Clone(l.slices)
	*left.slice(info.Slice) = info
	left.cuts = slices.DeleteFunc(slices.Clone(l.cuts), func(other cut) bool { return other.slice == c.slice })
	at, _ := slices.BinarySearchFunc(left.cuts, c.slice, func(other cut, slice int) int { return other.slice - slice })
	left.cuts = slices.Insert(left.cuts, at, c)
	return &left
}

// without is the listing when a fold has taken these slices; nil if none is left.
func (l *listing) without(taken func(slice int) bool) *listing {
	left := *l
	left.slices = nil
	for _, s := range l.slices {
		if !taken(s.Slice) {
			left.slices = append(left.slices, s)
		}
	}
	if len(left.slices) == 0 {
		return nil
	}
	left.cuts = slices.DeleteFunc(slices.Clone(l.cuts), func(c cut) bool { return taken(c.slice) })
	return &left
}

func (l *listing) liveBytes() uint64 {
	var n uint64
	for _, s := range l.slices {
		n += s.Bytes
	}
	return n
}

// A slice's generations are listed in one record, oldest first; the last takes
// new writes. Each is counted, so that a start reads no delta.
const generationsFormat byte = 1

type generationCount struct {
	number                    uint64 // of the commit that began it
	entries, tombstones, size uint64
}

func encodeGenerations(list []generationCount) []byte {
	r := newRecord(generationsFormat).number(uint64(len(list)))
	for _, g := range list {
		r.number(g.number).number(g.entries).number(g.tombstones).number(g.size)
	}
	return r.seal()
}

func decodeGenerations(data []byte) ([]generationCount, error) {
	r := readRecord("list of delta generations", generationsFormat, data)
	var list []generationCount
	for range r.count() {
		list = append(list, generationCount{r.number(), r.number(), r.number(), r.number()})
	}
	return list, r.done()
}

// What is durable under a client's resume id.
const streamFormat byte = 1

func encodeStream(p Progress, commit uint64) []byte {
	return newRecord(streamFormat).number(p.Batches).number(p.Rows).number(commit).seal()
}

func decodeStream(data []byte) (p Progress, commit uint64, err error) {
	r := readRecord("position of a resumable stream", streamFormat, data)
	p = Progress{Batches: r.number(), Rows: r.number()}
	return p, r.number(), r.done()
}

// The last commit number of a table.
const commitFormat byte = 1

func encodeCommit(number uint64) []byte { return newRecord(commitFormat).number(number).seal() }

func decodeCommit(data []byte) (uint64, error) {
	r := readRecord("commit number of a table", commitFormat, data)
	return r.number(), r.done()
}
