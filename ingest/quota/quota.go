// Package quota bounds what the decoding of one message may allocate: a few
// bytes of dictionary, view or run-end encoded data can stand for any number of
// rows.
package quota

import (
	"errors"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Allocator gives out memory of another one up to a limit. Beyond it Allocate
// and Reallocate panic with ErrExceeded, since allocators have no other way to
// refuse; see Recover.
type Allocator struct {
	memory.Allocator
	limit int64
	used  atomic.Int64
}

// ErrExceeded is the panic of an Allocator whose limit is met.
var ErrExceeded = errors.New("quota: more memory than one message may take")

// New is an allocator of at most limit bytes at a time.
func New(mem memory.Allocator, limit int64) *Allocator {
	return &Allocator{Allocator: mem, limit: limit}
}

// Recover, deferred, turns the panic ErrExceeded into an error; other panics go
// on.
func Recover(err *error, exceeded func() error) {
	switch p := recover(); p {
	case nil:
	case ErrExceeded:
		*err = exceeded()
	default:
		panic(p)
	}
}

func (a *Allocator) take(n int) {
	if a.used.Add(int64(n)) > a.limit {
		a.used.Add(int64(-n))
		panic(ErrExceeded)
	}
}

// Allocate is memory.Allocator's.
func (a *Allocator) Allocate(size int) []byte {
	a.take(size)
	return a.Allocator.Allocate(size)
}

// Reallocate is memory.Allocator's.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	a.take(size - len(b))
	return a.Allocator.Reallocate(size, b)
}

// Free is memory.Allocator's.
func (a *Allocator) Free(b []byte) {
	a.used.Add(int64(-len(b)))
	a.Allocator.Free(b)
}
