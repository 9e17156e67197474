package ingest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sheaf-db/sheaf/shards"
)

func reserved(name string) bool { return strings.HasPrefix(name, shards.ReservedPrefix) }

// suggest is "; did you mean …?" with the up to three names nearest to the one
// asked for, or nothing if none is near.
func suggest(asked string, among []string) string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	most := 1 + len(asked)/4
	for _, name := range among {
		if d := distance(strings.ToLower(asked), strings.ToLower(name)); d <= most {
			near = append(near, candidate{name, d})
		}
	}
	if len(near) == 0 {
		return ""
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var list []string
	for _, c := range near[:min(3, len(near))] {
		list = append(list, strconv.Quote(c.name))
	}
	return "; did you mean " + strings.Join(list, " or ") + "?"
}

// distance is the number of single-byte edits from a to b; only the first bytes
// count, so that hostile names cost little.
func distance(a, b string) int {
	const most = 64
	a, b = a[:min(len(a), most)], b[:min(len(b), most)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
