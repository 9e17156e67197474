package ingest

import (
	"sync"

	"github.com/sheaf-db/sheaf/fault"
)

// Streams is what the streams of a server know of each other. One per server.
//
// It knows which resumable streams are open, so that of two streams with one
// resume id only the newer one writes: a client that comes back may find its old
// stream still open, and nothing may double. And it has a queue for each table
// that streams are open to, in which their small commits meet.
type Streams struct {
	mu     sync.Mutex
	open   map[streamID]*fence
	queues map[uint64]*queue // by table
}

type streamID struct {
	table  uint64
	resume string
}

// fence is what a resumable stream holds while it publishes.
type fence struct {
	mu    sync.Mutex
	taken bool
}

// enter makes the caller the only writer under the id. When it returns, the
// stream before publishes no more, and what it did publish is durable.
func (s *Streams) enter(id streamID) *fence {
	s.mu.Lock()
	before := s.open[id]
	f := &fence{}
	if s.open == nil {
		s.open = map[streamID]*fence{}
	}
	s.open[id] = f
	s.mu.Unlock()
	if before != nil {
		before.mu.Lock()
		before.taken = true
		before.mu.Unlock()
	}
	return f
}

// leave forgets the fence, unless another stream has taken the id.
func (s *Streams) leave(id streamID, f *fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] == f {
		delete(s.open, id)
	}
}

// join is the queue of a table; each join is followed by a quit.
func (s *Streams) join(table uint64) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[table]
	if q == nil {
		q = &queue{}
		if s.queues == nil {
			s.queues = map[uint64]*queue{}
		}
		s.queues[table] = q
	}
	q.streams++
	return q
}

// quit forgets a table's queue behind its last stream.
func (s *Streams) quit(table uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[table]
	if q.streams--; q.streams == 0 {
		delete(s.queues, table)
	}
}

// hold runs publish while nobody can take the id.
func (f *fence) hold(publish func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken {
		return errTaken()
	}
	return publish()
}

func errTaken() error {
	return fault.New(fault.Aborted, "RESUME_TAKEN", "another stream was opened with this stream's resume id and goes on in its place")
}
