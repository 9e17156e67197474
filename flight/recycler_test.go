package flight

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// poisoned memory comes full of junk, as a recycler's does: what reads it before
// it writes it gives wrong answers in tests.
type poisoned struct{ memory.Allocator }

func junk(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}

func (p poisoned) Allocate(size int) []byte {
	b := p.Allocator.Allocate(size)
	junk(b)
	return b
}

func (p poisoned) Reallocate(size int, b []byte) []byte {
	had := len(b)
	grown := p.Allocator.Reallocate(size, b)
	if size > had {
		junk(grown[had:])
	}
	return grown
}

func (p poisoned) Free(b []byte) {
	junk(b)
	p.Allocator.Free(b)
}

func TestRecycledBlocksAreWholeAndAligned(t *testing.T) {
	r := newRecycler()
	for _, size := range []int{0, 1, 64, 2048, 2049, 4096, 4097, 100_000, 1 << 20, 1<<24 - 1, 1 << 24, 1<<24 + 1} {
		b := r.Allocate(size)
		require.Len(t, b, size)
		if size == 0 {
			continue
		}
		require.Zero(t, uintptr(unsafe.Pointer(&b[0]))%64, size)
		junk(b)
		b = r.Reallocate(size/2, b)
		require.Len(t, b, size/2)
		b = r.Reallocate(2*size, b)
		require.Len(t, b, 2*size)
		require.Equal(t, size/2, bytes.Count(b[:size/2], []byte{0xDB}))
		r.Free(b)
	}
}

func TestABlockGrowsInPlaceAsFarAsItHasRoom(t *testing.T) {
	r := newRecycler()
	b := r.Allocate(5000)
	first := &b[0]
	b = r.Reallocate(8192, b)
	require.Same(t, first, &b[0])
	b = r.Reallocate(8193, b)
	require.NotSame(t, first, &b[0])
}

func BenchmarkRecycler(b *testing.B) {
	for _, test := range []struct {
		name      string
		allocator memory.Allocator
	}{{"recycler", newRecycler()}, {"go", memory.NewGoAllocator()}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				block := test.allocator.Allocate(100_000)
				for size := 200_000; size < 1<<20; size *= 2 {
					block = test.allocator.Reallocate(size, block)
				}
				test.allocator.Free(block)
			}
		})
	}
}
