package shards

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestResumePositionIsDurable: a position is never told before its commit is
// synced, however the two meet.
func TestResumePositionIsDurable(t *testing.T) {
	var gate sync.RWMutex // held while the log may not be synced
	disk := errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if (isSync{}).Evaluate(op) && strings.HasSuffix(op.Path, ".log") {
			gate.RLock() // waiting is all that is wanted
			defer gate.RUnlock()
		}
		return nil
	}))
	b := newBedOn(t, disk)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	for round := range uint64(100) {
		p := b.prepare(table, []values{{"a", int64(round)}}, false)
		var asking sync.WaitGroup
		var told, done atomic.Uint64
		gate.Lock()
		for range 4 {
			asking.Go(func() {
				for done.Load() == 0 {
					position, _, err := table.ResumePosition("id")
					if err != nil {
						t.Error(err)
					}
					if done.Load() == 0 && position.Batches > round {
						told.Store(position.Batches)
					}
				}
			})
		}
		published := make(chan error, 1)
		go func() {
			_, err := table.Publish(context.Background(), []*Prepared{p}, PublishOptions{Positions: []Position{{"id", Progress{Batches: round + 1}}}})
			published <- err
		}()
		for table.applied() == round {
			runtime.Gosched() // whoever asks from now on waits for the sync
		}
		done.Store(1)
		gate.Unlock()
		if err := <-published; err != nil {
			t.Fatal(err)
		}
		asking.Wait()
		if n := told.Load(); n > 0 {
			t.Fatalf("position %d was told while %d was durable", n, round)
		}
	}
}
