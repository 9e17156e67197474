package shards

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

func (m *model) hold() {
	if len(m.held) >= 4 {
		i := m.rng.IntN(len(m.held))
		m.held[i].snapshot.Release()
		m.held = slices.Delete(m.held, i, i+1)
	}
	m.held = append(m.held, heldModel{m.snapshot(m.table), m.content.clone()})
}

func (m *model) checkHeld() {
	if len(m.held) > 0 {
		m.check(m.held[m.rng.IntN(len(m.held))])
	}
}

func (m *model) now() heldModel { return heldModel{content: m.content} }

// check compares one random scan with the map.
func (m *model) check(h heldModel) {
	s := h.snapshot
	if s == nil {
		s = m.snapshot(m.table)
		defer s.Release()
	}
	if s.Commit() != h.content.commit {
		m.tt.Fatalf("a snapshot is of commit %d, want %d", s.Commit(), h.content.commit)
	}
	r, wanted := m.randomScan(s)
	m.note("scan %+v", r)
	if m.rng.IntN(4) == 0 {
		defer m.inLittleMemory(&r)()
	}
	got, err := m.tryScan(s, r)
	if err != nil {
		m.tt.Errorf("scanning: %v", err)
		return
	}
	want, keys := m.expected(s, h.content, r, wanted)
	if r.Order != Any {
		for n, k := range m.lastKeys {
			if n > len(keys) || keys[n-1] != k {
				m.tt.Errorf("scan %+v: the last key after %d rows is %x", r, n, k)
			}
		}
	}
	if r.Limit >= 0 && r.Order == Any {
		if len(got) != len(want) && len(got) != int(r.Limit) || len(got) > len(want) {
			m.tt.Errorf("a scan with limit %d gave %d of %d rows", r.Limit, len(got), len(want))
		}
		return
	}
	if r.Limit >= 0 && int(r.Limit) < len(want) {
		want = want[:r.Limit]
	}
	a, b := format(got), format(want)
	if r.Order == Any {
		a, b = sortLines(a), sortLines(b)
	}
	if a != b {
		m.tt.Errorf("scan %+v at commit %d: got\n%.2000s\nwant\n%.2000s", r, s.Commit(), a, b)
	}
	if n, exact := s.Rows(); exact && n != uint64(len(h.content.rows)) || n < uint64(len(h.content.rows)) {
		m.tt.Errorf("%d rows are counted, exact %t, there are %d", n, exact, len(h.content.rows))
	}
}

func sortLines(text string) string {
	lines := bytes.SplitAfter([]byte(text), []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return string(bytes.Join(lines, nil))
}

// scanWanted is a random scan in the words of the map.
type scanWanted struct {
	ranges  []run.Range
	above   *int64 // v > above
	notLess string // w >= notLess; empty: any w
}

func (m *model) randomScan(s *Snapshot) (ScanRequest, scanWanted) {
	var w scanWanted
	r := ScanRequest{Limit: -1, Order: Order(m.rng.IntN(3)), Parallel: 1 + m.rng.IntN(4), Keys: m.rng.IntN(4) == 0}
	if m.rng.IntN(2) == 0 {
		r.TargetBytes = 1 + m.rng.IntN(20000)
	}
	for _, c := range s.Schema().Columns {
		if m.rng.IntN(3) > 0 {
			r.Columns = append(r.Columns, c.ID)
		}
	}
	m.rng.Shuffle(len(r.Columns), func(i, j int) { r.Columns[i], r.Columns[j] = r.Columns[j], r.Columns[i] })
	if m.rng.IntN(3) == 0 {
		r.Columns = append(r.Columns, block.ColumnCommit)
	}
	if m.rng.IntN(3) == 0 {
		r.Limit = int64(m.rng.IntN(40))
	}
	if m.rng.IntN(5) == 0 {
		r.Slices = []int{m.rng.IntN(m.slices)}
	}
	if m.rng.IntN(2) == 0 {
		r.Ranges = m.randomRanges()
		w.ranges = r.Ranges
	}
	m.randomFilter(s, &r, &w)
	return r, w
}

// randomRanges is a few sorted disjoint ranges, of one slice or of all: whole
// shards, single keys, spans between two keys.
func (m *model) randomRanges() []run.Range {
	bounds := [][]byte{}
	for range 2 * (1 + m.rng.IntN(3)) {
		k := []byte(m.keyOf(values{m.shardName(m.rng.IntN(m.shards)), int64(m.rng.IntN(m.sorts))}))
		switch m.rng.IntN(4) {
		case 0:
			k = k[:len(k)-8] // all of the shard
		case 1:
			k = append(k, 0) // just behind the key
		}
		bounds = append(bounds, k)
	}
	slice := -1
	if m.rng.IntN(3) == 0 {
		slice = m.rng.IntN(m.slices)
	}
	if m.rng.IntN(3) == 0 { // points
		var ranges []run.Range
		for _, k := range bounds {
			ranges = append(ranges, run.Range{Slice: slice, Low: k, High: append(bytes.Clone(k), 0)})
		}
		slices.SortFunc(ranges, func(a, b run.Range) int { return bytes.Compare(a.Low, b.Low) })
		return slices.CompactFunc(ranges, func(a, b run.Range) bool { return bytes.Compare(b.Low, a.High) < 0 })
	}
	slices.SortFunc(bounds, bytes.Compare)
	bounds = slices.CompactFunc(bounds, bytes.Equal)
	var ranges []run.Range
	for i := 0; i+1 < len(bounds); i += 2 {
		ranges = append(ranges, run.Range{Slice: slice, Low: bounds[i], High: bounds[i+1]})
	}
	if len(ranges) == 0 {
		return []run.Range{{Slice: slice, Low: bounds[0]}}
	}
	if m.rng.IntN(4) == 0 {
		ranges[0].Low = nil
	}
	if m.rng.IntN(4) == 0 {
		ranges[len(ranges)-1].High = nil
	}
	return ranges
}

// expected is what the map says, without the limit, and the rows' keys.
func (m *model) expected(s *Snapshot, c modelContent, r ScanRequest, w scanWanted) (rows []values, found []string) {
	keys := slices.Sorted(maps.Keys(c.rows))
	if r.Order == Desc {
		slices.Reverse(keys)
	}
	v, w4 := s.Schema().Columns[2].ID, s.Schema().Columns[3].ID
	for _, k := range keys {
		row := c.rows[k]
		shard, err := key.Prefix(s.Schema().KeyTypes(), []byte(k), 1)
		if err != nil {
			m.tt.Fatal(err)
		}
		slice := s.Schema().SliceOf([]byte(k)[:shard])
		if r.Slices != nil && !slices.Contains(r.Slices, slice) || w.ranges != nil && !within(w.ranges, slice, k) {
			continue
		}
		if w.above != nil && (row.cells[v] == nil || row.cells[v].(int64) <= *w.above) {
			continue
		}
		if text, _ := row.cells[w4].(string); text < w.notLess {
			continue
		}
		out := values{}
		for _, id := range r.Columns {
			if id == block.ColumnCommit {
				out = append(out, int64(row.version))
			} else {
				out = append(out, row.cells[id])
			}
		}
		rows, found = append(rows, out), append(found, k)
	}
	return rows, found
}

func within(ranges []run.Range, slice int, k string) bool {
	for _, r := range ranges {
		if (r.Slice < 0 || r.Slice == slice) && k >= string(r.Low) && (r.High == nil || k < string(r.High)) {
			return true
		}
	}
	return false
}

// aboveFilter is the filter v > above, with pruning by zones.
type aboveFilter struct {
	column uint32
	above  int64
	bound  []byte
}

func newAboveFilter(tb testing.TB, mem interface {
	Allocate(int) []byte
	Reallocate(int, []byte) []byte
	Free([]byte)
}, column uint32, above int64) *aboveFilter {
	a := buildColumn(tb, mem, arrow.PrimitiveTypes.Int64, []values{{above}}, 0)
	defer a.Release()
	bound, ok := block.ZoneValue(a, 0)
	if !ok {
		tb.Fatal(errors.New("an int64 has no zone value"))
	}
	return &aboveFilter{column, above, bytes.Clone(bound)}
}

func (f *aboveFilter) Columns() []uint32 { return []uint32{f.column} }

func (f *aboveFilter) Prune(zone func(uint32) (block.Zone, bool)) bool {
	z, ok := zone(f.column)
	return ok && (z.Nulls == z.Rows || z.Max != nil && bytes.Compare(z.Max, f.bound) <= 0)
}

func (f *aboveFilter) Mask(cols []arrow.Array, rows int, keep []bool) {
	v := cols[0].(*array.Int64)
	for i := range rows {
		keep[i] = keep[i] && v.IsValid(i) && v.Value(i) > f.above
	}
}
