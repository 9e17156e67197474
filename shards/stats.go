package shards

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// SliceStat is what one slice holds. Rows of the runs count hidden and deleted
// rows until a fold has merged them; DeltaRows counts writes and deletes.
type SliceStat struct {
	Slice                 int
	Rows, Bytes           uint64 // of the runs; bytes as encoded on disk
	Runs                  int
	DeltaRows, DeltaBytes uint64
}

// SliceStats is one SliceStat a slice, in order. Nothing is read.
func (s *Snapshot) SliceStats() []SliceStat {
	list := make([]SliceStat, s.table.slices)
	for slice := range list {
		stat := &list[slice]
		stat.Slice = slice
		for _, r := range s.version.runs.of(slice, s.table.slices) {
			stat.Runs++
			stat.Rows += r.info.Rows - r.info.Tombstones
			stat.Bytes += r.info.Bytes
		}
		stat.DeltaRows, stat.DeltaBytes = s.version.delta.sizeOf(slice)
	}
	return list
}

// Bytes is what the table takes on disk: the live parts of its runs and its
// delta.
func (s *Snapshot) Bytes() uint64 {
	var n uint64
	for _, stat := range s.SliceStats() {
		n += stat.Bytes + stat.DeltaBytes
	}
	return n
}

// Rows is the number of rows, from counts alone. It is exact if no key can be
// hidden: no deletes, no two runs of a slice that overlap, no delta (in a table
// without key a delta hides nothing). Else it is an upper bound of the rows.
func (s *Snapshot) Rows() (n uint64, exact bool) {
	v := s.version
	exact = v.tombstones == 0 && (v.entries == 0 || v.schema.HiddenID)
	n = v.entries - v.tombstones
	for slice := range s.table.slices {
		runs := v.runs.of(slice, s.table.slices)
		for _, r := range runs {
			n += r.info.Rows - r.info.Tombstones
			if r.info.Tombstones > 0 {
				exact = false
			}
		}
		if exact && overlap(runs) {
			exact = false
		}
	}
	return n, exact
}

// overlap reports whether the key ranges of any two runs of a slice meet.
func overlap(runs []sliceRun) bool {
	if len(runs) < 2 {
		return false
	}
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b sliceRun) int { return bytes.Compare(a.info.First, b.info.First) })
	for i := 1; i < len(sorted); i++ {
		if bytes.Compare(sorted[i].info.First, sorted[i-1].info.Last) <= 0 {
			return true
		}
	}
	return false
}

// Estimate is about how many rows and encoded bytes the ranges (nil: everything)
// hold, by block indexes.
func (s *Snapshot) Estimate(ctx context.Context, ranges []run.Range) (rows, bytes uint64, err error) {
	for _, of := range s.split(ranges, nil) {
		marks, err := s.marks(ctx, of)
		if err != nil {
			return 0, 0, err
		}
		for _, m := range marks {
			rows += m.rows
			bytes += m.encoded
		}
		if entries, size := s.version.delta.sizeOf(of.slice); len(of.ranges) == 1 && of.ranges[0].Low == nil && of.ranges[0].High == nil {
			rows += entries
			bytes += size
		}
	}
	return rows, bytes, nil
}

// Cuts cuts ranges (nil: everything) into at most n disjoint groups of about
// equal bytes, at primary keys; together they hold exactly the rows of the
// ranges at this snapshot. At least one group comes back.
func (s *Snapshot) Cuts(ctx context.Context, ranges []run.Range, n int) ([][]run.Range, error) {
	var total uint64
	size := func(m mark) uint64 { return m.encoded }
	wanted := s.split(ranges, nil)
	marks := make([][]mark, len(wanted))
	for i, of := range wanted {
		var err error
		if marks[i], err = s.marks(ctx, of); err != nil {
			return nil, err
		}
		for _, m := range marks[i] {
			total += size(m)
		}
	}
	n = max(n, 1)
	c := cutter{target: max((total+uint64(n)-1)/uint64(n), 1), size: size}
	for i, of := range wanted {
		c.add(of.ranges, marks[i])
	}
	groups := c.finish(n)
	if len(groups) == 0 {
		groups = [][]run.Range{{}}
	}
	return groups, nil
}

// KeyBytes is about what the rows of one sharding key take.
type KeyBytes struct {
	Key         []byte // encoded sharding key
	Slice       int
	Rows, Bytes uint64 // bytes as encoded on disk
}

// LargestKeys is the n sharding keys with the most bytes, largest first, by
// block indexes: a block belongs to a key as far as its neighbours tell. Keys of
// less than a block are not told apart.
func (s *Snapshot) LargestKeys(ctx context.Context, n int) ([]KeyBytes, error) {
	var largest []KeyBytes
	for slice := range s.table.slices {
		found := map[string]*KeyBytes{}
		for _, r := range s.version.runs.of(slice, s.table.slices) {
			if err := s.weighKeys(ctx, r, found); err != nil {
				return nil, err
			}
		}
		for text, k := range found {
			k.Key, k.Slice = []byte(text), slice
			largest = append(largest, *k)
		}
		slices.SortFunc(largest, func(a, b KeyBytes) int {
			if c := cmp.Compare(b.Bytes, a.Bytes); c != 0 {
				return c
			}
			return bytes.Compare(a.Key, b.Key)
		})
		largest = largest[:min(n, len(largest))]
	}
	return largest, nil
}

// weighKeys adds one run's blocks to the sharding keys of their last rows: half
// of a block in which that key begins, all of one that it fills.
func (s *Snapshot) weighKeys(ctx context.Context, r sliceRun, found map[string]*KeyBytes) error {
	pieces, err := r.run.run.Pieces(ctx, nil, r.info.Slice, r.low(), nil)
	if err != nil {
		return err
	}
	before := s.shardOf(r.info.First)
	for _, p := range pieces {
		shard := s.shardOf(p.Last)
		k := found[string(shard)]
		if k == nil {
			k = &KeyBytes{}
			found[string(shard)] = k
		}
		share := uint64(2)
		if bytes.Equal(before, shard) {
			share = 1
		}
		k.Rows += p.Rows / share
		k.Bytes += p.Encoded / share
		before = shard
	}
	return nil
}

// shardOf is the sharding key in front of a primary key.
func (s *Snapshot) shardOf(primary []byte) []byte {
	n, err := key.Prefix(s.table.key.Types, primary, len(s.version.schema.Sharding))
	if err != nil {
		return primary
	}
	return primary[:n]
}
