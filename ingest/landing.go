package ingest

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// landing is a large commit that is being prepared, or published while the next
// is prepared. Its batches are kept until then: if the table's schema changes first, they are
// bound and prepared again.
type landing struct {
	batches  []arrow.RecordBatch
	first    place
	position Progress
	done     chan struct{} // closed when err is set
	err      error
}

// landingMost commits are on their way at once: one is prepared while the file of
// the other is synced and published.
const landingMost = 2

// land takes over a group, and prepares and publishes it in a goroutine of its
// own, the latter behind the commits before it.
func (w *Writer) land(ctx context.Context, g *group, batches []arrow.RecordBatch) error {
	if len(w.landings) == landingMost {
		if err := w.waitOldest(); err != nil {
			g.release()
			return err
		}
	}
	var before *landing
	if n := len(w.landings); n > 0 {
		before = w.landings[n-1]
	}
	w.begin(batches, "preparing a commit", func(l *landing) error {
		prepared, touched, err := w.prepare(ctx, g)
		g.release()
		if before != nil {
			<-before.done
			if before.err != nil {
				discard(prepared)
				return before.err
			}
		}
		if err != nil {
			return err
		}
		return w.publishAgain(ctx, l, prepared, touched)
	})
	return nil
}

func (w *Writer) begin(batches []arrow.RecordBatch, doing string, run func(l *landing) error) {
	l := &landing{
		batches:  batches,
		first:    place(w.received.Batches - uint64(len(batches))),
		position: w.received,
		done:     make(chan struct{}),
	}
	for _, batch := range batches {
		batch.Retain()
	}
	w.landings = append(w.landings, l)
	go func() {
		defer close(l.done)
		defer l.release()
		defer recovered(doing, &l.err)
		l.err = run(l)
	}()
}

// recovered makes a panic of the goroutine that defers it an error: nobody above
// would.
func recovered(doing string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic while %s: %v\n%s", doing, p, debug.Stack())
	}
}

func (l *landing) release() {
	for _, batch := range l.batches {
		batch.Release()
	}
	l.batches = nil
}

// wait waits for the commits on their way and returns the first one's error that
// failed, nil if none did.
func (w *Writer) wait() (err error) {
	for len(w.landings) > 0 && err == nil {
		err = w.waitOldest()
	}
	for _, l := range w.landings { // they fail behind it
		<-l.done
	}
	w.landings = nil
	return err
}

// waitOldest waits for the first of the commits on their way.
func (w *Writer) waitOldest() error {
	l := w.landings[0]
	<-l.done
	w.landings = w.landings[1:]
	if l.err != nil && w.err == nil {
		w.err = l.err
	}
	return l.err
}

// publishAgain publishes a commit; as often as the table's schema moves on
// meanwhile it binds and prepares the batches again.
func (w *Writer) publishAgain(ctx context.Context, l *landing, prepared []*shards.Prepared, touched []int) error {
	for {
		err := w.publishLatched(ctx, prepared, touched, l.position)
		if !fault.Is(err, "SCHEMA_CHANGED") {
			return err
		}
		g, err := w.regroup(ctx, l.batches, l.first)
		if err != nil {
			g.release()
			return err
		}
		if w.looks() { // a merge does not bring every column any more
			return w.commitLooking(ctx, g, l.batches, l.position)
		}
		prepared, touched, err = w.prepare(ctx, g)
		g.release()
		if err != nil {
			return err
		}
	}
}

// publishLatched publishes a commit under the shared latches of its slices. It
// takes over what is prepared.
func (w *Writer) publishLatched(ctx context.Context, prepared []*shards.Prepared, touched []int, position Progress) error {
	unlock, err := w.table.Latch(ctx, touched, false)
	if err != nil {
		discard(prepared)
		return err
	}
	defer unlock()
	return w.publish(ctx, prepared, position, false)
}

// regroup binds the batches of one commit to the table's newest schema.
func (w *Writer) regroup(ctx context.Context, batches []arrow.RecordBatch, first place) (*group, error) {
	if err := w.bind(ctx); err != nil {
		return &group{}, err
	}
	g := &group{binding: w.binding.Load()}
	for i, batch := range batches {
		if err := g.add(w.options.Mem, batch, first+place(i), w.options.MaxBatch, w.table.LeaseIDs); err != nil {
			return g, err
		}
	}
	return g, nil
}
