package flight

import (
	"context"
	"io"
	"sync"

	"github.com/sheaf-db/sheaf/limits"
)

const (
	// putTake is how much of what has arrived is written at a time.
	putTake = limits.CommitBytes
	// putQueued bounds what waits for that: the next commit's worth gathers
	// while one is written.
	putQueued = putTake + putTake/2
)

// putQueue holds the messages of a stream between the goroutine that receives
// them and the one that writes them.
type putQueue struct {
	mu       sync.Mutex
	messages []*inbound
	bytes    int
	err      error // why nothing comes any more; io.EOF is the regular end
	closed   bool

	more chan struct{} // signals take
	room chan struct{} // signals push
}

func newPutQueue() *putQueue {
	return &putQueue{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push adds a message once there is room. After close it drops messages.
func (q *putQueue) push(ctx context.Context, m *inbound) error {
	for {
		q.mu.Lock()
		switch {
		case q.closed:
			q.mu.Unlock()
			m.release()
			signal(q.more)
			return nil
		case q.bytes < putQueued:
			q.messages = append(q.messages, m)
			q.bytes += m.Size
			q.mu.Unlock()
			signal(q.more)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end says that nothing more comes. What has come is still taken.
func (q *putQueue) end(err error) {
	if err == nil {
		err = io.EOF
	}
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	signal(q.more)
}

// close drops what is queued and what still comes.
func (q *putQueue) close() {
	q.mu.Lock()
	dropped := q.messages
	q.messages, q.bytes, q.closed = nil, 0, true
	q.mu.Unlock()
	for _, m := range dropped {
		m.release()
	}
	signal(q.room)
}

// settler publishes in the background; see ingest.Writer.
type settler interface {
	Idle() <-chan struct{}
	Settle() error
}

// take waits for messages and takes as many as have come, up to about most
// bytes. While the writer, which may be nil, is busy with an earlier commit, it
// waits for that many, so that small messages share the next one; an error of
// that commit is returned at once. At the end of the stream it is why it ended.
func (q *putQueue) take(ctx context.Context, writer settler, most int) ([]*inbound, error) {
	var busy <-chan struct{} // nil once the writer is idle
	if writer != nil {
		busy = writer.Idle()
	}
	for {
		q.mu.Lock()
		waiting, full, err := len(q.messages) > 0, q.bytes >= most, q.err
		if waiting && (busy == nil || full || err != nil) {
			taken := q.takeLocked(most)
			q.mu.Unlock()
			signal(q.room)
			return taken, nil
		}
		q.mu.Unlock()
		if !waiting && err != nil {
			return nil, err
		}
		select {
		case <-q.more:
		case <-busy:
			if err := writer.Settle(); err != nil {
				return nil, err
			}
			busy = nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q *putQueue) takeLocked(most int) []*inbound {
	n, bytes := 0, 0
	for n < len(q.messages) && (n == 0 || bytes < most) {
		bytes += q.messages[n].Size
		n++
	}
	taken := q.messages[:n:n]
	q.messages = q.messages[n:]
	q.bytes -= bytes
	return taken
}
