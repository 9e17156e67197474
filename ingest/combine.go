package ingest

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// combinedBytes bounds what commits of several streams take in the delta; a
// commit of more would be a run.
const combinedBytes = limits.DeltaCommitBytes

// entryBytes is what a row costs in the delta besides its key and columns.
const entryBytes = 48

// deltaBytes is about what a group takes in the delta, never less than
// shards.Table.Prepare makes of it.
func (g *group) deltaBytes() int64 {
	columns := 0
	if len(g.batches) > 0 {
		columns = len(g.batches[0].columns)
	}
	return g.bytes - int64(len(g.batches)*columns*columnBytes) + int64(g.rows()*entryBytes+len(g.keys.Data))
}

// commitSmall takes over a group and writes it, with what other streams bring at
// the same time or alone. When it returns the rows are durable. As often as the
// table's schema moves on meanwhile the batches are bound again. Nothing is
// landing.
func (w *Writer) commitSmall(ctx context.Context, g *group, batches []arrow.RecordBatch) error {
	defer func() { g.release() }()
	position := w.received
	first := place(position.Batches - uint64(len(batches)))
	for {
		if g.rows() == 0 {
			return w.publish(ctx, nil, position, false)
		}
		commit, err := w.queue.publish(ctx, &share{
			ctx: ctx, writer: w, group: g, position: position, bytes: g.deltaBytes(), done: make(chan struct{}),
		})
		if err == nil {
			w.advance(position, commit)
			return nil
		}
		if !fault.Is(err, "SCHEMA_CHANGED") {
			return err
		}
		g.release()
		if g, err = w.regroup(ctx, batches, first); err != nil {
			return err
		}
		if w.looks() { // a merge does not bring every column any more
			taken := g
			g = &group{}
			return w.commitLooking(ctx, taken, batches, position)
		}
	}
}

// write writes shares and closes their done. applied is called once only the sync
// is left, so that the next commit may be prepared. What goes wrong with several is
// tried with each alone, so that nobody hears of another one's mistake.
func write(shares []*share, applied func()) {
	ctx := shares[0].ctx
	if len(shares) > 1 {
		ctx = context.WithoutCancel(ctx) // no stream ends another one's commit
	}
	err := writeTogether(ctx, shares, applied)
	for _, s := range shares {
		switch {
		case s.err != nil || err == nil:
		case len(shares) == 1 || fault.Is(err, "SCHEMA_CHANGED"):
			s.err = err
		default:
			if alone := writeTogether(s.ctx, []*share{s}, applied); s.err == nil {
				s.err = alone
			}
		}
		close(s.done)
	}
}

// writeTogether writes shares as one commit. Those whose resume id was taken
// meanwhile get their error and are left out; the error returned is of all others.
func writeTogether(ctx context.Context, shares []*share, applied func()) (err error) {
	defer recovered("writing small commits", &err)
	for again := true; again; {
		shares = slices.DeleteFunc(slices.Clone(shares), func(s *share) bool { return s.err != nil })
		if len(shares) == 0 {
			return nil
		}
		commit, touched, failed := shares[0].writer.prepare(ctx, together(shares))
		if failed != nil {
			return failed
		}
		if again, err = publishShares(ctx, shares, commit, touched, applied); err != nil || again {
			discard(commit)
		}
	}
	return err
}

// together is the group of all rows of shares, in their order, so that of equal keys
// the last one wins. It retains nothing.
func together(shares []*share) *group {
	if len(shares) == 1 {
		return shares[0].group
	}
	g := &group{binding: shares[0].group.binding}
	rows, bytes := 0, 0
	for _, s := range shares {
		rows, bytes = rows+s.group.rows(), bytes+len(s.group.keys.Data)
	}
	g.keys.Grow(rows, bytes)
	for _, s := range shares {
		first := uint32(g.rows())
		for _, b := range s.group.batches {
			b.first += first
			g.batches = append(g.batches, b)
		}
		g.keys.AppendRange(&s.group.keys, 0, s.group.rows())
		g.bytes += s.group.deltaBytes()
	}
	return g
}

// publishShares publishes what was prepared of shares, under the shared latches
// of its slices, and while nobody can take their resume ids; again is true if
// somebody has. Then, and after an error, what is prepared is still the caller's.
func publishShares(ctx context.Context, shares []*share, prepared []*shards.Prepared, touched []int, applied func()) (again bool, err error) {
	table := shares[0].writer.table
	unlock, err := table.Latch(ctx, touched, false)
	if err != nil {
		return false, err
	}
	defer unlock()
	var positions []shards.Position
	for _, s := range shares {
		if f := s.writer.fence; f != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.taken {
				s.err, again = errTaken(), true
			}
		}
		positions = s.writer.positions(positions, s.position)
	}
	if again {
		return true, nil
	}
	commit, err := table.Publish(ctx, prepared, shards.PublishOptions{Positions: positions, Applied: applied})
	for _, s := range shares {
		s.commit = commit
	}
	return false, err
}
