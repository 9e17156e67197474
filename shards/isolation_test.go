package shards

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// explosive is memory that panics once it is armed, as a bug in a decoder or an
// encoder would.
type explosive struct {
	memory.Allocator
	armed atomic.Bool
}

func (e *explosive) Allocate(n int) []byte {
	if e.armed.Load() {
		panic("boom")
	}
	return e.Allocator.Allocate(n)
}

func (e *explosive) Reallocate(n int, b []byte) []byte {
	if e.armed.Load() {
		panic("boom")
	}
	return e.Allocator.Reallocate(n, b)
}

// explosiveBed is a store whose memory panics when it is told to. What was
// allocated then is not given back, so nothing is checked at the end.
func explosiveBed(t *testing.T) (*bed, *explosive) {
	b := newBed(t)
	b.close()
	mem := &explosive{Allocator: memory.DefaultAllocator}
	s, err := Open(context.Background(), "/store", Options{FS: b.fs, Allocator: mem, FoldConcurrency: -1})
	if err != nil {
		t.Fatal(err)
	}
	b.s = s
	return b, mem
}

// TestPanicInFold: a panic on a goroutine of a fold is that fold's error, not
// the end of the process, and the slice can be folded later.
func TestPanicInFold(t *testing.T) {
	b, mem := explosiveBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}) })
	b.put(table, values{"a", int64(2)})
	mem.armed.Store(true)
	err := table.Fold(context.Background())
	mem.armed.Store(false)
	if err == nil || !strings.Contains(err.Error(), "BUG") {
		t.Fatalf("a fold that panics: %v", err)
	}
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := format(b.rows(table)); got != "a 2\n" {
		t.Fatalf("got\n%s", got)
	}
}

// TestPanicInPrepare: the same for the goroutines that encode slices.
func TestPanicInPrepare(t *testing.T) {
	b, mem := explosiveBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 8)
	var rows []values
	for i := range 64 {
		rows = append(rows, values{string(rune('A' + i)), int64(i)})
	}
	c, release := b.commitOf(table, rows, false)
	defer release()
	b.asRun(func() {
		mem.armed.Store(true)
		_, err := table.Prepare(context.Background(), c)
		mem.armed.Store(false)
		if err == nil || !strings.Contains(err.Error(), "BUG") {
			t.Fatalf("a commit whose encoding panics: %v", err)
		}
		b.put(table, rows...)
	})
	if got := len(b.rows(table)); got != len(rows) {
		t.Fatalf("%d rows", got)
	}
}

// TestPanicInPublish: whoever recovers from a panic in the publish section can
// go on, and so can everybody else.
func TestPanicInPublish(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("publishing nothing at all did not panic")
			}
		}()
		_, _ = table.Publish(context.Background(), []*Prepared{nil}, PublishOptions{})
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.put(table, values{"a", int64(1)})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the next commit hangs")
	}
}
