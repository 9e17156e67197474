package flight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// admission lets in received messages against the server's memory: a message waits,
// and with it its client, until it fits.
type admission struct {
	total   int64
	free    *semaphore.Weighted
	typical atomic.Int64 // bytes of a message, of late
}

func newAdmission(total int64) *admission {
	return &admission{total: total, free: semaphore.NewWeighted(total)}
}

// acquire waits for n bytes and returns what must be released: a message larger
// than the whole budget waits until it is alone.
func (b *admission) acquire(ctx context.Context, n int64) (held int64, err error) {
	held = min(max(n, 1), b.total)
	return held, b.free.Acquire(ctx, held)
}

func (b *admission) release(held int64) { b.free.Release(held) }

// gRPC receives a message before anybody learns its size. So the next message of
// a stream is admitted by the size of the last one before it is asked for; of a
// new stream, by what messages have of late. A stream on which nothing comes for
// expectFor gives that back: idle clients hold nothing.
const (
	expectFor   = 50 * time.Millisecond
	expectLeast = 64 << 10 // smaller messages are not worth it
)

// expected is what was admitted for a message that is still to come.
type expected struct {
	from *admission
	mu   sync.Mutex
	held int64
	idle *time.Timer
}

// expect waits for room for a message like the last one, of n bytes; 0: there was
// none.
func (b *admission) expect(ctx context.Context, n int64) (*expected, error) {
	if n == 0 {
		n = b.typical.Load()
	}
	if n < expectLeast {
		return nil, nil
	}
	held, err := b.acquire(ctx, n)
	if err != nil {
		return nil, err
	}
	e := &expected{from: b, held: held}
	e.idle = time.AfterFunc(expectFor, e.giveUp)
	return e, nil
}

func (e *expected) giveUp() {
	if held := e.take(); held > 0 {
		e.from.release(held)
	}
}

func (e *expected) take() (held int64) {
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	held, e.held = e.held, 0
	return held
}

// came turns what was expected into what has come, n bytes. It holds nothing
// while it waits.
func (b *admission) came(ctx context.Context, e *expected, n int64) (held int64, err error) {
	b.typical.Store((7*b.typical.Load() + n) / 8)
	if e != nil {
		e.idle.Stop()
	}
	before := e.take()
	if before >= n && n > 0 {
		b.free.Release(before - n)
		return n, nil
	}
	if before > 0 {
		b.release(before)
	}
	return b.acquire(ctx, n)
}
