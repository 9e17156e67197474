package shards

import (
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// pieces scans slices one behind the other, cut into pieces of about equal size
// that several goroutines work on; what they produce is handed out in the order
// of the pieces. So the order of rows does not depend on the cores, and what
// lies ready is bounded: a few pieces of a few batches.
type pieces struct {
	plan     *scanPlan
	columns  []uint32      // wanted, and behind them key columns if limit may need them
	left     int64         // of the limit; below 0: none
	slices   []sliceRanges // not yet cut
	cut      []sliceRanges // cut, not yet started
	started  []*piece      // in order; the first is being handed out
	inline   *run.Scan     // the one piece of a small scan, without a goroutine
	workers  sync.WaitGroup
	mu       sync.Mutex
	finished Counters
	ended    bool
	failed   error // what take ended with

	ready   *Batch          // taken, and too large to be joined to the last one
	vectors []*block.Vector // that batches are joined in
}

// piece is a cut being scanned by a goroutine of its own.
type piece struct {
	batches chan *Batch   // closed at its end
	err     error         // read after batches is closed
	wanted  chan struct{} // closed when the client waits for it
	asked   bool          // wanted is closed
}

// want tells that the client waits for the piece.
func (p *piece) want() {
	if !p.asked {
		p.asked = true
		close(p.wanted)
	}
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
	s := &pieces{plan: p, slices: of, columns: p.request.Columns, left: p.request.Limit}
	if p.request.Keys && s.left >= 0 {
		s.columns, _ = withKeys(p.request.Columns, p.snapshot.table.key.IDs)
	}
	return s
}

// rowBytes is what a row of the slices not yet begun takes as plain Arrow, on
// average of the run where that is most.
func (s *pieces) rowBytes() (most int64) {
	snapshot := s.plan.snapshot
	for _, of := range s.slices {
		for _, r := range snapshot.version.runs.of(of.slice, snapshot.table.slices) {
			most = max(most, int64(r.info.Plain/max(r.info.Rows, 1)))
		}
	}
	return most
}

// withKeys is columns with the missing key columns behind them, and where in
// them the key columns are.
func withKeys(columns, keys []uint32) (all []uint32, at []int) {
	all = slices.Clone(columns)
	for _, id := range keys {
		i := slices.Index(all, id)
		if i < 0 {
			i = len(all)
			all = append(all, id)
		}
		at = append(at, i)
	}
	return all, at
}

func (s *pieces) next() (*Batch, error) {
	b, err := s.joined()
	if err != nil {
		return nil, err
	}
	if s.left >= 0 {
		if err := s.trim(b); err != nil {
			b.Release()
			return nil, err
		}
		s.left -= int64(b.Rows)
	}
	releaseAll(b.Columns[len(s.plan.request.Columns):])
	b.Columns = b.Columns[:len(s.plan.request.Columns)]
	return b, nil
}

// trim cuts a batch to what is left of the limit: pieces that are scanned side
// by side do not know what the ones before them give.
func (s *pieces) trim(b *Batch) error {
	if int64(b.Rows) <= s.left {
		return nil
	}
	b.Rows = int(s.left)
	for i, column := range b.Columns {
		v := block.NewVector(s.plan.request.Mem, column.DataType())
		v.AppendArray(column, 0, b.Rows)
		b.Columns[i] = v.NewArray()
		v.Release()
		column.Release()
	}
	if !s.plan.request.Keys || b.Rows == 0 {
		return nil
	}
	_, at := withKeys(s.plan.request.Columns, s.plan.snapshot.table.key.IDs)
	b.LastKey = nil
	for _, i := range at {
		var err error
		if b.LastKey, err = key.AppendValue(b.LastKey, b.Columns[i], b.Rows-1); err != nil {
			return err
		}
	}
	return nil
}

// take is the next batch as a scan made it; errNotYet when wait comes first. Any
// other error is the end: it is given again by every later call.
func (s *pieces) take(wait <-chan time.Time) (b *Batch, err error) {
	if s.failed != nil {
		return nil, s.failed
	}
	if b, err = s.takeOne(wait); err != errNotYet {
		s.failed = err
	}
	return b, err
}

func (s *pieces) takeOne(wait <-chan time.Time) (*Batch, error) {
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
		s.started[0].want()
		b, err := s.started[0].receive(wait)
		if err != io.EOF {
			return b, err
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
			s.inline, err = s.plan.open(of, s.columns, s.left, nil)
			return err
		}
		s.launch(of, s.left)
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

func (s *pieces) launch(of sliceRanges, limit int64) {
	p := &piece{batches: make(chan *Batch, readyBatches), wanted: make(chan struct{})}
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
		p.err = s.work(p, of, limit)
	}()
}

func (s *pieces) work(p *piece, of sliceRanges, limit int64) error {
	scan, err := s.plan.open(of, s.columns, limit, p.wanted)
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
		if memory := s.plan.request.Memory; memory != nil {
			if err := memory.Ahead(s.plan.ctx, p.wanted, int64(s.plan.request.TargetBytes)); err != nil {
				return err
			}
		}
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
	s.closeJoin()
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
