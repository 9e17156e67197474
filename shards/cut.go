package shards

import (
	"bytes"
	"context"
	"math"
	"slices"

	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// pieceBatches is about how many batches a piece of a scan gives.
const pieceBatches = 4

// maxPieceFactor bounds how much larger pieces get when few columns are read.
const maxPieceFactor = 16

// cutSlice cuts what is wanted of one slice into pieces of about equal bytes, in
// the order of the scan. Small slices and single keys stay whole, without a look
// at any block index.
func (p *scanPlan) cutSlice(of sliceRanges) ([]sliceRanges, error) {
	target := uint64(pieceBatches * p.request.TargetBytes)
	if all := len(p.snapshot.version.schema.Columns); len(p.request.Columns) < all {
		factor := all / max(len(p.request.Columns), 1)
		target *= uint64(min(max(factor, 1), maxPieceFactor))
	}
	if p.request.Parallel == 1 || p.snapshot.plainBytes(of.slice) < 2*target || p.snapshot.allPoints(of.ranges) {
		return []sliceRanges{of}, nil
	}
	marks, err := p.snapshot.marks(p.ctx, of)
	if err != nil {
		return nil, err
	}
	var list []sliceRanges
	c := cutter{target: target, size: func(m mark) uint64 { return m.plain }}
	c.add(of.ranges, marks)
	for _, ranges := range c.finish(math.MaxInt) {
		list = append(list, sliceRanges{slice: of.slice, ranges: ranges})
	}
	if p.request.Order == Desc {
		slices.Reverse(list)
	}
	return list, nil
}

// plainBytes is what the runs hold of a slice, decoded.
func (s *Snapshot) plainBytes(slice int) uint64 {
	var n uint64
	for _, r := range s.version.runs.of(slice, s.table.slices) {
		n += r.info.Plain
	}
	return n
}

// allPoints reports whether every range is one primary key.
func (s *Snapshot) allPoints(ranges []run.Range) bool {
	for _, r := range ranges {
		if r.Low == nil || r.High == nil {
			return false
		}
		n, err := key.Prefix(s.table.key.Types, r.Low, len(s.table.key.Types))
		if err != nil || n != len(r.Low) {
			return false
		}
		if !bytes.Equal(r.High, key.Next(r.Low)) && !(len(r.High) == n+1 && r.High[n] == 0 && bytes.HasPrefix(r.High, r.Low)) {
			return false
		}
	}
	return len(ranges) > 0
}

// mark is one piece of a block index: everything above the mark before it up to
// last.
type mark struct {
	last           []byte
	rows           uint64
	encoded, plain uint64
}

// marks is the pieces of all runs of a slice that overlap the ranges, in key
// order. Only block indexes are read.
func (s *Snapshot) marks(ctx context.Context, of sliceRanges) ([]mark, error) {
	var list []mark
	var found []run.Piece
	for _, r := range s.version.runs.of(of.slice, s.table.slices) {
		for _, within := range of.ranges {
			if within.Low != nil && bytes.Compare(r.info.Last, within.Low) < 0 ||
				within.High != nil && bytes.Compare(r.info.First, within.High) >= 0 {
				continue
			}
			var err error
			found, err = r.run.run.Pieces(ctx, found[:0], of.slice, r.within(within.Low), within.High)
			if err != nil {
				return nil, err
			}
			for _, f := range found {
				list = append(list, mark{f.Last, f.Rows, f.Encoded, f.Plain})
			}
		}
	}
	slices.SortFunc(list, func(a, b mark) int { return bytes.Compare(a.last, b.last) })
	return list, nil
}

// cutter cuts sorted disjoint ranges at marks so that each group has about
// target bytes; together the groups are exactly the ranges. A cut is just behind
// the last key of a mark.
type cutter struct {
	target uint64
	size   func(mark) uint64
	sofar  uint64 // of group
	group  []run.Range
	groups [][]run.Range
}

// add takes the ranges of one slice, with all marks that overlap them.
func (c *cutter) add(ranges []run.Range, marks []mark) {
	at := 0
	for _, r := range ranges {
		for ; at < len(marks); at++ {
			m := marks[at]
			if r.High != nil && bytes.Compare(m.last, r.High) >= 0 {
				break // the mark reaches behind this range
			}
			c.sofar += c.size(m)
			if c.sofar < c.target || r.Low != nil && bytes.Compare(m.last, r.Low) < 0 {
				continue
			}
			cut := append(bytes.Clone(m.last), 0) // the least key above last
			if r.High != nil && bytes.Compare(cut, r.High) >= 0 {
				continue
			}
			c.group = append(c.group, run.Range{Slice: r.Slice, Low: r.Low, High: cut})
			c.groups = append(c.groups, c.group)
			c.group, c.sofar = nil, 0
			r.Low = cut
		}
		c.group = append(c.group, r)
	}
}

// finish is the groups; what is left over behind most groups joins the last.
func (c *cutter) finish(most int) [][]run.Range {
	switch {
	case len(c.group) == 0:
	case len(c.groups) < most:
		c.groups = append(c.groups, c.group)
	default:
		last := len(c.groups) - 1
		c.groups[last] = append(c.groups[last], c.group...)
	}
	return c.groups
}
