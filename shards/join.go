package shards

import (
	"errors"
	"io"
	"time"

	"github.com/sheaf-db/sheaf/shards/block"
)

// Pieces of which little is wanted give little batches: a list of a hundred
// keys gives one of each slice, a filter that keeps a row in a hundred one of
// each few thousand rows. A message costs both sides as much as a hundred rows
// do, so such batches are joined before they are handed out.
const (
	// smallShare of TargetBytes is small, joinedShare is enough.
	smallShare  = 8
	joinedShare = 2
	// joinWait bounds how long a batch that is ready waits for the next one, so
	// that a client sees the first rows of a filter that keeps few of them.
	joinWait = 2 * time.Millisecond
)

// errNotYet is what take answers if it was not to wait any longer.
var errNotYet = errors.New("BUG: a batch that is not ready was handed out")

// joined is a batch of take, with small ones behind it.
func (s *pieces) joined() (*Batch, error) {
	if b := s.ready; b != nil {
		s.ready = nil
		return b, nil
	}
	b, err := s.take(nil)
	if err != nil || !s.small(b) || !s.joins() {
		return b, err
	}
	var timer *time.Timer
	list, rows, bytes := []*Batch{b}, b.Rows, b.bytes()
	for bytes < int64(s.plan.request.TargetBytes/joinedShare) && (s.left < 0 || int64(rows) < s.left) && s.joins() {
		if timer == nil {
			timer = time.NewTimer(joinWait)
			defer timer.Stop()
		}
		next, err := s.take(timer.C)
		if err != nil {
			break // take says it again, unless it was only the time
		}
		if !s.small(next) {
			s.ready = next
			break
		}
		list = append(list, next)
		rows += next.Rows
		bytes += next.bytes()
	}
	if len(list) == 1 {
		return b, nil
	}
	return s.join(list, rows), nil
}

// joins is false if no other batch will come, or none that is worth waiting for:
// without goroutines only what is bounded by keys is sure to come soon.
func (s *pieces) joins() bool {
	if s.inline == nil {
		return len(s.started)+len(s.cut)+len(s.slices) > 0
	}
	for _, list := range [][]sliceRanges{s.cut, s.slices} {
		for _, of := range list {
			for _, r := range of.ranges {
				if r.Low == nil || r.High == nil {
					return false
				}
			}
			if of.ranges == nil {
				return false
			}
		}
	}
	return len(s.cut)+len(s.slices) > 0
}

func (s *pieces) small(b *Batch) bool {
	return b.bytes() < int64(s.plan.request.TargetBytes/smallShare)
}

func (b *Batch) bytes() int64 {
	total := int64(0)
	for _, column := range b.Columns {
		total += arrayBytes(column.Data())
	}
	return total
}

// join copies batches one behind the other and releases them.
func (s *pieces) join(list []*Batch, rows int) *Batch {
	if s.vectors == nil {
		for _, column := range list[0].Columns {
			s.vectors = append(s.vectors, block.NewVector(s.plan.request.Mem, column.DataType()))
		}
	}
	for _, b := range list {
		for i, column := range b.Columns {
			s.vectors[i].AppendArray(column, 0, b.Rows)
		}
		b.Release()
	}
	b := &Batch{Rows: rows, LastKey: list[len(list)-1].LastKey}
	for _, v := range s.vectors {
		b.Columns = append(b.Columns, v.NewArray())
	}
	return b
}

// closeJoin gives back what joining holds.
func (s *pieces) closeJoin() {
	if s.ready != nil {
		s.ready.Release()
		s.ready = nil
	}
	for _, v := range s.vectors {
		v.Release()
	}
	s.vectors = nil
}

// receive is the piece's next batch; io.EOF at its end, errNotYet when wait
// comes first.
func (p *piece) receive(wait <-chan time.Time) (*Batch, error) {
	select {
	case b, ok := <-p.batches:
		if ok {
			return b, nil
		}
	case <-wait:
		return nil, errNotYet
	}
	if p.err != nil {
		return nil, p.err
	}
	return nil, io.EOF
}
