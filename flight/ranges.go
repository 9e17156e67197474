package flight

import (
	"bytes"

	"github.com/sheaf-db/sheaf/shards/run"
)

// Ranges here are as package shards takes them: nil is everything, Slice -1
// every slice.

// within is the part of ranges that lies in the given slices (nil: all), each
// range naming one of them.
func within(ranges []run.Range, only []int) []run.Range {
	if only == nil {
		return ranges
	}
	if ranges == nil {
		ranges = []run.Range{{Slice: -1}}
	}
	part := []run.Range{}
	for _, slice := range only {
		for _, r := range ranges {
			if r.Slice == slice || r.Slice == -1 {
				part = append(part, run.Range{Slice: slice, Low: r.Low, High: r.High})
			}
		}
	}
	return part
}

// ordered reports whether ranges are as a scan needs them: in known slices, and
// in each slice ascending and disjoint. Ranges out of tickets are not trusted.
func ordered(ranges []run.Range, slices int) bool {
	ends := map[int][]byte{}
	for _, r := range ranges {
		if r.Slice < -1 || r.Slice >= slices || r.High != nil && bytes.Compare(r.Low, r.High) >= 0 {
			return false
		}
		end, seen := ends[r.Slice]
		if seen && (end == nil || bytes.Compare(r.Low, end) < 0) {
			return false
		}
		ends[r.Slice] = r.High
	}
	_, every := ends[-1]
	return !every || len(ends) == 1
}
