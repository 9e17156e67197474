package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// putCommand is the JSON of a DoPut descriptor, as docs/wire.md describes it.
type putCommand struct {
	Table       string    `json:"table"`
	Mode        string    `json:"mode,omitempty"`
	ShardingKey *[]string `json:"sharding_key,omitempty"`
	SortingKey  *[]string `json:"sorting_key,omitempty"`
	Slices      int       `json:"slices,omitempty"`
	Atomic      bool      `json:"atomic,omitempty"`
	AddColumns  bool      `json:"add_columns,omitempty"`
	Resume      string    `json:"resume,omitempty"`
}

// durable is what the gateway says is on disk.
type durable struct {
	Batches uint64 `json:"batches"`
	Rows    uint64 `json:"rows"`
	Commit  uint64 `json:"commit"`
}

// put is one open DoPut stream. Acknowledgements are read while batches are
// written, so that neither side waits for the other.
type put struct {
	gateway *gateway
	writer  *flight.Writer
	stream  flight.FlightService_DoPutClient
	stop    context.CancelFunc
	first   chan durable // with resume: what was durable before
	ended   chan struct{}
	last    durable // valid when ended is closed, like err
	err     error
}

// openPut begins a stream. The caller calls finish or abort.
func (g *gateway) openPut(ctx context.Context, schema *arrow.Schema, command putCommand) (*put, error) {
	descriptor, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	stream, err := g.DoPut(ctx)
	if err != nil {
		stop()
		return nil, g.failed(err)
	}
	p := &put{
		gateway: g, stream: stream, stop: stop,
		writer: flight.NewRecordWriter(stream, ipc.WithSchema(schema)),
		first:  make(chan durable, 1), ended: make(chan struct{}),
	}
	p.writer.SetFlightDescriptor(&flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: descriptor})
	go p.readAcks()
	return p, nil
}

func (p *put) readAcks() {
	defer close(p.ended)
	for {
		result, err := p.stream.Recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.err = err
			}
			return
		}
		if err := json.Unmarshal(result.GetAppMetadata(), &p.last); err != nil {
			p.err = fmt.Errorf("the gateway's acknowledgement %q: %w", result.GetAppMetadata(), err)
			p.stop()
			return
		}
		select {
		case p.first <- p.last:
		default:
		}
	}
}

// resumed waits for what was durable under the stream's resume id.
func (p *put) resumed() (durable, error) {
	select {
	case before := <-p.first:
		return before, nil
	case <-p.ended:
		return durable{}, p.failure(io.ErrUnexpectedEOF)
	}
}

// write sends one batch.
func (p *put) write(batch arrow.RecordBatch) error {
	if err := p.writer.Write(batch); err != nil {
		return p.failure(err)
	}
	return nil
}

// finish ends the stream and returns what is durable: everything that was sent.
func (p *put) finish() (durable, error) {
	defer p.stop()
	if err := p.writer.Close(); err != nil {
		return durable{}, p.failure(err)
	}
	if err := p.stream.CloseSend(); err != nil {
		return durable{}, p.failure(err)
	}
	<-p.ended
	return p.last, p.gateway.failed(p.err)
}

// abort breaks the stream off.
func (p *put) abort() {
	p.stop()
	<-p.ended
}

// failure is why a write failed: what the gateway said, if it said something.
func (p *put) failure(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		<-p.ended // gRPC gives the reason only to the receiving side
		if p.err != nil {
			err = p.err
		}
	}
	return p.gateway.failed(err)
}
