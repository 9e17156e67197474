package ingest

import (
	"context"
	"sync"
)

// queue is where the small commits of a table's streams meet. A commit that finds
// nobody at work is written at once. Those that come while one is prepared and
// applied wait, and the next one takes them all: most of what a small commit costs
// is the same for one and for thirty. While a commit is synced the next is prepared.
//
// A stream has at most one commit in it, and goes on when that is written; so
// each stream's own order holds, and any order of different streams' is as good
// as another.
type queue struct {
	mu      sync.Mutex
	waiting []*share // in the order of arrival; empty unless led
	led     bool     // somebody takes, or is about to take, what waits

	streams int // guarded by Streams.mu
}

// share is what one stream brings to a commit.
type share struct {
	ctx      context.Context // of the stream
	writer   *Writer
	group    *group // the stream's, read until done is closed
	position Progress

	done   chan struct{} // closed when the rest is set
	commit uint64
	err    error
}

// publish makes a share durable and visible, with others or alone. If ctx ends
// while it waits it is not written; once it has been taken its end is waited for.
func (q *queue) publish(ctx context.Context, s *share) (commit uint64, err error) {
	q.mu.Lock()
	q.waiting = append(q.waiting, s)
	lead := !q.led
	q.led = true
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
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// lead writes what waits and suits one commit, and passes the lead on as soon as
// only its sync is left. The caller has it.
func (q *queue) lead() {
	passed := false
	pass := func() {
		if !passed {
			passed = true
			q.pass()
		}
	}
	defer pass()
	if shares := q.take(); len(shares) > 0 {
		write(shares, pass)
	}
}

// pass finds the next one to lead, if anything waits.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		go q.lead()
	} else {
		q.led = false
	}
}

// take takes what the next commit is made of.
func (q *queue) take() (shares []*share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var cost int64
	left := q.waiting[:0:0]
	for _, s := range q.waiting {
		n := s.group.deltaBytes()
		if len(shares) > 0 && (cost+n > combinedBytes || !s.suits(shares[0])) {
			left = append(left, s)
			continue
		}
		shares, cost = append(shares, s), cost+n
	}
	q.waiting = left
	return shares
}

// suits: both can be parts of one commit.
func (s *share) suits(other *share) bool {
	a, b := s.group.binding, other.group.binding
	return a.schema.Version == b.schema.Version && (a.mode == ModeDelete) == (b.mode == ModeDelete)
}
