package budget_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/fault"
)

func TestAllocatorCountsExactly(t *testing.T) {
	checked := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer checked.AssertSize(t, 0)
	g := budget.NewGate(1<<20, 0)
	mem := g.Open().Allocator(checked)
	a := mem.Allocate(1000)
	b := mem.Allocate(0)
	require.EqualValues(t, cap(a)+cap(b), g.Used())
	a = mem.Reallocate(100_000, a)
	require.EqualValues(t, cap(a)+cap(b), g.Used())
	a = mem.Reallocate(10, a)
	require.EqualValues(t, cap(a)+cap(b), g.Used())
	mem.Free(a)
	mem.Free(b)
	require.Zero(t, g.Used())
}

func TestTargetShrinksAsMemoryFills(t *testing.T) {
	g := budget.NewGate(1<<20, 0)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	require.Equal(t, 1600, g.Target(1600))
	a := mem.Allocate(600 << 10)
	require.Equal(t, 400, g.Target(1600))
	b := mem.Allocate(300 << 10)
	require.Equal(t, 100, g.Target(1600))
	mem.Free(a)
	mem.Free(b)
	require.Equal(t, 1600, g.Target(1600))
}

func TestAheadWaitsForHalfOfTheLimit(t *testing.T) {
	g := budget.NewGate(1000, 0)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	never := make(chan struct{})
	require.NoError(t, g.Ahead(context.Background(), never, 2000), "with nothing in use anything may be made")
	a := mem.Allocate(400)
	require.NoError(t, g.Ahead(context.Background(), never, 100))
	passed := make(chan error, 1)
	go func() { passed <- g.Ahead(context.Background(), never, 200) }()
	select {
	case <-passed:
		t.Fatal("went past half of the limit")
	case <-time.After(50 * time.Millisecond):
	}
	mem.Free(a)
	require.NoError(t, <-passed)
}

func TestAheadEndsWhenThePieceIsWanted(t *testing.T) {
	g := budget.NewGate(1000, 0)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	defer mem.Free(mem.Allocate(900))
	now := make(chan struct{})
	passed := make(chan error, 1)
	go func() { passed <- g.Ahead(context.Background(), now, 200) }()
	close(now)
	require.NoError(t, <-passed)
}

func TestWaitsEndWithTheContext(t *testing.T) {
	g := budget.NewGate(1000, 0)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	defer mem.Free(mem.Allocate(900))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, g.Ahead(ctx, nil, 200), context.Canceled)
	_, err := g.Large(ctx, 200)
	require.ErrorIs(t, err, context.Canceled)
	done, err := g.Large(context.Background(), 50)
	require.NoError(t, err, "who left holds no turn")
	done()
}

func TestLargeWaitsForRoomAndGivesUpWithAReason(t *testing.T) {
	g := budget.NewGate(1000, 30*time.Millisecond)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	a := mem.Allocate(800)
	_, err := g.Large(context.Background(), 400)
	require.True(t, fault.Is(err, "MEMORY_BUSY"), "%v", err)
	require.ErrorContains(t, err, "400 bytes")
	mem.Free(a)
	done, err := g.Large(context.Background(), 400)
	require.NoError(t, err)
	require.EqualValues(t, 400, g.Used())
	done()
	done()
	require.Zero(t, g.Used())
}

func TestLargerThanTheLimitComesAlone(t *testing.T) {
	g := budget.NewGate(1000, 30*time.Millisecond)
	done, err := g.Large(context.Background(), 5000)
	require.NoError(t, err)
	_, err = g.Large(context.Background(), 10)
	require.True(t, fault.Is(err, "MEMORY_BUSY"), "%v", err)
	done()
	again, err := g.Large(context.Background(), 10)
	require.NoError(t, err)
	again()
}

// TestManyLargeBlocksStayBelowTheLimit: readers that claim, allocate, let go of
// the claim and free some time later never hold more than the limit together.
func TestManyLargeBlocksStayBelowTheLimit(t *testing.T) {
	const limit, block = 10_000, 900
	g := budget.NewGate(limit, 0)
	mem := g.Open().Allocator(memory.NewGoAllocator())
	var most atomic.Int64
	var readers sync.WaitGroup
	for range 64 {
		readers.Go(func() {
			for range 50 {
				done, err := g.Large(context.Background(), block)
				if err != nil {
					t.Error(err)
					return
				}
				b := mem.Allocate(block)
				for used := g.Used(); ; {
					was := most.Load()
					if used <= was || most.CompareAndSwap(was, used) {
						break
					}
				}
				done()
				mem.Free(b)
			}
		})
	}
	readers.Wait()
	require.Zero(t, g.Used())
	// Between allocation and the end of its claim a block counts twice.
	require.LessOrEqual(t, most.Load(), int64(limit+64*block))
	require.Greater(t, most.Load(), int64(block), "they did run side by side")
}

// TestOrdinaryBlocksDoNotWait: however much reads of slow clients hold.
func TestOrdinaryBlocksDoNotWait(t *testing.T) {
	g := budget.NewGate(1<<20, time.Hour)
	slow := g.Open()
	defer slow.Close()
	held := slow.Allocator(memory.NewGoAllocator()).Allocate(2 << 20)
	require.NotEmpty(t, held)
	quick := g.Open()
	defer quick.Close()
	const block = 200 << 10
	done, err := quick.Block(context.Background(), block, nil, false)
	require.NoError(t, err)
	require.EqualValues(t, int64(cap(held))+2*block, g.Used())
	done()
	// Ahead of a client that has not asked, it waits, and large ones do.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = quick.Block(ctx, block, make(chan struct{}), false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = quick.Block(ctx, 3<<20, nil, false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	done, err = quick.Block(context.Background(), 3<<20, nil, true)
	require.NoError(t, err, "who holds another does not wait")
	done()
}
