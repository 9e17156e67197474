package shards

import (
	"context"
	"slices"

	"golang.org/x/sync/semaphore"
)

// A slice's latch is a semaphore: shared holders take one of its units,
// exclusive holders take all. Waiting is first come, first served, so that
// neither kind starves.
const latchUnits = 1 << 30

type latches []*semaphore.Weighted

func newLatches(n int) latches {
	l := make(latches, n)
	for i := range l {
		l[i] = semaphore.NewWeighted(latchUnits)
	}
	return l
}

// lock takes the latches in slice order, which rules deadlock out.
func (l latches) lock(ctx context.Context, of []int, exclusive bool) (unlock func(), err error) {
	units := int64(1)
	if exclusive {
		units = latchUnits
	}
	order := slices.Clone(of)
	slices.Sort(order)
	order = slices.Compact(order)
	for i, slice := range order {
		if err := l[slice].Acquire(ctx, units); err != nil {
			l.release(order[:i], units)
			return nil, err
		}
	}
	return func() { l.release(order, units) }, nil
}

func (l latches) release(order []int, units int64) {
	for _, slice := range order {
		l[slice].Release(units)
	}
}
