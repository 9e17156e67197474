package shards

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

// The fold policy is tiered, slice by slice, over the runs of a slice and its
// delta. What one fold wrote, in one step or many, is a sequence: runs that do
// not overlap one another and count as one, of their common size; the run of a
// commit is a sequence of its own. With n the bytes of a slice:
//
//   - Of the sequences over one key at most tierSequences-1 are of about one size
//     (within a factor of tierRatio) for long, so at most
//     (tierSequences-1) · (1 + log₄(n / 64 KiB)) of them lie over a key: 24 in a
//     slice of 1 GiB. Usually there are half as many, since a fold takes all
//     that are smaller along.
//   - A sequence is merged with at least tierSequences-1 others of a quarter of
//     its size or more, so the result is at least 1.75 times as large, and with
//     equal sizes 4 times. So a row is written at most
//     3 + log₁.₇₅(n / first size) times by folds (writes), and with equal sizes
//     about 3 + log₄: once out of the delta, once for dead bytes or as a small
//     run, once for deletes, and once a tier.
//   - A run of which more is dead than alive is rewritten for that alone, once:
//     its dead bytes stay below the live ones.
//   - When more than a quarter of the rows of runs that hang together are
//     deletes, all of these are merged, and the deletes go with what they hide.
//
// A fold of more than a step goes up the key range in steps, each listed when it
// is done; what is left of its inputs is marked in their manifest entries, so
// that whoever looks next goes on, after a restart too. Until it has ended only
// folds of a single step come before it.
type foldPolicy struct {
	// deltaBytes is the delta of one slice (keys and payloads) that starts
	// a fold, deltaTotal that of a table: its largest slices are folded.
	deltaBytes, deltaTotal uint64
	// deltaEntries: commits of a row each are small but cost a scan about
	// 3 µs a row (BenchmarkScanOfTinyCommits).
	deltaEntries uint64
	// floor: sequences below it count as one size.
	floor uint64
	// smallRun and smallRuns bound the number of runs that overlap nothing: so
	// many small neighbours in one slice are merged into one.
	smallRun  uint64
	smallRuns int
	// stepBytes of inputs are merged in one step, runBytes cut what it writes.
	stepBytes, runBytes uint64
}

func defaultPolicy() *foldPolicy {
	return &foldPolicy{
		deltaBytes: 4 << 20, deltaTotal: 64 << 20, deltaEntries: 8192,
		floor: 64 << 10, smallRun: 8 << 20, smallRuns: 64,
		stepBytes: 128 << 20, runBytes: 192 << 20,
	}
}

const (
	tierSequences = 4
	tierRatio     = 4
)

// depth bounds the sequences over one key of a slice of so many bytes.
func (p *foldPolicy) depth(bytes uint64) int {
	tiers := 1 + math.Log(float64(max(bytes, p.floor))/float64(p.floor))/math.Log(tierRatio)
	return int((tierSequences - 1) * tiers)
}

// writes bounds how often folds write a row of a slice of so many bytes, whose
// commits bring first bytes each.
func (p *foldPolicy) writes(bytes, first uint64) float64 {
	least := max(first, p.floor)
	return 3 + math.Log(max(float64(bytes)/float64(least), 1))/math.Log(1+(tierSequences-1)/float64(tierRatio))
}

// foldPick is what a fold is to merge of one slice.
type foldPick struct {
	slice int
	delta bool
	runs  []sliceRun
	into  uint64 // the sequence that a fold begun before writes; 0: none
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
func (pol *foldPolicy) planFolds(all []slicePieces) []foldPick {
	var total uint64
	for _, s := range all {
		total += s.deltaSize
	}
	var picks []foldPick
	for _, s := range all {
		if p := pol.planSlice(s); !p.empty() {
			picks = append(picks, p)
			if p.delta {
				total -= s.deltaSize
			}
		}
	}
	if total <= pol.deltaTotal {
		return picks
	}
	// The table's delta is too large though no slice's is: fold the largest
	// until half of it is gone.
	bySize := slices.Clone(all)
	slices.SortFunc(bySize, func(a, b slicePieces) int { return cmp.Compare(b.deltaSize, a.deltaSize) })
	for _, s := range bySize {
		if total <= pol.deltaTotal/2 {
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
func (pol *foldPolicy) planSlice(s slicePieces) foldPick {
	p := foldPick{slice: s.slice}
	if s.deltaSize >= pol.deltaBytes || s.deltaEntries >= pol.deltaEntries {
		p.delta, p.why = true, "delta"
	}
	begun, others := split(s.runs)
	if len(begun) == 0 {
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
	}
	if tier := pol.pickTier(others); tier != nil && (len(begun) == 0 || bytesOf(tier) <= pol.stepBytes) {
		p.runs, p.why = tier, "overlap"
	}
	if len(begun) > 0 {
		// The delta comes first and apart: its rows may lie below what the fold
		// has done, and would overlap there with the sequence that it writes.
		if len(p.runs) == 0 && !p.delta {
			p.runs, p.into, p.why = begun, begun[0].into(), "begun"
		}
		return p
	}
	if len(p.runs) == 0 {
		if dead := longestRow(s.runs, mostlyDead); len(dead) > 0 {
			p.runs, p.why = dead, "dead bytes"
		}
	}
	if len(p.runs) == 0 {
		small := longestRow(s.runs, func(r sliceRun) bool { return r.info.Bytes < pol.smallRun })
		if len(small) >= pol.smallRuns {
			p.runs, p.why = small, "small runs"
		}
	}
	return p
}

// split is the runs that a fold has begun to take (if there are several such
// folds, of the one with the least number), and the others.
func split(runs []sliceRun) (begun, others []sliceRun) {
	var into uint64
	for _, r := range runs {
		if n := r.into(); n != 0 && (into == 0 || n < into) {
			into = n
		}
	}
	for _, r := range runs {
		if n := r.into(); n == 0 {
			others = append(others, r)
		} else if n == into {
			begun = append(begun, r)
		}
	}
	return begun, others
}

func bytesOf(runs []sliceRun) (n uint64) {
	for _, r := range runs {
		n += r.info.Bytes
	}
	return n
}

// mostlyDead: other slices of a shared run were folded away.
func mostlyDead(r sliceRun) bool {
	return r.run.liveBytes()*2 < r.run.bytes && r.run.written > len(r.run.slices)
}

// longestRow is the longest row of runs like that, in key order, which no other
// run interrupts: merged they overlap nothing that they did not.
func longestRow(runs []sliceRun, like func(sliceRun) bool) []sliceRun {
	var longest, row []sliceRun
	for _, component := range components(runs) {
		for _, r := range component {
			if !like(r) {
				row = nil
				continue
			}
			row = append(row, r)
			if len(row) > len(longest) {
				longest = slices.Clone(row)
			}
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
func (pol *foldPolicy) pickTier(runs []sliceRun) []sliceRun {
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
		q.bytes = max(q.bytes, pol.floor)
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
// is left has no overlap and no deletes, and no fold that was begun.
func planWhole(s slicePieces, first, last []byte) []foldPick {
	const why = "asked for"
	withDelta := foldPick{slice: s.slice, delta: s.deltaEntries > 0, why: why}
	var picks []foldPick
	for _, component := range components(s.runs) {
		wanted, met := len(component) > 1, false
		for _, r := range component {
			wanted = wanted || r.info.Tombstones > 0 || r.into() != 0
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

// keepsTombstones reports whether a fold of these runs below the key high (nil:
// all), and of these generations, whose keys lie in [first, last], must keep its
// deletes: something of the slice that is not merged may hold an older version of
// a deleted key. What is committed later is newer than everything merged, or a
// delete itself.
func keepsTombstones(v *version, slice, slices int, runs []sliceRun, high []byte, generations []*generation, first, last []byte) bool {
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
		if merged[r.run.id] || r.run.least > greatest || high != nil && bytes.Compare(r.info.First, high) >= 0 {
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
