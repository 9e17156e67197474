package shards

import (
	"bytes"
	"sync"
	"sync/atomic"

	"github.com/sheaf-db/sheaf/shards/run"
)

// version is one state of a table: what a snapshot sees. Every commit, fold and
// alteration makes the next one from the newest applied; it is never changed
// afterwards, and becomes visible once its batch is synced, in order.
//
// Epochs count a table's versions since the store was opened. A run or a
// generation lives in the versions from the epoch that listed it up to the
// epoch that unlisted it; when no snapshot is held of any of them it leaves the
// disk (garbage.go).
type version struct {
	epoch  uint64
	commit uint64 // newest commit in it
	gone   bool   // the table's last version: it is dropped
	schema *Schema
	runs   *runSet
	delta  *deltaSet
	// Rows of the delta, for counting without reading: entries include
	// tombstones.
	entries, tombstones uint64
}

// tableRun is a listed run, open for reading.
type tableRun struct {
	*listing
	born uint64 // epoch that listed the run first
	run  *run.Run
}

// runSet is the listed runs of a version, shared by versions between which no
// run was listed or unlisted. It is immutable but for what it derives once.
type runSet struct {
	list []*tableRun // in the order in which they were listed

	once    sync.Once
	bySlice [][]sliceRun
}

// sliceRun is one run's share of one slice.
type sliceRun struct {
	run  *tableRun
	info *run.SliceInfo
}

// low is the key below which a fold has taken the rows already; nil: none.
func (r sliceRun) low() []byte {
	if c := r.run.cut(r.info.Slice); c != nil {
		return c.low
	}
	return nil
}

// into is the sequence of the fold that takes the share step by step; 0: none.
func (r sliceRun) into() uint64 {
	if c := r.run.cut(r.info.Slice); c != nil {
		return c.into
	}
	return 0
}

// source is the rows of the share.
func (r sliceRun) source() run.Source { return r.run.run.SourceFrom(r.info.Slice, r.low()) }

// within is low, or the share's own bound where that is higher.
func (r sliceRun) within(low []byte) []byte {
	if bytes.Compare(low, r.low()) < 0 {
		return r.low()
	}
	return low
}

// of is the runs that hold rows of a slice, newest listed first.
func (s *runSet) of(slice, slices int) []sliceRun {
	s.once.Do(func() {
		s.bySlice = make([][]sliceRun, slices)
		for i := len(s.list) - 1; i >= 0; i-- {
			r := s.list[i]
			for j := range r.slices {
				info := &r.slices[j]
				s.bySlice[info.Slice] = append(s.bySlice[info.Slice], sliceRun{run: r, info: info})
			}
		}
	})
	return s.bySlice[slice]
}

func (s *runSet) find(id uint64) *tableRun {
	for _, r := range s.list {
		if r.id == id {
			return r
		}
	}
	return nil
}

// with is the set with some runs unlisted or listed anew, and new ones behind.
func (s *runSet) with(replaced map[uint64]*tableRun, added []*tableRun) *runSet {
	next := &runSet{list: make([]*tableRun, 0, len(s.list)+len(added))}
	for _, r := range s.list {
		if other, ok := replaced[r.id]; !ok {
			next.list = append(next.list, r)
		} else if other != nil {
			next.list = append(next.list, other)
		}
	}
	next.list = append(next.list, added...)
	return next
}

// generation is a piece of a slice's delta that is folded as one. The counts
// grow while it takes writes, under the table's publish lock; readers of the
// estimates load them whenever they like.
type generation struct {
	slice  int
	number uint64
	born   uint64 // epoch that listed it
	frozen bool   // takes no more writes; guarded by the publish lock

	entries, tombstones, size atomic.Uint64
}

func (g *generation) count() generationCount {
	return generationCount{g.number, g.entries.Load(), g.tombstones.Load(), g.size.Load()}
}

// deltaSet is the listed generations of every slice, oldest first, shared by
// versions between which none was listed or unlisted.
type deltaSet struct {
	bySlice [][]*generation
}

func (d *deltaSet) of(slice int) []*generation { return d.bySlice[slice] }

// clone is a set whose lists of generations may be replaced (not changed).
func (d *deltaSet) clone() *deltaSet {
	return &deltaSet{bySlice: append([][]*generation(nil), d.bySlice...)}
}

func (d *deltaSet) sizeOf(slice int) (entries, size uint64) {
	for _, g := range d.bySlice[slice] {
		entries += g.entries.Load()
		size += g.size.Load()
	}
	return entries, size
}

// next is a version after v that is like it.
func (v *version) next() *version {
	n := *v
	n.epoch++
	return &n
}
