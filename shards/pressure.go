package shards

import (
	"context"
	"fmt"
	"time"
)

// Back-pressure. Writes are slowed, never stopped: each commit waits longer the
// further the folds are behind, so that the rate of writes falls to that of the
// folds before reads have to merge more runs than the policy leaves.
const (
	slowDepth = 32 // runs over one key: more than the policy leaves
	slowDelta = 8  // times deltaBytes in a slice
	slowStep  = 5 * time.Millisecond
	slowMost  = 500 * time.Millisecond
)

// delay is how long a commit waits with so many runs over one key and so many
// bytes of delta in a slice, and why.
func (pol *foldPolicy) delay(depth int, delta uint64) (wait time.Duration, why string) {
	runs, sizes := depth-slowDepth, int(delta/pol.deltaBytes)-slowDelta
	switch {
	case runs <= 0 && sizes <= 0:
		return 0, ""
	case runs >= sizes:
		why = fmt.Sprintf("%d runs over one key, more than %d", depth, slowDepth)
	default:
		why = fmt.Sprintf("%d KiB of delta in a slice, more than %d", delta>>10, slowDelta*pol.deltaBytes>>10)
	}
	return min(time.Duration(max(runs, sizes))*slowStep, slowMost), why
}

// pressed is true where folds should not wait for reads any more.
func (f *folds) pressed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.depth > slowDepth/2
}

// slowDown makes a commit wait while folds are behind; a fold that ends ends the
// wait. The error is ctx's.
func (f *folds) slowDown(ctx context.Context, t *Table, prepared []*Prepared) error {
	if !t.store.folder.enabled() || len(prepared) == 0 {
		return nil
	}
	t.mu.Lock()
	delta := t.visible.delta
	t.mu.Unlock()
	var largest uint64
	for _, p := range prepared {
		for i := range p.pieces {
			if slice := p.pieces[i].slice; slice < t.slices {
				_, size := delta.sizeOf(slice)
				largest = max(largest, size)
			}
		}
	}
	f.mu.Lock()
	wait, _ := t.store.policy.delay(f.depth, largest)
	moved := f.moved
	f.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	began := time.Now()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.slowed++
		f.slowedFor += time.Since(began)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-moved:
	case <-t.store.failure.failed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
