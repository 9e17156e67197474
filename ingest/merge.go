package ingest

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// merger builds commits of rows that are partly new: a row whose key exists is
// put together in a batch of its own behind the group's batches, from the sent
// columns of its newest row and the other columns of the row that exists; a row
// with a new key stays where it is, its unsent columns null.
type merger struct {
	look     *look
	unsent   []int // columns of the schema
	ids      []uint32
	merged   []*block.Vector // one for each column of the schema
	rows     []shards.Rows
	prepared []*shards.Prepared
}

func newMerger(l *look) *merger {
	m := &merger{look: l}
	for i, column := range l.group.binding.schema.Columns {
		m.merged = append(m.merged, block.NewVector(l.mem, column.Canonical))
		if l.group.binding.source[i] == absent {
			m.unsent = append(m.unsent, i)
			m.ids = append(m.ids, column.ID)
		}
	}
	return m
}

func (m *merger) release() {
	for _, v := range m.merged {
		v.Release()
	}
}

// part adds the rows of one slice.
func (m *merger) part(ctx context.Context, part sorted) error {
	m.begin(part.slice)
	next := 0
	err := m.look.match(ctx, part, m.ids, func(columns []arrow.Array, row, at int) error {
		m.fresh(part, next, at)
		next = at + 1
		m.both(part, at, columns, row)
		if m.bytes() < limits.CommitBytes {
			return nil
		}
		if err := m.cut(ctx); err != nil {
			return err
		}
		m.begin(part.slice)
		return nil
	})
	if err == nil {
		m.fresh(part, next, part.keys.Len())
	}
	return err
}

func (m *merger) begin(slice int) {
	m.rows = append(m.rows, shards.Rows{Slice: slice, Keys: &key.Keys{}})
}

// fresh adds keys low ≤ i < high of a part, which are new.
func (m *merger) fresh(part sorted, low, high int) {
	to := &m.rows[len(m.rows)-1]
	for i := low; i < high; i++ {
		to.Keys.Append(part.keys.At(i))
	}
	to.Refs = append(to.Refs, m.look.group.refs(part.rows[low:high])...)
}

// both adds a key that exists.
func (m *merger) both(part sorted, at int, existing []arrow.Array, row int) {
	g := m.look.group
	ref := g.refs(part.rows[at : at+1])[0]
	to := &m.rows[len(m.rows)-1]
	to.Keys.Append(part.keys.At(at))
	to.Refs = append(to.Refs, block.Ref{Batch: uint32(len(g.batches)), Row: uint32(m.merged[0].Len())})
	for c, sent := range g.batches[ref.Batch].columns {
		if g.binding.source[c] != absent {
			m.merged[c].AppendArray(sent, int(ref.Row), int(ref.Row)+1)
		}
	}
	for i, c := range m.unsent {
		m.merged[c].AppendArray(existing[i], row, row+1)
	}
}

func (m *merger) bytes() int64 {
	var total int64
	for _, v := range m.merged {
		total += v.Bytes()
	}
	return total
}

// cut prepares what was added so far.
func (m *merger) cut(ctx context.Context) error {
	columns := make([]arrow.Array, len(m.merged))
	for c, v := range m.merged {
		columns[c] = v.NewArray()
	}
	defer releaseAll(columns)
	commit := shards.Commit{
		Schema:  m.look.group.binding.schema,
		Batches: append(m.look.group.columns(), columns),
	}
	for _, rows := range m.rows {
		if rows.Keys.Len() > 0 {
			commit.Slices = append(commit.Slices, rows)
		}
	}
	m.rows = nil
	if len(commit.Slices) == 0 {
		return nil
	}
	prepared, err := m.look.table.Prepare(ctx, commit)
	if err != nil {
		return err
	}
	m.prepared = append(m.prepared, prepared)
	return nil
}
