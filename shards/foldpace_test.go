package shards

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPace: folds wait for their bytes while scans or commits are at work, and only then.
func TestPace(t *testing.T) {
	p := newPace(1 << 20)
	began := time.Now()
	if err := p.wait(context.Background(), 1<<30); err != nil || time.Since(began) > 100*time.Millisecond {
		t.Errorf("without reads a fold waited %v (%v)", time.Since(began), err)
	}
	p.used()
	began = time.Now()
	if err := p.wait(context.Background(), 100<<10); err != nil || time.Since(began) < 80*time.Millisecond {
		t.Errorf("beside reads 100 KiB at 1 MiB a second took %v (%v)", time.Since(began), err)
	}
	// The reads end: the fold goes on soon, whatever it owes.
	p.used()
	began = time.Now()
	if err := p.wait(context.Background(), 1<<30); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("after reads had ended a fold waited %v (%v)", time.Since(began), err)
	}
	// A store that closes ends the wait.
	p.used()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := p.wait(ctx, 1<<30); !errors.Is(err, context.Canceled) {
		t.Errorf("a fold that was cancelled got %v", err)
	}
}

// TestDelay: the further the folds are behind the longer a commit waits, and it
// is told why.
func TestDelay(t *testing.T) {
	pol := defaultPolicy()
	before := time.Duration(0)
	for depth := slowDepth + 1; depth < slowDepth+200; depth += 20 {
		wait, why := pol.delay(depth, 0)
		if wait < before || wait == 0 || wait > slowMost || why == "" {
			t.Errorf("%d runs: %v after %v, %q", depth, wait, before, why)
		}
		before = wait
	}
	if wait, why := pol.delay(slowDepth, slowDelta*pol.deltaBytes); wait != 0 || why != "" {
		t.Errorf("folds that keep up: %v, %q", wait, why)
	}
	if wait, why := pol.delay(0, (slowDelta+2)*pol.deltaBytes); wait != 2*slowStep || why == "" {
		t.Errorf("much delta: %v, %q", wait, why)
	}
}

// TestSlowedCommitsAreCounted: what back-pressure did is in the table's FoldStats.
func TestSlowedCommitsAreCounted(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.put(table, values{"a", int64(1)})
	b.s.options.FoldConcurrency = 1 // as if folds ran, and were far behind
	table.folds.mu.Lock()
	table.folds.depth = slowDepth + 4
	table.folds.mu.Unlock()
	began := time.Now()
	b.put(table, values{"b", int64(1)})
	took := time.Since(began)
	s := table.FoldStats()
	b.s.options.FoldConcurrency = -1
	if took < 4*slowStep || s.Slowed != 1 || s.SlowedFor < 4*slowStep || s.Delay != 4*slowStep || s.Why == "" {
		t.Errorf("a commit took %v; the stats are %+v", took, s)
	}
}
