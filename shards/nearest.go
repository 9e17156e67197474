package shards

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest is the up to three names that are spelt most like the one asked for,
// for messages; none where nothing is near.
func Nearest(asked string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, name := range names {
		if d := editDistance(strings.ToLower(asked), strings.ToLower(name)); d <= 1+len(asked)/3 {
			found = append(found, near{name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// editDistance counts the single-byte insertions, deletions and replacements
// between two names (Levenshtein, one row of the table at a time). Only their
// beginnings count, so that hostile names cost little.
func editDistance(a, b string) int {
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
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
