package shards

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// modelShape is what a model's table looks like, and how it is folded.
type modelShape struct {
	name                 string
	shards, sorts, batch int
	slices               int
	share                int    // of the operations
	beside               bool   // folds go on beside the operations
	steps                uint64 // bytes of a fold's step; 0: all at once
	texts                int    // different texts; 0: 1,000
	textBytes            int    // of each besides; large ones get a column group of their own
	keyBytes             int    // of a sharding key besides
}

var modelShapes = []modelShape{
	{name: "few keys", shards: 6, sorts: 40, batch: 30, slices: 3, share: 1, texts: 3},
	{name: "one slice", shards: 1, sorts: 200, batch: 60, slices: 1, share: 4},
	{name: "many blocks", shards: 3, sorts: 6000, batch: 5000, slices: 2, share: 20, texts: 5},
	{name: "many slices", shards: 200, sorts: 4, batch: 100, slices: 64, share: 8},
	{name: "all slices", shards: 3000, sorts: 2, batch: 1500, slices: 1024, share: 30},
	{name: "long keys", shards: 40, sorts: 40, batch: 100, slices: 3, share: 8, keyBytes: 980},
	{name: "folds beside", shards: 6, sorts: 40, batch: 30, slices: 3, share: 4, beside: true},
	{name: "folds in steps", shards: 6, sorts: 3000, batch: 2000, slices: 2, share: 8, steps: 8 << 10},
	{name: "folds in steps beside", shards: 6, sorts: 3000, batch: 2000, slices: 2, share: 12, beside: true, steps: 8 << 10, texts: 4},
	{name: "column groups", shards: 2, sorts: 4000, batch: 4000, slices: 1, share: 40, textBytes: 400},
	{name: "column groups in steps", shards: 2, sorts: 3000, batch: 3000, slices: 1, share: 40, textBytes: 400, steps: 256 << 10},
}

func (m *model) shardName(shard int) string {
	return fmt.Sprintf("k%d", shard) + strings.Repeat("y", m.keyBytes)
}

// randomText is not compressed away where it is large.
func (m *model) randomText() string {
	texts := m.texts
	if texts == 0 {
		texts = 1000
	}
	n := m.rng.IntN(texts)
	if m.textBytes == 0 {
		return fmt.Sprintf("w%d", n)
	}
	text := make([]byte, m.textBytes)
	for i := range text {
		text[i] = byte(' ' + 1 + uint(n*(i+7919)*(i+31)>>3)%90)
	}
	return fmt.Sprintf("w%d %s", n, text)
}

func (m *model) randomFloat() float64 {
	switch n := m.rng.IntN(12); n {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(m.rng.IntN(2) - 1)
	case 2:
		return math.Copysign(0, -1)
	case 3, 4, 5:
		return math.Ldexp(float64(m.rng.IntN(1000)-500), -20)
	case 6:
		return m.rng.NormFloat64()
	default:
		return float64(m.rng.IntN(100_000)) / 100
	}
}

// prepared is a commit of rows as any of the ways to write bring it.
func (m *model) prepared(rows []values, deletes bool) *Prepared {
	c, release := m.commitOf(m.table, rows, deletes)
	defer release()
	if !deletes && m.rng.IntN(2) == 0 {
		defer m.dealOut(&c)()
	}
	p, err := m.table.Prepare(context.Background(), c)
	if err != nil {
		m.tt.Fatalf("preparing: %v", err)
	}
	return p
}

// dealOut gives each slice columns of its own, in key order or in another one, with
// rows among them that no row of the commit is.
func (m *model) dealOut(c *Commit) (release func()) {
	var columns []arrow.Array
	for i, rows := range c.Slices {
		n := rows.Keys.Len()
		of := m.rng.Perm(n) // which row of the slice a row of the columns is
		if m.rng.IntN(3) > 0 {
			for range m.rng.IntN(3) {
				of = append(of, m.rng.IntN(n))
			}
		} else {
			for j := range of {
				of[j] = j
			}
		}
		dealt := Rows{Slice: rows.Slice, Keys: &key.Keys{}, Order: make([]uint32, n)}
		refs := make([]block.Ref, len(of))
		inOrder := true
		for at, row := range of {
			refs[at] = rows.Refs[row]
			dealt.Keys.Append(rows.Keys.At(row))
			dealt.Order[row] = uint32(at)
			inOrder = inOrder && at == row
		}
		if inOrder && len(of) == n && m.rng.IntN(2) == 0 {
			dealt.Order = nil
		}
		for j, column := range c.Schema.Columns {
			dealt.Columns = append(dealt.Columns, gather(m.mem, column.Canonical, []arrow.Array{c.Batches[0][j]}, refs))
		}
		columns = append(columns, dealt.Columns...)
		c.Slices[i] = dealt
	}
	c.Batches = nil
	return func() { releaseAll(columns) }
}

// foldPlanned does a step of what the policy wants.
func (m *model) foldPlanned() {
	picks := m.table.plan()
	if len(picks) == 0 {
		return
	}
	pick := picks[m.rng.IntN(len(picks))]
	m.note("fold %d runs of slice %d, delta %t: %s", len(pick.runs), pick.slice, pick.delta, pick.why)
	unlock := m.table.folds.tryLatch(pick.slice)
	if unlock == nil {
		return
	}
	defer unlock()
	if _, err := m.table.foldStep(context.Background(), pick); err != nil && (m.endBeside == nil || !errors.Is(err, errFoldStale)) {
		m.tt.Error(err)
	}
	checkSequences(m.tt, m.table)
}

// inLittleMemory makes a scan ask for its memory, all of which is given back.
func (m *model) inLittleMemory(r *ScanRequest) (check func()) {
	gate := budget.NewGate([]int64{64 << 10, 1 << 20, 16 << 20}[m.rng.IntN(3)], time.Minute)
	r.Memory = gate.Open()
	r.Mem = r.Memory.Allocator(m.mem)
	return func() {
		r.Memory.Close()
		if n := gate.Used(); n != 0 {
			m.tt.Errorf("a scan that is over uses %d bytes", n)
		}
	}
}

// randomFilter is one column's, or two columns' that are asked one by one.
func (m *model) randomFilter(s *Snapshot, r *ScanRequest, w *scanWanted) {
	var parts bothFilter
	if m.rng.IntN(3) == 0 {
		above := int64(m.rng.IntN(2400) - 1200)
		w.above = &above
		parts = append(parts, newAboveFilter(m.tt, m.mem, s.Schema().Columns[2].ID, above))
	}
	if m.rng.IntN(3) == 0 {
		w.notLess = m.randomText()
		parts = append(parts, &textFilter{s.Schema().Columns[3].ID, w.notLess})
	}
	switch {
	case len(parts) == 1:
		r.Filter = parts[0]
	case len(parts) == 2:
		m.rng.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		r.Filter = parts
	}
}

// textFilter is the filter w >= least, without pruning.
type textFilter struct {
	column uint32
	least  string
}

func (f *textFilter) Columns() []uint32                             { return []uint32{f.column} }
func (f *textFilter) Prune(func(id uint32) (block.Zone, bool)) bool { return false }

func (f *textFilter) Mask(cols []arrow.Array, rows int, keep []bool) {
	w := cols[0].(*array.String)
	for i := range rows {
		keep[i] = keep[i] && w.IsValid(i) && w.Value(i) >= f.least
	}
}

// bothFilter is a conjunction of filters of one column each.
type bothFilter []run.Filter

func (f bothFilter) Parts() []run.Filter { return f }

func (f bothFilter) Columns() (ids []uint32) {
	for _, part := range f {
		ids = append(ids, part.Columns()...)
	}
	return ids
}

func (f bothFilter) Prune(zone func(id uint32) (block.Zone, bool)) bool {
	for _, part := range f {
		if part.Prune(zone) {
			return true
		}
	}
	return false
}

func (f bothFilter) Mask(cols []arrow.Array, rows int, keep []bool) {
	for i, part := range f {
		part.Mask(cols[i:i+1], rows, keep)
	}
}
