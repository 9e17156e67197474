package flight

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// recycler is the allocator of what a scan decodes into: Arrow memory that is
// used for a few milliseconds and freed when gRPC has written it. Such blocks
// are handed out again, not zeroed, by size class; measured on a full scan, half
// of the server's time went into fresh memory without it (zeroing, page faults,
// collection). Blocks that are never freed, since gRPC drops some messages of
// cancelled streams, are the garbage collector's.
//
// Whoever gets its memory must write it before reading it: vectors do, arrow-go's
// IPC writer does not.
type recycler struct {
	classes [recycleMost - recycleLeast + 1]sync.Pool // of *byte, the first of a block
	small   memory.Allocator
}

// Blocks have 1<<recycleLeast (4 KiB) to 1<<recycleMost (16 MiB) bytes; others
// come from Go's own allocator.
const (
	recycleLeast = 12
	recycleMost  = 24
)

func newRecycler() *recycler { return &recycler{small: memory.NewGoAllocator()} }

// classOf is the class of blocks that hold size bytes; none for other sizes.
func classOf(size int) (class int, ok bool) {
	if size <= 1<<(recycleLeast-1) || size > 1<<recycleMost {
		return 0, false
	}
	return max(bits.Len(uint(size-1)), recycleLeast) - recycleLeast, true
}

// Allocate gives memory of 64-byte alignment with any content.
func (r *recycler) Allocate(size int) []byte {
	class, ok := classOf(size)
	if !ok {
		return r.small.Allocate(size)
	}
	capacity := 1 << (class + recycleLeast)
	if first, found := r.classes[class].Get().(*byte); found {
		return unsafe.Slice(first, capacity)[:size]
	}
	return make([]byte, capacity)[:size] // of whole pages or a power of two: aligned
}

// Reallocate keeps the content and, where the block has room, the place.
func (r *recycler) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	grown := r.Allocate(size)
	copy(grown, b)
	r.Free(b)
	return grown
}

// Free takes back a whole block; other memory is left to the collector.
func (r *recycler) Free(b []byte) {
	class, ok := classOf(cap(b))
	if ok && cap(b) == 1<<(class+recycleLeast) {
		r.classes[class].Put(unsafe.SliceData(b))
	}
}
