package ingest

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

// landing is a commit that is being published while the next is prepared. Its
// batches are kept until then: if the table's schema changes first, they are
// bound and prepared again.
type landing struct {
	batches  []arrow.RecordBatch
	first    place
	position Progress
	done     chan struct{} // closed when err is set
	err      error
}

// land publishes in a goroutine of its own; wait is for its end. There is at
// most one landing at a time, so commits land in stream order.
func (w *Writer) land(ctx context.Context, prepared []*shards.Prepared, touched []int, batches []arrow.RecordBatch) {
	l := &landing{
		batches:  batches,
		first:    place(w.received.Batches - uint64(len(batches))),
		position: w.received,
		done:     make(chan struct{}),
	}
	for _, batch := range batches {
		batch.Retain()
	}
	w.landing = l
	go func() {
		defer close(l.done)
		defer l.release()
		defer recovered("publishing", &l.err)
		l.err = w.publishAgain(ctx, l, prepared, touched)
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

// wait is the error of the commit that was being published, nil if there is
// none.
func (w *Writer) wait() error {
	if w.landing == nil {
		return nil
	}
	<-w.landing.done
	err := w.landing.err
	w.landing = nil
	if err != nil && w.err == nil {
		w.err = err
	}
	return err
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
