package ingest

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// lookingBytes bounds an atomic stream in a mode that looks first: all its rows
// are held in memory, since they are compared with the table in one moment, at
// the end.
const lookingBytes = 256 << 20

// stage collects batches. Each time a commit is full it is prepared, unlisted,
// so that a stream of any size becomes one commit in bounded memory.
func (w *Writer) stage(ctx context.Context, batches []arrow.RecordBatch) (n int, err error) {
	if w.staging == nil {
		w.staging = &group{binding: w.binding.Load()}
	}
	g := w.staging
	for _, batch := range batches {
		if err := g.add(w.options.Mem, batch, place(w.received.Batches), w.options.MaxBatch, w.table.LeaseIDs); err != nil {
			return n, err
		}
		n++
		w.received.Batches++
		w.received.Rows += uint64(batch.NumRows())
		switch {
		case w.looks() && g.bytes > w.options.lookingBytes:
			return n, fault.New(fault.ResourceExhausted, "ATOMIC_LIMIT",
				"the stream is atomic and in mode %s: its rows are held in memory until it ends, and they take more than %d bytes; send it in parts, or without atomic",
				w.options.Mode, w.options.lookingBytes)
		case !w.looks() && g.bytes >= limits.CommitBytes:
			return n, w.stageGroup(ctx)
		}
	}
	return n, nil
}

// stageGroup prepares what was collected.
func (w *Writer) stageGroup(ctx context.Context) error {
	g := w.staging
	if g == nil {
		return nil
	}
	w.staging = nil
	defer g.release()
	prepared, touched, err := w.prepare(ctx, g)
	if err != nil {
		return err
	}
	w.staged = append(w.staged, prepared...)
	for _, slice := range touched {
		w.touch(slice)
	}
	return nil
}

func (w *Writer) touch(slice int) {
	if w.touched == nil {
		w.touched = map[int]bool{}
	}
	w.touched[slice] = true
}

// finishStaged publishes everything that was staged, in one commit.
func (w *Writer) finishStaged(ctx context.Context) error {
	if w.looks() {
		g := w.staging
		w.staging = nil
		if g == nil {
			return w.publish(ctx, nil, w.received, false)
		}
		return staleStaged(w.commitLooking(ctx, g, nil, w.received))
	}
	if err := w.stageGroup(ctx); err != nil {
		return err
	}
	// Once something is durable under the stream's resume id, the content has
	// been replaced already, and what comes is the rest of it.
	replace := w.options.Mode == ModeReplaceTable && w.resumed == Progress{}
	if replace {
		for slice := range w.table.Schema().Slices {
			w.touch(slice)
		}
	}
	unlock, err := w.table.Latch(ctx, slices.Sorted(maps.Keys(w.touched)), false)
	if err != nil {
		return err
	}
	defer unlock()
	staged := w.staged
	w.staged = nil
	return staleStaged(w.publish(ctx, staged, w.received, replace))
}

// staleStaged says what to do when the schema moved on: the rows of a staged
// stream are not kept to be prepared again.
func staleStaged(err error) error {
	if fault.Is(err, "SCHEMA_CHANGED") {
		return fault.New(fault.Aborted, "SCHEMA_CHANGED", "the table's schema changed while the stream was staged: nothing of it is written; send it again")
	}
	return err
}
