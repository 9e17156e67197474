package budget

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Read is one read's use of a Gate. Its methods are for any number of
// goroutines; the caller calls Close when the read is over.
type Read struct{ gate *Gate }

// Open begins a read.
func (g *Gate) Open() *Read {
	g.reads.Add(1)
	return &Read{gate: g}
}

// Allocator counts what mem hands out, which may be given back after Close.
func (r *Read) Allocator(mem memory.Allocator) memory.Allocator { return &counted{mem, r.gate} }

// Close ends the read.
func (r *Read) Close() { r.gate.reads.Add(-1) }

// Blocks up to alwaysSmall count for nothing, and up to oftenSmall if the reads
// there are could have a few each. Beyond oftenSmall, which only blocks of one row
// are, there is no going on without room.
const (
	alwaysSmall = 64 << 10
	oftenSmall  = 1 << 20
)

// small: a block of n bytes may be read whatever is in use.
func (g *Gate) small(n int64) bool {
	return n <= alwaysSmall || n <= oftenSmall && n <= g.limit/4/max(g.reads.Load(), 1)
}

// Ahead is Gate.Ahead.
func (r *Read) Ahead(ctx context.Context, wanted <-chan struct{}, n int64) error {
	return r.gate.Ahead(ctx, wanted, n)
}

// Target is Gate.Target.
func (r *Read) Target(target int) int { return r.gate.Target(target) }

// Block waits until a block of n bytes may be read, encoded and decoded. wanted
// is closed when the client waits for it; nil: it does. holding: the read holds
// others that it cannot let go before, so this one does not wait. done, which is
// never nil without an error, tells that the block was decoded and let go.
// RESOURCE_EXHAUSTED MEMORY_BUSY if there is no room in time.
func (r *Read) Block(ctx context.Context, n int64, wanted <-chan struct{}, holding bool) (done func(), err error) {
	g := r.gate
	if g.small(n) {
		return nothing, nil
	}
	need := 2 * n
	if holding {
		return g.claim(need), nil
	}
	if wanted != nil {
		if err := g.Ahead(ctx, wanted, need); err != nil {
			return nil, err
		}
		select {
		case <-wanted:
		default:
			return g.claim(need), nil
		}
	}
	if n > oftenSmall {
		return g.Large(ctx, need)
	}
	// A read in the hands of a client that reads soon has given back what it
	// holds; one whose client is slow makes no more of them.
	return g.claim(need), nil
}

// Hold is Block for what a read holds all the time, of n bytes together.
func (r *Read) Hold(ctx context.Context, n int64) (done func(), err error) {
	if r.gate.small(n) {
		return nothing, nil
	}
	return r.gate.Large(ctx, n)
}

func nothing() {}
