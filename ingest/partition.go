package ingest

import (
	"bytes"
	"context"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// partition is the rows of a group, copied slice by slice, so that each slice is
// sorted and encoded from memory of its own, small enough for a core's cache.
// Rows picked from all over a group cost several times as much: every slice reads
// all of it (see BenchmarkPartition).
//
// A column is copied in one go, batch by batch: a batch's column stays in cache
// while it is dealt out. Columns are dealt out side by side, and slices sorted
// side by side.
type partition struct {
	group  *group
	mem    memory.Allocator
	groups []uint32 // rows of the group: slice by slice, inside one in the order of arrival
	locals []uint32 // the same rows, numbered in their batches
	starts []int    // where the rows of slice s and batch b begin: at s × batches + b
	parts  []*partOf
}

// partOf is the rows of one slice.
type partOf struct {
	slice   int
	keys    key.Keys // in the order of arrival
	order   []uint32 // one row of a key each, in key order; nil: as they came
	vectors []*block.Vector
}

// A partition is made where a slice gets at least partitionRows rows on average, and
// a row in partitionSparse of each batch: every batch is dealt out to every slice;
// stretches of at least longStretch neighbouring rows on average are copied as
// such.
const (
	partitionRows   = 256
	partitionSparse = 4
	longStretch     = 16
	// partitionMost bounds the copy: single batches may be larger.
	partitionMost = 4 * limits.CommitBytes
)

// partitions: the group is to be copied slice by slice.
func (g *group) partitions() bool {
	return g.binding.mode != ModeDelete && g.bytes >= limits.DeltaCommitBytes && g.bytes <= partitionMost &&
		g.rows() >= partitionRows*g.binding.schema.Slices &&
		g.rows()*partitionSparse >= len(g.batches)*g.binding.schema.Slices
}

// partition deals out the group's rows. Where several rows have one key, the
// first or the last of them stays. The caller releases the result; mem need not
// zero what it gives.
func (g *group) partition(ctx context.Context, mem memory.Allocator, keepFirst bool) (*partition, error) {
	slices, err := g.slices()
	if err != nil {
		return nil, err
	}
	p := &partition{group: g, mem: mem}
	p.place(slices)
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(runtime.GOMAXPROCS(0))
	run := func(f func() error) {
		tasks.Go(func() (err error) {
			defer recovered("dealing out rows", &err)
			if err := ctx.Err(); err != nil {
				return err
			}
			return f()
		})
	}
	for _, part := range p.parts {
		run(func() error { return p.sort(part, keepFirst) })
	}
	for c := range g.binding.schema.Columns {
		run(func() error { return p.column(c) })
	}
	if err := tasks.Wait(); err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

// place finds the rows of each slice.
func (p *partition) place(slices []uint16) {
	batches := p.group.batches
	p.starts = make([]int, p.group.binding.schema.Slices*len(batches)+1)
	each := func(do func(b int, first uint32, slices []uint16)) {
		for b, batch := range batches {
			end := len(slices)
			if b+1 < len(batches) {
				end = int(batches[b+1].first)
			}
			do(b, batch.first, slices[batch.first:end])
		}
	}
	each(func(b int, _ uint32, slices []uint16) {
		for _, s := range slices {
			p.starts[int(s)*len(batches)+b+1]++
		}
	})
	for i := range p.starts[1:] {
		p.starts[i+1] += p.starts[i]
	}
	p.groups, p.locals = make([]uint32, len(slices)), make([]uint32, len(slices))
	next := make([]int, p.group.binding.schema.Slices)
	each(func(b int, first uint32, slices []uint16) {
		for s := range next {
			next[s] = p.starts[s*len(batches)+b]
		}
		for row, s := range slices {
			at := next[s]
			next[s] = at + 1
			p.groups[at], p.locals[at] = first+uint32(row), uint32(row)
		}
	})
	for s := range next {
		if lo, hi := p.span(s); lo < hi {
			p.parts = append(p.parts, &partOf{slice: s, vectors: make([]*block.Vector, len(p.group.binding.schema.Columns))})
		}
	}
}

// span is where the rows of a slice are.
func (p *partition) span(slice int) (lo, hi int) {
	n := len(p.group.batches)
	return p.starts[slice*n], p.starts[(slice+1)*n]
}

// sort gathers the keys of a part and finds their order.
func (p *partition) sort(part *partOf, keepFirst bool) error {
	lo, hi := p.span(part.slice)
	part.keys.AppendRows(&p.group.keys, p.groups[lo:hi])
	if part.keys.Descent() == part.keys.Len() {
		return nil
	}
	rows := make([]uint32, hi-lo)
	for i := range rows {
		rows[i] = uint32(i)
	}
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	part.order = rows[:0]
	entries := s.sort(&part.keys, rows)
	for i := 0; i < len(entries); {
		end := i + 1
		for end < len(entries) && entries[end].prefix == entries[i].prefix && bytes.Equal(part.keys.At(int(entries[end].row)), part.keys.At(int(entries[i].row))) {
			end++
		}
		kept := end - 1
		if keepFirst {
			kept = i
		}
		part.order = append(part.order, entries[kept].row)
		i = end
	}
	return nil
}

// column deals out one column.
func (p *partition) column(c int) error {
	g := p.group
	dt := g.binding.schema.Columns[c].Canonical
	bytes := int64(0)
	for _, b := range g.batches {
		bytes += int64(b.columns[c].Data().SizeInBytes())
	}
	for _, part := range p.parts {
		lo, hi := p.span(part.slice)
		v := block.NewVector(p.mem, dt)
		part.vectors[c] = v
		v.Reserve(hi - lo)
		if id := dt.ID(); id == arrow.STRING || id == arrow.BINARY {
			v.ReserveText(int(max(bytes*int64(hi-lo)/int64(g.rows())-4*int64(hi-lo), 0) * 17 / 16))
		}
	}
	for b, batch := range g.batches {
		for _, part := range p.parts {
			at := part.slice*len(g.batches) + b
			appendRows(part.vectors[c], batch.columns[c], p.locals[p.starts[at]:p.starts[at+1]])
		}
	}
	return nil
}

// appendRows appends rows, which ascend: one by one, or in stretches.
func appendRows(v *block.Vector, arr arrow.Array, rows []uint32) {
	if !inStretches(rows) {
		v.AppendRows(arr, rows)
		return
	}
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end] == rows[end-1]+1 {
			end++
		}
		v.AppendArray(arr, int(rows[i]), int(rows[end-1])+1)
		i = end
	}
}

// inStretches looks at some of the rows.
func inStretches(rows []uint32) bool {
	const look = 64
	if len(rows) < longStretch {
		return false
	}
	breaks, looked := 0, 0
	for i := 1; i < len(rows); i += 1 + len(rows)/look {
		looked++
		if rows[i] != rows[i-1]+1 {
			breaks++
		}
	}
	return breaks*longStretch <= looked
}

// rows is the partition as a commit's; the arrays are the partition's no more:
// the caller releases them.
func (p *partition) rows() []shards.Rows {
	list := make([]shards.Rows, len(p.parts))
	for i, part := range p.parts {
		list[i] = shards.Rows{Slice: part.slice, Keys: &part.keys, Order: part.order}
		for _, v := range part.vectors {
			list[i].Columns = append(list[i].Columns, v.NewArray())
		}
	}
	return list
}

func (p *partition) release() {
	for _, part := range p.parts {
		for _, v := range part.vectors {
			if v != nil {
				v.Release()
			}
		}
	}
}
