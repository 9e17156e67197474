package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Finding is one thing that Doctor found wrong.
type Finding struct {
	Table string // empty: not of one table
	Slice int    // -1: not of one slice
	What  string
}

// Doctor reads the whole store: every checksum, every index and filter against
// the rows, every delta row and its payload, every list against what is there.
// report gets one Finding for each thing wrong, one at a time; the error is for
// what stops the look itself. Reads and writes go on meanwhile.
func (s *Store) Doctor(ctx context.Context, report func(Finding)) error {
	for _, t := range s.Tables("") {
		snapshot, err := t.Snapshot()
		if err != nil {
			continue // dropped meanwhile
		}
		err = snapshot.doctor(ctx, report)
		snapshot.Release()
		if err != nil {
			return err
		}
	}
	return s.doctorRegions(report)
}

func (s *Snapshot) doctor(ctx context.Context, report func(Finding)) error {
	for slice := range s.table.slices {
		tell := func(what string) { report(Finding{s.table.name.String(), slice, what}) }
		for _, r := range s.version.runs.of(slice, s.table.slices) {
			if err := r.run.run.Verify(ctx, slice, tell); err != nil {
				return err
			}
			r.doctorListing(ctx, s.table.store.options.Allocator, tell)
		}
		for _, g := range s.version.delta.of(slice) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.doctorGeneration(g, tell); err != nil {
				tell(fmt.Sprintf("delta generation %d: %v", g.number, err))
			}
		}
	}
	return nil
}

// doctorListing holds the manifest's word about a slice of a run against its
// block index; of a slice that a fold is taking, about what is left of it.
func (r sliceRun) doctorListing(ctx context.Context, mem memory.Allocator, tell func(string)) {
	is, err := r.run.run.Total(r.info.Slice)
	if low := r.low(); low != nil && err == nil {
		is, err = r.run.run.Trim(ctx, mem, r.info.Slice, low)
	}
	if err != nil {
		return // Verify has told
	}
	told := r.info
	if told.Rows != is.Rows || told.Tombstones != is.Tombstones || told.Blocks != is.Blocks ||
		!bytes.Equal(told.First, is.First) || !bytes.Equal(told.Last, is.Last) {
		tell(fmt.Sprintf("run %d: the manifest lists %d rows, %d of them deletes, in %d blocks from key %x to %x; the block index %d, %d, %d from %x to %x",
			r.run.id, told.Rows, told.Tombstones, told.Blocks, told.First, told.Last, is.Rows, is.Tombstones, is.Blocks, is.First, is.Last))
	}
}

// doctorGeneration decodes every row of a generation as a scan would.
func (s *Snapshot) doctorGeneration(g *generation, tell func(string)) error {
	source := &deltaSource{table: s.table, generation: g, commit: s.version.commit, partRows: 1024}
	mem := s.table.store.options.Allocator
	c, err := source.Cursor(run.CursorOptions{Mem: mem, Types: s.version.schema.CanonicalByID})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Seek(run.Bounds{}); err != nil {
		return err
	}
	for {
		part, err := c.Next()
		if err != nil {
			return err
		}
		if part == nil {
			break
		}
		rows, err := c.Load()
		if err != nil {
			return err
		}
		for _, column := range s.version.schema.Columns {
			v := block.NewVector(mem, column.Canonical)
			err := c.Append(v, column.ID, 0, rows)
			v.Release()
			if err != nil {
				return fmt.Errorf("column %q: %w", column.Field.Name, err)
			}
		}
	}
	return s.table.countGeneration(g, tell)
}

// countGeneration compares the number of entries with the listed one.
func (t *Table) countGeneration(g *generation, tell func(string)) error {
	it, listed, err := t.openGeneration(g)
	if err != nil {
		return err
	}
	var n uint64
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if err := it.Close(); err != nil {
		return err
	}
	if n != listed {
		tell(fmt.Sprintf("delta generation %d lists %d entries and has %d", g.number, listed, n))
	}
	return nil
}

// openGeneration is an iterator over the entries of a generation, and how many
// are listed at the same moment: in the publish section, which moves both.
func (t *Table) openGeneration(g *generation) (it *pebble.Iterator, listed uint64, err error) {
	t.commits.Lock()
	defer t.commits.Unlock()
	prefix := layout.GenerationPrefix(t.id, g.slice, g.number)
	it, err = t.store.db.NewIter(&pebble.IterOptions{
		LowerBound: layout.DeltaRowsBound(nil, prefix, nil), UpperBound: layout.DeltaRowsEnd(nil, prefix),
	})
	return it, g.entries.Load(), err
}

// doctorRegions looks for data that belongs to no table, and lets Pebble check
// the order of its own levels.
func (s *Store) doctorRegions(report func(Finding)) error {
	s.mu.Lock()
	known := make(map[uint64]bool, len(s.byID))
	for id := range s.byID {
		known[id] = true
	}
	s.mu.Unlock()
	lost := func(what string, table uint64) {
		if !known[table] && !s.knows(table) {
			report(Finding{Slice: -1, What: fmt.Sprintf("%s of table %d, which is in no catalog; the next start removes it", what, table)})
		}
	}
	err := s.hop([]byte{layout.RegionRun}, []byte{layout.RegionEnd}, func(key []byte) ([]byte, error) {
		table, _, err := layout.SplitRunRegion(key)
		if err != nil {
			return nil, err
		}
		lost("a run", table)
		_, high := layout.RunTableSpan(table)
		return high, nil
	})
	if err == nil {
		err = s.hop([]byte{layout.RegionDelta}, []byte{layout.RegionRun}, func(key []byte) ([]byte, error) {
			table, _, _, err := layout.SplitDeltaRegion(key)
			if err != nil {
				return nil, err
			}
			lost("delta", table)
			_, high := layout.DeltaTableSpan(table)
			return high, nil
		})
	}
	if err == nil {
		err = s.db.CheckLevels(nil)
	}
	if err != nil && (pebble.IsCorruptionError(err) || errors.Is(err, block.ErrCorrupt)) {
		report(Finding{Slice: -1, What: err.Error()})
		return nil
	}
	return err
}

func (s *Store) knows(table uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[table] != nil
}
