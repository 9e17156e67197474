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
// ones take its place. A client that stays quiet ackProofs times running until it
// gets what is held, and then goes on, reads: it has read all of it, and the next
// ackFreely bytes are sent at will again.
const (
	ackFreely = 32 << 10
	ackQuiet  = 2 * time.Millisecond
	ackHeld   = time.Second
	ackProofs = 8
	// ackReply is how soon the next commit must follow to be an answer.
	ackReply = 20 * time.Millisecond
	// ackSafe is how much may be unread while an error still gets through.
	ackSafe = 56 << 10
	// ackFrame is about what a message takes beside its JSON.
	ackFrame = 20
)

// putAcks sends what is durable, in a goroutine that may block for ever: the
// writer only leaves the newest progress with it.
type putAcks struct {
	stream flight.FlightService_DoPutServer
	sent   atomic.Int64 // bytes
	wake   chan struct{}
	done   chan struct{} // closed when the goroutine has ended

	// Of the goroutine's own.
	unread int64     // bytes of sent that may not be read yet
	proofs int       // held acknowledgements in a row that the client waited for
	probed time.Time // when such a one was sent

	mu     sync.Mutex
	newest *ingest.Progress // not sent yet
	final  bool
	err    error
}

func newPutAcks(stream flight.FlightService_DoPutServer) *putAcks {
	a := &putAcks{stream: stream, wake: make(chan struct{}, 1), done: make(chan struct{})}
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
	a.answered()
	if a.unread < ackFreely {
		return nil
	}
	held := time.NewTimer(ackHeld)
	defer held.Stop()
	for {
		a.mu.Lock()
		final := a.final
		a.mu.Unlock()
		if final {
			return nil
		}
		select {
		case <-a.wake:
			a.proofs = 0 // it does not wait
		case <-time.After(ackQuiet):
			a.probed = time.Now()
			return nil
		case <-held.C:
			return nil
		case <-ended:
			return a.stream.Context().Err()
		}
	}
}

// answered counts a commit that followed a held acknowledgement.
func (a *putAcks) answered() {
	if a.probed.IsZero() {
		return
	}
	a.proofs++
	if time.Since(a.probed) > ackReply {
		a.proofs = 0
	}
	a.probed = time.Time{}
	if a.proofs >= ackProofs {
		a.proofs, a.unread = 0, 0
	}
}

func (a *putAcks) send(progress ingest.Progress) error {
	text, err := json.Marshal(progress)
	if err != nil {
		return err
	}
	a.sent.Add(int64(len(text) + ackFrame))
	a.unread += int64(len(text) + ackFrame)
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
