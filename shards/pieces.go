package shards

import (
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/sheaf-db/sheaf/shards/run"
)

// pieces scans slices one behind the other, cut into pieces of about equal size
// that several goroutines work on; what they produce is handed out in the order
// of the pieces. So the order of rows does not depend on the cores, and what
// lies ready is bounded: a few pieces of a few batches.
type pieces struct {
	plan     *scanPlan
	slices   []sliceRanges // not yet cut
	cut      []sliceRanges // cut, not yet started
	started  []*piece      // in order; the first is being handed out
	inline   *run.Scan     // the one piece of a small scan, without a goroutine
	workers  sync.WaitGroup
	mu       sync.Mutex
	finished Counters
	ended    bool
}

// piece is a cut being scanned by a goroutine of its own.
type piece struct {
	batches chan *Batch // closed at its end
	err     error       // read after batches is closed
}

// readyBatches is how many batches of a piece may lie ready. A piece is about
// four batches; more come only from a piece that expands when it is decoded.
const readyBatches = 8

func newPieces(p *scanPlan, of []sliceRanges) *pieces {
	if p.request.Order == Desc {
		for i, j := 0, len(of)-1; i < j; i, j = i+1, j-1 {
			of[i], of[j] = of[j], of[i]
		}
	}
	return &pieces{plan: p, slices: of}
}

func (s *pieces) next() (*Batch, error) {
	for {
		if err := s.plan.ctx.Err(); err != nil {
			return nil, err
		}
		if s.inline != nil {
			b, err := s.inline.Next()
			if err != io.EOF {
				return fromRun(b), err
			}
			s.closeInline()
		}
		if err := s.start(); err != nil {
			return nil, err
		}
		if s.inline != nil {
			continue
		}
		if len(s.started) == 0 {
			return nil, io.EOF
		}
		first := s.started[0]
		if b, ok := <-first.batches; ok {
			return b, nil
		}
		if first.err != nil {
			return nil, first.err
		}
		s.started = s.started[1:]
	}
}

// start keeps as many pieces going as the scan may use goroutines, and one more
// for the one that is being handed out.
func (s *pieces) start() error {
	for len(s.started) <= s.plan.request.Parallel {
		if err := s.refill(); err != nil {
			return err
		}
		if len(s.cut) == 0 {
			return nil
		}
		of := s.cut[0]
		s.cut = s.cut[1:]
		// The last piece with nothing before it needs no goroutine: point
		// lookups are answered where they are asked.
		if len(s.started) == 0 && (s.plan.request.Parallel == 1 || len(s.cut)+len(s.slices) == 0) {
			var err error
			s.inline, err = s.plan.open(of, s.plan.request.Columns)
			return err
		}
		s.launch(of)
	}
	return nil
}

// refill cuts the next slice when no cut is left.
func (s *pieces) refill() error {
	for len(s.cut) == 0 && len(s.slices) > 0 {
		next := s.slices[0]
		s.slices = s.slices[1:]
		cut, err := s.plan.cutSlice(next)
		if err != nil {
			return err
		}
		s.cut = cut
	}
	return nil
}

func (s *pieces) launch(of sliceRanges) {
	p := &piece{batches: make(chan *Batch, readyBatches)}
	s.started = append(s.started, p)
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		defer close(p.batches)
		// A bug in a decoder must not end the process for everybody.
		defer func() {
			if r := recover(); r != nil {
				p.err = fmt.Errorf("BUG: scanning slice %d of %s: %v\n%s", of.slice, s.plan.snapshot.table.label(), r, debug.Stack())
			}
		}()
		p.err = s.work(p, of)
	}()
}

func (s *pieces) work(p *piece, of sliceRanges) error {
	scan, err := s.plan.open(of, s.plan.request.Columns)
	if err != nil {
		return err
	}
	defer func() {
		s.mu.Lock()
		s.finished.Add(scan.Counters())
		s.mu.Unlock()
		_ = scan.Close() // reading is over; its errors came from Next
	}()
	for {
		b, err := scan.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case p.batches <- fromRun(b):
		case <-s.plan.ctx.Done():
			b.Release()
			return s.plan.ctx.Err()
		}
	}
}

func (s *pieces) closeInline() {
	s.finished.Add(s.inline.Counters())
	_ = s.inline.Close()
	s.inline = nil
}

// close waits for the goroutines, which the cancelled context ends, and gives
// back what lies ready.
func (s *pieces) close() {
	if s.ended {
		return
	}
	s.ended = true
	if s.inline != nil {
		s.closeInline()
	}
	for _, p := range s.started {
		for b := range p.batches {
			b.Release()
		}
	}
	s.workers.Wait()
	s.started, s.cut, s.slices = nil, nil, nil
}

func (s *pieces) counters() Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.finished
	if s.inline != nil {
		c.Add(s.inline.Counters())
	}
	return c
}

func fromRun(b *run.Batch) *Batch {
	if b == nil {
		return nil
	}
	return &Batch{Columns: b.Columns, Rows: b.Rows, LastKey: b.LastKey}
}
