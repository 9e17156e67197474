package shards

import (
	"bytes"
	"cmp"
	"slices"
)

// The fold policy is tiered, slice by slice, over the runs of a slice and its
// delta. With n the bytes of a slice:
//
//   - At most tierRuns-1 runs of about one size (within a factor of tierRatio)
//     overlap anywhere for long, so at most (tierRuns-1) · (1 + log₄(n / 1 MiB))
//     runs overlap a key: 18 in a slice of 1 GiB.
//   - A run is merged with at least tierRuns-1 others of a quarter of its size or
//     more, so the result is at least 1.75 times as large: a row is rewritten at
//     most log₁.₇₅(n / 1 MiB) times, 13 in a slice of 1 GiB, and typically, with
//     runs of equal size, log₄: 5.
//   - A run of which more is dead than alive is rewritten for that alone, once:
//     its dead bytes stay below the live ones.
//   - When more than a quarter of the rows of runs that hang together are
//     deletes, all of these are merged, and the deletes go with what they hide.
const (
	// foldDeltaBytes is the delta of one slice (keys and payloads) that starts
	// a fold, foldDeltaTotal that of a table: its largest slices are folded.
	foldDeltaBytes = 4 << 20
	foldDeltaTotal = 64 << 20

	tierRuns  = 4
	tierRatio = 4
	// tierFloor: runs below it count as one size.
	tierFloor = 1 << 20

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
	if s.deltaSize >= foldDeltaBytes {
		p.delta, p.why = true, "delta"
	}
	for _, component := range components(s.runs) {
		if tooManyDeletes(component) {
			// The deletes can go if nothing older is left out: of the runs
			// nothing that overlaps is, and an old delta is folded first.
			if s.oldestDelta <= greatestOf(component) {
				return foldPick{slice: s.slice, delta: true, why: "delta below deletes"}
			}
			return foldPick{slice: s.slice, runs: component, why: "deletes"}
		}
		if tier := pickTier(component); len(tier) > len(p.runs) {
			p.runs, p.why = tier, "overlap"
		}
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

// depth is the largest number of runs of a slice that overlap one key.
func depth(runs []sliceRun) int {
	type edge struct {
		key []byte
		end bool
	}
	var edges []edge
	for _, r := range runs {
		edges = append(edges, edge{r.info.First, false}, edge{r.info.Last, true})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := bytes.Compare(a.key, b.key); c != 0 {
			return c
		}
		switch { // ranges are closed: what begins at a key meets what ends there
		case a.end == b.end:
			return 0
		case a.end:
			return 1
		}
		return -1
	})
	now, most := 0, 0
	for _, e := range edges {
		if e.end {
			now--
			continue
		}
		now++
		most = max(most, now)
	}
	return most
}

// pickTier is the smallest runs of a component up to and with the first
// tierRuns of about one size; nil if there are none.
func pickTier(component []sliceRun) []sliceRun {
	if depth(component) < tierRuns {
		return nil
	}
	size := func(r sliceRun) uint64 { return max(r.info.Bytes, tierFloor) }
	sorted := slices.Clone(component)
	slices.SortFunc(sorted, func(a, b sliceRun) int { return cmp.Compare(size(a), size(b)) })
	for i := 0; i+tierRuns <= len(sorted); i++ {
		end := i + tierRuns
		if size(sorted[end-1]) > tierRatio*size(sorted[i]) {
			continue
		}
		for end < len(sorted) && size(sorted[end]) <= tierRatio*size(sorted[i]) {
			end++ // all of that size, while it is being done
		}
		return sorted[:end]
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

func greatestOf(runs []sliceRun) uint64 {
	var greatest uint64
	for _, r := range runs {
		greatest = max(greatest, r.run.greatest)
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
// later is newer than everything merged.
func keepsTombstones(v *version, slice, slices int, runs []sliceRun, generations []*generation, first, last []byte) bool {
	var greatest uint64
	merged := map[uint64]bool{}
	for _, r := range runs {
		merged[r.run.id] = true
		greatest = max(greatest, r.run.greatest)
	}
	if len(generations) > 0 {
		greatest = v.commit
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
