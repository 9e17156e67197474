package ingest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// Writer takes the batches of one stream. Its methods are for one goroutine,
// but Progress.
//
// While a large commit is being made durable the next one is prepared, so Write
// may return before its rows are durable; Committed and Progress say what is.
type Writer struct {
	table   *shards.Table
	stream  *arrow.Schema
	options Options
	binding atomic.Pointer[binding]
	fence   *fence   // of a resumable stream
	queue   *queue   // where its small commits meet those of others; nil once it has ended
	resumed Progress // what was durable under its id when it was opened

	received Progress   // of Write; Commit is not kept here
	landings []*landing // the commits on their way, in stream order; at most landingMost
	staging  *group     // staged streams: what is not prepared yet
	staged   []*shards.Prepared
	touched  map[int]bool // slices of staged commits
	err      error        // the first one; nothing is written behind it

	mu      sync.Mutex
	durable Progress
}

// Progress is what is durable now.
func (w *Writer) Progress() Progress {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.durable
}

// Schema is the stream's schema as it is taken: without extension types.
func (w *Writer) Schema() *arrow.Schema { return w.stream }

// Idle is closed when nothing is being published: until then a small commit may
// as well wait for more batches to join it.
func (w *Writer) Idle() <-chan struct{} {
	if n := len(w.landings); n > 0 {
		return w.landings[n-1].done
	}
	return closed
}

// Settle waits until nothing is being published. It returns the error that the
// stream ended with, if it did.
func (w *Writer) Settle() error {
	w.wait()
	return w.err
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// staged streams become visible at their end, in one commit.
func (w *Writer) isStaged() bool {
	return w.options.Atomic || w.options.Mode == ModeReplaceTable
}

// Write takes the next batches of the stream, in as few commits as
// limits.CommitBytes allows; it keeps none of them longer than until they are
// durable, and retains what it keeps. A mistake in a batch is a *fault.Error; the
// batches before it are durable when Write returns it, unless the stream is
// staged. After an error every further call returns it.
func (w *Writer) Write(ctx context.Context, batches []arrow.RecordBatch) error {
	for len(batches) > 0 && w.err == nil {
		var n int
		n, w.err = w.writeSome(ctx, batches)
		batches = batches[n:]
	}
	return w.err
}

// writeSome writes one commit's worth of batches.
func (w *Writer) writeSome(ctx context.Context, batches []arrow.RecordBatch) (n int, err error) {
	if w.isStaged() {
		return w.stage(ctx, batches)
	}
	first := w.received
	g, err := w.group(batches, place(first.Batches))
	n = len(g.batches)
	if n > 0 {
		w.received.Batches += uint64(n)
		w.received.Rows += uint64(g.rows())
		if failed := w.commit(ctx, g, batches[:n]); failed != nil {
			return n, failed
		}
	}
	if err != nil {
		if failed := w.wait(); failed != nil {
			return n, failed
		}
	}
	return n, err
}

// group binds batches until a commit is full or one of them is refused.
func (w *Writer) group(batches []arrow.RecordBatch, first place) (g *group, err error) {
	g = &group{binding: w.binding.Load()}
	for i, batch := range batches {
		if g.bytes >= limits.CommitBytes {
			break
		}
		if err = g.add(w.options.Mem, batch, first+place(i), w.options.MaxBatch, w.table.LeaseIDs); err != nil {
			break
		}
	}
	return g, err
}

// commit takes over a group and publishes it, or begins to.
func (w *Writer) commit(ctx context.Context, g *group, batches []arrow.RecordBatch) error {
	if w.looks() {
		if err := w.wait(); err != nil {
			g.release()
			return err
		}
		return w.commitLooking(ctx, g, batches, w.received)
	}
	if g.bytes >= limits.DeltaCommitBytes {
		return w.land(ctx, g, batches)
	}
	if err := w.wait(); err != nil {
		g.release()
		return err
	}
	return w.commitSmall(ctx, g, batches)
}

// looks: what is there must be known first. A merge that brings every column
// is an upsert.
func (w *Writer) looks() bool {
	b := w.binding.Load()
	if b.mode == ModeMerge && b.whole || b.schema.HiddenID {
		return false
	}
	return b.mode.looksFirst()
}

// prepare encodes a group's rows as they are.
func (w *Writer) prepare(ctx context.Context, g *group) ([]*shards.Prepared, []int, error) {
	if g.partitions() {
		return w.preparePartition(ctx, g)
	}
	parts, err := g.split(g.binding.mode.keepsFirst())
	if err != nil || len(parts) == 0 {
		return nil, nil, err
	}
	commit := shards.Commit{Schema: g.binding.schema, Batches: g.columns()}
	touched := make([]int, len(parts))
	for i, part := range parts {
		touched[i] = part.slice
		rows := shards.Rows{Slice: part.slice, Keys: part.keys}
		if g.binding.mode == ModeDelete {
			rows.Tombstones = true
		} else {
			rows.Refs = g.refs(part.rows)
		}
		commit.Slices = append(commit.Slices, rows)
	}
	if g.binding.mode == ModeDelete {
		commit.Batches = nil
	}
	prepared, err := w.table.Prepare(ctx, commit)
	if err != nil {
		return nil, nil, err
	}
	return []*shards.Prepared{prepared}, touched, nil
}

// preparePartition is prepare for a group that is copied slice by slice.
func (w *Writer) preparePartition(ctx context.Context, g *group) ([]*shards.Prepared, []int, error) {
	p, err := g.partition(ctx, w.options.Vectors, g.binding.mode.keepsFirst())
	if err != nil {
		return nil, nil, err
	}
	commit := shards.Commit{Schema: g.binding.schema, Slices: p.rows()}
	touched := make([]int, len(commit.Slices))
	for i, rows := range commit.Slices {
		touched[i] = rows.Slice
		defer releaseAll(rows.Columns)
	}
	prepared, err := w.table.Prepare(ctx, commit)
	if err != nil {
		return nil, nil, err
	}
	return []*shards.Prepared{prepared}, touched, nil
}

func discard(prepared []*shards.Prepared) {
	for _, p := range prepared {
		p.Discard()
	}
}

// publish makes prepared commits durable and visible, and what the stream has
// received up to position with them. It takes over what is prepared.
func (w *Writer) publish(ctx context.Context, prepared []*shards.Prepared, position Progress, replace bool) error {
	if len(prepared) == 0 && !replace && w.fence == nil {
		w.advance(position, w.Progress().Commit)
		return nil
	}
	var commit uint64
	publish := func() (err error) {
		commit, err = w.table.Publish(ctx, prepared, shards.PublishOptions{Positions: w.positions(nil, position), Replace: replace})
		return err
	}
	var err error
	if w.fence != nil {
		err = w.fence.hold(publish)
	} else {
		err = publish()
	}
	if err != nil {
		discard(prepared)
		return err
	}
	if len(prepared) == 0 && !replace {
		commit = w.Progress().Commit // only the position was stored
	}
	w.advance(position, commit)
	return nil
}

// positions appends the stream's position, if it is resumable.
func (w *Writer) positions(list []shards.Position, position Progress) []shards.Position {
	if w.options.Resume == "" {
		return list
	}
	return append(list, shards.Position{
		Resume: w.options.Resume, Progress: shards.Progress{Batches: position.Batches, Rows: position.Rows},
	})
}

// advance tells that everything up to position is durable.
func (w *Writer) advance(position Progress, commit uint64) {
	w.mu.Lock()
	w.durable = Progress{Batches: position.Batches, Rows: position.Rows, Commit: commit}
	w.mu.Unlock()
	w.options.Committed(w.Progress())
}

// Finish ends the stream: everything that Write took is durable when it returns
// without error, and staged commits are published.
func (w *Writer) Finish(ctx context.Context) error {
	if w.err == nil {
		w.err = w.wait()
	}
	if w.err == nil && w.isStaged() {
		w.err = w.finishStaged(ctx)
	}
	err := w.err
	w.Abort()
	return err
}

// Abort ends the stream: what is durable stays, what is being published is
// waited for, everything else is dropped. It may follow Finish.
func (w *Writer) Abort() {
	w.wait()
	if w.staging != nil {
		w.staging.release()
		w.staging = nil
	}
	discard(w.staged)
	w.staged = nil
	if w.fence != nil {
		w.options.Streams.leave(streamID{w.table.ID(), w.options.Resume}, w.fence)
	}
	if w.queue != nil {
		w.options.Streams.quit(w.table.ID())
		w.queue = nil
	}
	if w.err == nil {
		w.err = fault.New(fault.Canceled, "STREAM_ENDED", "the stream has ended")
	}
}
