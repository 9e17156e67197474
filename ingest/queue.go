package ingest

import (
	"context"
	"slices"
	"sync"
)

// queue is where the small commits of a table's streams meet. A commit that finds
// nobody at work is written at once. Those that come meanwhile wait, and the next
// one takes them all: most of what a small commit costs is the same for one and for
// thirty. If they fill a commit before the last one is synced, the next is prepared
// beside that sync; no other is, since half of them in two commits would cost more
// than the wait.
//
// A stream has at most one commit in it, and goes on when that is written; so
// each stream's own order holds, and any order of different streams' is as good
// as another.
type queue struct {
	mu        sync.Mutex
	waiting   []*share // in the order of arrival
	bytes     int64    // of what waits
	preparing bool     // a commit is being made, up to its sync
	syncing   int      // commits of which only the sync is left

	streams int // guarded by Streams.mu
}

// share is what one stream brings to a commit.
type share struct {
	ctx      context.Context // of the stream
	writer   *Writer
	group    *group // the stream's, read until done is closed
	position Progress
	bytes    int64 // group.deltaBytes

	done   chan struct{} // closed when the rest is set
	commit uint64
	err    error
}

// publish makes a share durable and visible, with others or alone. If ctx ends
// while it waits it is not written; once it has been taken its end is waited for.
func (q *queue) publish(ctx context.Context, s *share) (commit uint64, err error) {
	q.mu.Lock()
	q.waiting = append(q.waiting, s)
	q.bytes += s.bytes
	lead := q.dueLocked()
	q.mu.Unlock()
	if lead {
		q.lead()
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		if q.withdraw(s) {
			return 0, ctx.Err()
		}
		<-s.done
	}
	return s.commit, s.err
}

// withdraw takes a share back, unless somebody has taken it.
func (q *queue) withdraw(s *share) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == s {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			q.bytes -= s.bytes
			return true
		}
	}
	return false
}

// dueLocked: the next commit is to be made now, and the caller is who leads it.
func (q *queue) dueLocked() bool {
	if len(q.waiting) == 0 || q.preparing || q.syncing > 0 && q.bytes < combinedBytes {
		return false
	}
	q.preparing = true
	return true
}

// lead makes the next commit of what waits.
func (q *queue) lead() {
	applied := sync.OnceFunc(func() {
		q.move(func() { q.preparing, q.syncing = false, q.syncing+1 })
	})
	defer q.move(func() { q.syncing-- })
	defer applied()
	if shares := q.take(); len(shares) > 0 {
		write(shares, applied)
	}
}

// move notes how far a commit has come, and starts the next one if it is due.
func (q *queue) move(on func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	on()
	if q.dueLocked() {
		go q.lead()
	}
}

// take takes what the next commit is made of.
func (q *queue) take() (shares []*share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var bytes int64
	left := q.waiting[:0:0]
	for _, s := range q.waiting {
		if len(shares) > 0 && (bytes+s.bytes > combinedBytes || !s.suits(shares[0])) {
			left = append(left, s)
			continue
		}
		shares, bytes = append(shares, s), bytes+s.bytes
	}
	q.waiting, q.bytes = left, q.bytes-bytes
	return shares
}

// suits: both can be parts of one commit.
func (s *share) suits(other *share) bool {
	a, b := s.group.binding, other.group.binding
	return a.schema.Version == b.schema.Version && (a.mode == ModeDelete) == (b.mode == ModeDelete)
}
