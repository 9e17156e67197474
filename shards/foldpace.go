package shards

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// pace holds folds back while scans or commits are at work: together they may move
// so many bytes a second, read and written. In an idle store, and for a table whose
// folds are behind, there is no limit.
type pace struct {
	rate   int64        // bytes a second; 0: no limit
	usedAt atomic.Int64 // when a scan or a commit was last at work

	mu   sync.Mutex
	paid time.Time // when what was moved so far is paid for
}

const (
	// defaultPaceBytes of each core: a quarter to a third of what a core merges.
	defaultPaceBytes = 16 << 20
	// usedWindow: a store is busy if a scan or a commit was at work so short a time
	// ago. A scan whose client does not take its rows is none.
	usedWindow = 250 * time.Millisecond
	// paceLook: a fold that waits looks so often whether the store is idle.
	paceLook = 20 * time.Millisecond
)

func newPace(rate int64) *pace {
	if rate == 0 {
		rate = defaultPaceBytes * int64(runtime.GOMAXPROCS(0))
	}
	return &pace{rate: max(rate, 0)}
}

// used notes that a scan or a commit is at work.
func (p *pace) used() { p.usedAt.Store(time.Now().UnixNano()) }

func (p *pace) busy() bool {
	return time.Since(time.Unix(0, p.usedAt.Load())) < usedWindow
}

// wait returns when a fold may move on after so many bytes; the error is ctx's.
func (p *pace) wait(ctx context.Context, bytes uint64) error {
	if p.rate == 0 || !p.busy() {
		return ctx.Err()
	}
	p.mu.Lock()
	now := time.Now()
	if p.paid.Before(now) {
		p.paid = now
	}
	p.paid = p.paid.Add(time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second)))
	until := p.paid
	p.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		left := time.Until(until)
		if left <= 0 {
			return ctx.Err()
		}
		if !p.busy() {
			p.mu.Lock()
			p.paid = time.Time{}
			p.mu.Unlock()
			return ctx.Err()
		}
		timer.Reset(min(left, paceLook))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
