package budget

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
)

// Gate bounds the memory of reads. What its allocator has handed out is counted
// exactly; readers ask before they make more.
//
// A read's next piece, the one that its client waits for, is made whatever is in
// use, if its blocks are small: so no read waits for another one's client. What
// would only lie ready (Ahead) takes half of the limit at most, and large blocks
// (Large) wait until there is room for them. So a Gate's use exceeds its limit by
// a few small blocks a read, or by one large block.
//
// All methods are for any number of goroutines.
type Gate struct {
	limit    int64
	patience time.Duration
	used     atomic.Int64 // handed out by the allocator
	claimed  atomic.Int64 // by large blocks that are being read
	waiting  atomic.Int64 // readers that wait for room
	reads    atomic.Int64 // open ones
	large    chan struct{}

	mu    sync.Mutex
	freed chan struct{} // closed when something was given back while somebody waited
}

// DefaultPatience is how long a large block waits for room: longer than any
// client that reads at all takes for a few messages.
const DefaultPatience = time.Minute

// NewGate makes a gate of limit bytes. patience is how long Large waits; 0:
// DefaultPatience.
func NewGate(limit int64, patience time.Duration) *Gate {
	if patience <= 0 {
		patience = DefaultPatience
	}
	return &Gate{limit: limit, patience: patience, large: make(chan struct{}, 1), freed: make(chan struct{})}
}

// Used is the bytes in use.
func (g *Gate) Used() int64 { return g.used.Load() + g.claimed.Load() }

// Limit is the bytes that reads may use.
func (g *Gate) Limit() int64 { return g.limit }

// Target is how large the next piece of a read should be that would be target
// bytes if there were plenty: the fuller the memory the smaller the pieces, down
// to a sixteenth.
func (g *Gate) Target(target int) int {
	left := g.limit - g.Used()
	switch {
	case left > g.limit/2:
		return target
	case left > g.limit/4:
		return target / 4
	}
	return target / 16
}

// Ahead waits until n more bytes may be taken for what will only lie ready, or
// until ctx ends or now is closed: then the piece is wanted at once.
func (g *Gate) Ahead(ctx context.Context, now <-chan struct{}, n int64) error {
	return g.room(ctx, now, func() bool { used := g.Used(); return used == 0 || used+n <= g.limit/2 })
}

// room waits until enough is true, or until now is closed.
func (g *Gate) room(ctx context.Context, now <-chan struct{}, enough func() bool) error {
	for {
		freed := g.next()
		if enough() {
			return nil
		}
		if err := g.wait(ctx, freed, now, nil); err != nil {
			return err
		}
		select {
		case <-now:
			return nil
		default:
		}
	}
}

// Large waits until a block of n bytes, encoded and decoded, may be read; blocks
// come in turns. done tells that it was read, and what is left of it is in the
// allocator's memory. RESOURCE_EXHAUSTED MEMORY_BUSY if there is no room in time.
func (g *Gate) Large(ctx context.Context, n int64) (done func(), err error) {
	patience := time.NewTimer(g.patience)
	defer patience.Stop()
	select {
	case g.large <- struct{}{}:
	case <-patience.C:
		return nil, g.busy(n)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-g.large }()
	for {
		freed := g.next()
		if used := g.Used(); used+n <= g.limit || g.claimed.Load() == 0 && used <= g.limit/2 {
			return g.claim(n), nil
		}
		if err := g.wait(ctx, freed, nil, patience.C); err != nil {
			if errors.Is(err, errPatience) {
				return nil, g.busy(n)
			}
			return nil, err
		}
	}
}

// claim counts n bytes until done is called.
func (g *Gate) claim(n int64) (done func()) {
	g.claimed.Add(n)
	var once sync.Once
	return func() { once.Do(func() { g.claimed.Add(-n); g.wake() }) }
}

func (g *Gate) busy(n int64) error {
	return fault.New(fault.ResourceExhausted, "MEMORY_BUSY",
		"reading rows of %d bytes found no room in %s: other reads hold %d of %d bytes; read them to their end, ask for fewer columns, or raise --memory",
		n, g.patience, g.Used(), g.limit)
}

var errPatience = errors.New("no room in time")

// next is closed at the next wake. Who waits asks for it before looking, so that
// nothing that is freed in between is missed.
func (g *Gate) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.freed
}

func (g *Gate) wait(ctx context.Context, freed, now <-chan struct{}, patience <-chan time.Time) error {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	// What was freed before waiting was counted woke nobody: look now and then.
	again := time.NewTimer(20 * time.Millisecond)
	defer again.Stop()
	select {
	case <-freed:
	case <-now:
	case <-again.C:
	case <-patience:
		return errPatience
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (g *Gate) wake() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.freed)
	g.freed = make(chan struct{})
}

// counted counts what an allocator hands out, by capacity.
type counted struct {
	memory.Allocator
	gate *Gate
}

func (c *counted) Allocate(size int) []byte {
	b := c.Allocator.Allocate(size)
	c.count(int64(cap(b)))
	return b
}

func (c *counted) Reallocate(size int, b []byte) []byte {
	before := cap(b)
	b = c.Allocator.Reallocate(size, b)
	if n := int64(cap(b) - before); n != 0 {
		c.count(n)
	}
	return b
}

func (c *counted) Free(b []byte) {
	n := int64(cap(b))
	c.Allocator.Free(b)
	c.count(-n)
}

func (c *counted) count(n int64) {
	c.gate.used.Add(n)
	if n < 0 {
		c.gate.wake()
	}
}
