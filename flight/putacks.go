package flight

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/sheaf-db/sheaf/ingest"
)

// HTTP/2 lets a server send a stream 64 KiB that its client does not read, by
// default; behind them nothing reaches the client any more, not even the
// stream's error. So acknowledgements, which a client need not read, are sent at
// will only up to ackFreely bytes. Beyond, one waits until the client has been
// quiet for ackQuiet (it may be waiting for it) but at most ackHeld, while newer
// ones take its place. One that covers all that has come is sent at once all the
// same: a client that sends a batch and waits must not wait for the quiet, too.
const (
	ackFreely = 32 << 10
	ackQuiet  = 2 * time.Millisecond
	ackHeld   = time.Second
	// ackSafe is how much may be unread while an error still gets through.
	ackSafe = 56 << 10
	// ackFrame is about what a message takes beside its JSON.
	ackFrame = 20
)

// putAcks sends what is durable, in a goroutine that may block for ever: the
// writer only leaves the newest progress with it.
type putAcks struct {
	stream flight.FlightService_DoPutServer
	covers func(ingest.Progress) bool // nothing else has come
	sent   atomic.Int64               // bytes
	wake   chan struct{}
	done   chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	newest *ingest.Progress // not sent yet
	final  bool
	err    error
}

func newPutAcks(stream flight.FlightService_DoPutServer, covers func(ingest.Progress) bool) *putAcks {
	a := &putAcks{stream: stream, covers: covers, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.err = guard(a.run)
	}()
	return a
}

// put leaves progress to be sent; it never blocks.
func (a *putAcks) put(progress ingest.Progress) {
	a.mu.Lock()
	a.newest = &progress
	a.mu.Unlock()
	signal(a.wake)
}

// last sends the end's acknowledgement and waits until it is on its way.
func (a *putAcks) last(ctx context.Context, progress ingest.Progress) error {
	a.mu.Lock()
	a.newest, a.final = &progress, true
	a.mu.Unlock()
	signal(a.wake)
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the goroutine, if it is not blocked, without a further message.
func (a *putAcks) stop() {
	a.mu.Lock()
	a.newest, a.final = nil, true
	a.mu.Unlock()
	signal(a.wake)
}

func (a *putAcks) run() error {
	for {
		if err := a.wait(); err != nil {
			return err
		}
		a.mu.Lock()
		progress, final := a.newest, a.final
		a.newest = nil
		a.mu.Unlock()
		if progress != nil {
			if err := a.send(*progress); err != nil {
				return err
			}
		}
		if final {
			return nil
		}
	}
}

// wait returns when an acknowledgement is to be sent.
func (a *putAcks) wait() error {
	ended := a.stream.Context().Done()
	select {
	case <-a.wake:
	case <-ended:
		return a.stream.Context().Err()
	}
	if a.sent.Load() < ackFreely {
		return nil
	}
	held := time.NewTimer(ackHeld)
	defer held.Stop()
	for {
		a.mu.Lock()
		newest, final := a.newest, a.final
		a.mu.Unlock()
		if final || newest != nil && a.covers(*newest) {
			return nil
		}
		select {
		case <-a.wake:
		case <-time.After(ackQuiet):
			return nil
		case <-held.C:
			return nil
		case <-ended:
			return a.stream.Context().Err()
		}
	}
}

func (a *putAcks) send(progress ingest.Progress) error {
	text, err := json.Marshal(progress)
	if err != nil {
		return err
	}
	a.sent.Add(int64(len(text) + ackFrame))
	return a.stream.Send(&flight.PutResult{AppMetadata: text})
}

// drainQuiet is how long a client that may not hear an error must have sent
// nothing before the stream ends.
const drainQuiet = 250 * time.Millisecond

// makeWay sees to it that the error of a stream reaches its client. If so many
// acknowledgements may lie unread that it could be stuck behind them, what the
// client still sends is taken and dropped, until it has ended its stream (then
// it reads) or waits: otherwise it would block in its writes for ever.
func (p *put) makeWay() {
	if p.acks == nil {
		return
	}
	p.acks.stop()
	if p.acks.sent.Load() < ackSafe {
		select {
		case <-p.acks.done: // nothing can block it
		case <-p.stream.Context().Done():
		}
		return
	}
	p.queue.close()
	for {
		p.queue.mu.Lock()
		ended := p.queue.err != nil
		p.queue.mu.Unlock()
		if ended {
			return
		}
		select {
		case <-p.queue.more:
		case <-time.After(drainQuiet):
			return
		case <-p.stream.Context().Done():
			return
		}
	}
}
