package flight

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// budget admits received messages against the server's memory: a message waits,
// and with it its client, until it fits.
type budget struct {
	total int64
	free  *semaphore.Weighted
}

func newBudget(total int64) *budget {
	return &budget{total, semaphore.NewWeighted(total)}
}

// acquire waits for n bytes and returns what must be released: a message larger
// than the whole budget waits until it is alone.
func (b *budget) acquire(ctx context.Context, n int64) (held int64, err error) {
	held = min(max(n, 1), b.total)
	return held, b.free.Acquire(ctx, held)
}

func (b *budget) release(held int64) { b.free.Release(held) }
