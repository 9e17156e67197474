package shards

import (
	"bytes"
	"cmp"
	"slices"
)

// The fold policy is tiered, slice by slice, over the runs of a slice and its
// delta. What one fold wrote is a sequence: runs that do not overlap one another
// and count as one, of their common size; the run of a commit is a sequence of
// its own. With n the bytes of a slice:
//
//   - Of the sequences over one key at most tierSequences-1 are of about one size
//     (within a factor of tierRatio) for long, so at most
//     (tierSequences-1) · (1 + log₄(n / 64 KiB)) of them lie over a key: 24 in a
//     slice of 1 GiB. Usually there are half as many, since a fold takes all
//     that are smaller along.
//   - A sequence is merged with at least tierSequences-1 others of a quarter of
//     its size or more, so the result is at least 1.75 times as large, and with
//     equal sizes 4 times: a row is rewritten about log₄(n / first size) times,
//     5 for commits of 1 MiB a slice in a slice of 1 GiB.
//   - A run of which more is dead than alive is rewritten for that alone, once:
//     its dead bytes stay below the live ones.
//   - When more than a quarter of the rows of runs that hang together are
//     deletes, all of these are merged, and the deletes go with what they hide.
const (
	// foldDeltaBytes is the delta of one slice (keys and payloads) that starts
	// a fold, foldDeltaTotal that of a table: its largest slices are folded.
	foldDeltaBytes = 4 << 20
	foldDeltaTotal = 64 << 20
	// foldDeltaEntries: commits of a row each are small but cost a scan about
	// 3 µs a row (BenchmarkScanOfTinyCommits).
	foldDeltaEntries = 8192

	tierSequences = 4
	tierRatio     = 4
	// tierFloor: sequences below it count as one size.
	tierFloor = 64 << 10

	// smallRun and smallRuns bound the number of runs that overlap nothing: so
	// many small neighbours in one slice are merged into one.
	smallRun  = 8 << 20
	smallRuns = 64

	// foldedRunBytes cuts what a fold writes.
	foldedRunBytes = 128 << 20
)

// foldPick is what a fold is to merge of one slice.
type foldPick struct {
	slice int
	delta bool
	runs  []sliceRun
	why   string
}

func (p *foldPick) empty() bool { return !p.delta && len(p.runs) == 0 }

// slicePieces is what the policy looks at.
type slicePieces struct {
	slice        int
	runs         []sliceRun
	deltaSize    uint64
	deltaEntries uint64
	oldestDelta  uint64 // number of the oldest generation; the greatest number if none
}

// planFolds is the background policy for a whole table, the most pressing first.
func planFolds(all []slicePieces) []foldPick {
	var total uint64
	for _, s := range all {
		total += s.deltaSize
	}
	var picks []foldPick
	for _, s := range all {
		if p := planSlice(s); !p.empty() {
			picks = append(picks, p)
			if p.delta {
				total -= s.deltaSize
			}
		}
	}
	if total <= foldDeltaTotal {
		return picks
	}
	// The table's delta is too large though no slice's is: fold the largest
	// until half of it is gone.
	bySize := slices.Clone(all)
	slices.SortFunc(bySize, func(a, b slicePieces) int { return cmp.Compare(b.deltaSize, a.deltaSize) })
	for _, s := range bySize {
		if total <= foldDeltaTotal/2 {
			break
		}
		total -= s.deltaSize
		if i := slices.IndexFunc(picks, func(p foldPick) bool { return p.slice == s.slice }); i < 0 {
			picks = append(picks, foldPick{slice: s.slice, delta: true, why: "the table's delta"})
		} else {
			picks[i].delta = true
		}
	}
	return picks
}

// planSlice is the background policy for one slice.
func planSlice(s slicePieces) foldPick {
	p := foldPick{slice: s.slice}
	if s.deltaSize >= foldDeltaBytes || s.deltaEntries >= foldDeltaEntries {
		p.delta, p.why = true, "delta"
	}
	for _, component := range components(s.runs) {
		if !tooManyDeletes(component) {
			continue
		}
		// The deletes can go if nothing older is left out: of the runs nothing
		// that overlaps is, and an old delta is folded first.
		if s.oldestDelta > greatestDelete(component) {
			return foldPick{slice: s.slice, runs: component, why: "deletes"}
		}
		p.delta, p.why = true, "delta below deletes"
	}
	if tier := pickTier(s.runs); tier != nil {
		p.runs, p.why = tier, "overlap"
	}
	if len(p.runs) > 0 {
		return p
	}
	for _, r := range s.runs {
		if r.run.liveBytes()*2 < r.run.bytes && r.run.written > len(r.run.slices) {
			p.runs, p.why = append(p.runs, r), "dead bytes"
		}
	}
	if len(p.runs) == 0 {
		if small := smallNeighbours(s.runs); len(small) >= smallRuns {
			p.runs, p.why = small, "small runs"
		}
	}
	return p
}

// smallNeighbours is the longest row of small runs that no larger one
// interrupts, in key order: merged they overlap nothing that they did not.
func smallNeighbours(runs []sliceRun) []sliceRun {
	var longest, row []sliceRun
	for _, component := range components(runs) {
		for _, r := range component {
			if r.info.Bytes >= smallRun {
				row = nil
				break
			}
			row = append(row, r)
		}
		if len(row) > len(longest) {
			longest = row
		}
	}
	return longest
}

// components groups the runs of a slice into sets whose key ranges hang
// together by overlap, in key order.
func components(runs []sliceRun) [][]sliceRun {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b sliceRun) int { return bytes.Compare(a.info.First, b.info.First) })
	var groups [][]sliceRun
	var last []byte
	for i, r := range sorted {
		if i == 0 || bytes.Compare(r.info.First, last) > 0 {
			groups = append(groups, nil)
			last = r.info.Last
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], r)
		if bytes.Compare(r.info.Last, last) > 0 {
			last = r.info.Last
		}
	}
	return groups
}

// deepest is the runs of a slice over one key where most runs overlap.
func deepest(runs []sliceRun) []sliceRun {
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b sliceRun) int { return bytes.Compare(a.info.First, b.info.First) })
	// Most runs overlap where one of them begins: over, in the order of their
	// ends, are those over that key.
	var over, most []sliceRun
	for _, r := range sorted {
		ended := slices.IndexFunc(over, func(o sliceRun) bool { return bytes.Compare(o.info.Last, r.info.First) >= 0 })
		if ended < 0 {
			ended = len(over)
		}
		over = over[ended:]
		at, _ := slices.BinarySearchFunc(over, r, func(a, b sliceRun) int { return bytes.Compare(a.info.Last, b.info.Last) })
		over = slices.Insert(slices.Clone(over), at, r)
		if len(over) > len(most) {
			most = over
		}
	}
	return most
}

// sequence is what one fold wrote, as far as a slice still lists it.
type sequence struct {
	runs  []sliceRun
	bytes uint64
}

// pickTier is the runs to merge so that fewer overlap: of the sequences over the
// deepest key the first tierSequences of about one size, and all that are
// smaller; nil if there are none.
func pickTier(runs []sliceRun) []sliceRun {
	over := deepest(runs)
	if len(over) < tierSequences {
		return nil
	}
	byNumber := map[uint64]*sequence{}
	for _, r := range over {
		byNumber[r.run.sequence] = &sequence{}
	}
	for _, r := range runs {
		if q := byNumber[r.run.sequence]; q != nil {
			q.runs = append(q.runs, r)
			q.bytes += r.info.Bytes
		}
	}
	var sorted []*sequence
	for _, q := range byNumber {
		q.bytes = max(q.bytes, tierFloor)
		sorted = append(sorted, q)
	}
	slices.SortFunc(sorted, func(a, b *sequence) int { return cmp.Compare(a.bytes, b.bytes) })
	for i := 0; i+tierSequences <= len(sorted); i++ {
		end := i + tierSequences
		if sorted[end-1].bytes > tierRatio*sorted[i].bytes {
			continue
		}
		for end < len(sorted) && sorted[end].bytes <= tierRatio*sorted[i].bytes {
			end++ // all of that size, while it is being done
		}
		var picked []sliceRun
		for _, q := range sorted[:end] {
			picked = append(picked, q.runs...)
		}
		return picked
	}
	return nil
}

func tooManyDeletes(component []sliceRun) bool {
	var rows, deletes uint64
	for _, r := range component {
		rows += r.info.Rows
		deletes += r.info.Tombstones
	}
	return deletes*4 > rows
}

// greatestDelete bounds the versions of the deletes in runs; 0 if they have none.
func greatestDelete(runs []sliceRun) uint64 {
	var greatest uint64
	for _, r := range runs {
		if r.info.Tombstones > 0 {
			greatest = max(greatest, r.run.greatest)
		}
	}
	return greatest
}

// planWhole is what Table.Fold merges of a slice: the delta with every run that
// its keys [first, last] meet, all that overlaps, all that holds deletes. Each
// pick covers a piece of the key range that no other run reaches into, so what
// is left has no overlap and no deletes.
func planWhole(s slicePieces, first, last []byte) []foldPick {
	const why = "asked for"
	withDelta := foldPick{slice: s.slice, delta: s.deltaEntries > 0, why: why}
	var picks []foldPick
	for _, component := range components(s.runs) {
		wanted, met := len(component) > 1, false
		for _, r := range component {
			wanted = wanted || r.info.Tombstones > 0
			met = met || withDelta.delta && meets(r, first, last)
		}
		switch {
		case met:
			withDelta.runs = append(withDelta.runs, component...)
		case wanted:
			picks = append(picks, foldPick{slice: s.slice, runs: component, why: why})
		}
	}
	if withDelta.delta {
		picks = append([]foldPick{withDelta}, picks...)
	}
	return picks
}

// keepsTombstones reports whether a fold of these runs and generations, whose
// keys lie in [first, last], must keep its deletes: something of the slice that
// is not merged may hold an older version of a deleted key. What is committed
// later is newer than everything merged, or a delete itself.
func keepsTombstones(v *version, slice, slices int, runs []sliceRun, generations []*generation, first, last []byte) bool {
	greatest := greatestDelete(runs)
	for _, g := range generations {
		if g.tombstones.Load() > 0 {
			greatest = v.commit
		}
	}
	merged := map[uint64]bool{}
	for _, r := range runs {
		merged[r.run.id] = true
	}
	for _, r := range v.runs.of(slice, slices) {
		if merged[r.run.id] || r.run.least > greatest {
			continue
		}
		if len(generations) > 0 && meets(r, first, last) {
			return true
		}
		for _, input := range runs {
			if meets(r, input.info.First, input.info.Last) {
				return true
			}
		}
	}
	for _, g := range v.delta.of(slice) {
		if !contains(generations, g) && g.number <= greatest {
			return true
		}
	}
	return false
}

// meets reports whether a run's key range meets [first, last].
func meets(r sliceRun, first, last []byte) bool {
	return bytes.Compare(r.info.First, last) <= 0 && bytes.Compare(r.info.Last, first) >= 0
}

func contains(list []*generation, g *generation) bool {
	for _, other := range list {
		if other == g {
			return true
		}
	}
	return false
}
