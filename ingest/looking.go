package ingest

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// commitLooking takes over a group and publishes it in a mode that looks first:
// from the look until the commit is visible it holds the slices' latches
// exclusively. Where a row is refused, the batches before its own are published
// first (none, if the stream is staged), so that the outcome does not depend on
// how batches are grouped. batches is nil for staged streams; position is the
// stream's behind the group.
func (w *Writer) commitLooking(ctx context.Context, g *group, batches []arrow.RecordBatch, position Progress) error {
	defer func() { g.release() }()
	first := place(position.Batches - uint64(len(batches)))
	start := position.Rows - uint64(g.rows())
	var refusal error
	for {
		refused, err := w.tryLooking(ctx, g, position)
		switch {
		case fault.Is(err, "SCHEMA_CHANGED") && batches != nil:
			g.release()
			if g, err = w.regroup(ctx, batches, first); err != nil {
				return err
			}
		case err != nil:
			return err
		case refused == nil:
			return refusal
		default:
			n := g.batchOf(refused.row)
			refusal = refused.err
			if n == 0 || batches == nil {
				return refusal
			}
			g.cut(n)
			batches = batches[:n]
			position.Batches = uint64(first) + uint64(n)
			position.Rows = start + uint64(g.rows())
		}
	}
}

// refused is a row of a group that its mode forbids.
type refused struct {
	row uint32
	err error
}

// earliest is the one of two refusals that a client finds first.
func earliest(a, b *refused) *refused {
	if a == nil || b != nil && b.row < a.row {
		return b
	}
	return a
}

// tryLooking compares a group with the table and publishes it, under latches.
// A row that is refused stops it before anything is written.
func (w *Writer) tryLooking(ctx context.Context, g *group, position Progress) (*refused, error) {
	parts, err := g.split(g.binding.mode.keepsFirst())
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, w.publish(ctx, nil, position, false)
	}
	twice := g.twice(parts)
	unlock, err := w.table.Latch(ctx, touchedBy(parts), true)
	if err != nil {
		return nil, err
	}
	defer unlock()
	snapshot, err := w.table.Snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Release()
	if snapshot.Schema().Version != g.binding.schema.Version {
		return nil, fault.New(fault.Aborted, "SCHEMA_CHANGED", "the table's schema changed")
	}
	prepared, bad, err := newLook(w.table, snapshot, g, w.options.Mem).prepare(ctx, parts)
	if bad = earliest(twice, bad); err != nil || bad != nil {
		discard(prepared)
		return bad, err
	}
	return nil, w.publish(ctx, prepared, position, false)
}

func touchedBy(parts []sorted) []int {
	list := make([]int, len(parts))
	for i, part := range parts {
		list[i] = part.slice
	}
	return list
}

// twice refuses, in mode insert, a key that the group itself brings again.
func (g *group) twice(parts []sorted) *refused {
	if g.binding.mode != ModeInsert {
		return nil
	}
	var bad *refused
	for _, part := range parts {
		if part.again >= 0 {
			bad = earliest(bad, &refused{row: uint32(part.again)})
		}
	}
	if bad != nil {
		bad.err = g.keyExists(bad.row, "was brought by this stream already")
	}
	return bad
}

func (g *group) keyExists(row uint32, why string) error {
	place, at := g.at(row)
	return fault.New(fault.AlreadyExists, "KEY_EXISTS", "%s, row %d: the key %s %s, and mode insert refuses it; nothing of that commit is written",
		place, at, g.keyText(row), why)
}

// prepare decides by what exists, and prepares what is to be written.
func (l *look) prepare(ctx context.Context, parts []sorted) ([]*shards.Prepared, *refused, error) {
	mode, b := l.group.binding.mode, l.group.binding
	needed := b.unsentNotNull()
	if mode != ModeMerge || needed >= 0 {
		exists, err := l.exists(ctx, parts)
		if err != nil {
			return nil, nil, err
		}
		if bad := l.group.refuse(parts, exists, needed); bad != nil {
			return nil, bad, nil
		}
		if mode == ModeInsertIgnore {
			parts = without(parts, exists)
		}
	}
	var prepared []*shards.Prepared
	var err error
	if mode.partial() && !b.whole {
		prepared, err = l.merge(ctx, parts)
	} else {
		prepared, err = l.write(ctx, parts)
	}
	return prepared, nil, err
}

// unsentNotNull is a column that new rows cannot do without; -1 if there is none.
func (b *binding) unsentNotNull() int {
	for i, at := range b.source {
		if at == absent && !b.schema.Columns[i].Hidden && !b.schema.Columns[i].Field.Nullable {
			return i
		}
	}
	return -1
}

// refuse finds the first row in stream order that its mode forbids.
func (g *group) refuse(parts []sorted, exists [][]bool, needed int) *refused {
	var bad *refused
	mode := g.binding.mode
	for p, part := range parts {
		for i, found := range exists[p] {
			if mode == ModeInsert && found || mode == ModeUpdate && !found || mode == ModeMerge && !found {
				bad = earliest(bad, &refused{row: part.first[i]})
			}
		}
	}
	if bad == nil || mode == ModeInsertIgnore {
		return nil
	}
	place, at := g.at(bad.row)
	switch mode {
	case ModeInsert:
		bad.err = g.keyExists(bad.row, "exists")
	case ModeUpdate:
		bad.err = fault.New(fault.FailedPrecondition, "ROW_NOT_FOUND", "%s, row %d: there is no row with the key %s, and mode update makes none (merge does)",
			place, at, g.keyText(bad.row))
	default:
		bad.err = fault.Invalid("NULL_VALUE", "%s, row %d, column %q: there is no row with the key %s yet, and a new one needs this column, which is declared not-null and not sent",
			place, at, g.binding.schema.Columns[needed].Field.Name, g.keyText(bad.row))
	}
	return bad
}

// without leaves out the keys that exist.
func without(parts []sorted, exists [][]bool) []sorted {
	var rest []sorted
	for p, part := range parts {
		kept := sorted{slice: part.slice, again: -1}
		for i, found := range exists[p] {
			if !found {
				kept.rows = append(kept.rows, part.rows[i])
			}
		}
		if len(kept.rows) > 0 {
			rest = append(rest, kept)
		}
	}
	return rest
}
