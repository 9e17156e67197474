package flight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/ingest"
	"github.com/sheaf-db/sheaf/ingest/ipcread"
	"github.com/sheaf-db/sheaf/request"
	"github.com/sheaf-db/sheaf/shards"
)

// DoPut writes a stream of record batches to a table. Three goroutines share
// the work: one receives messages into a bounded queue, this one decodes what
// has arrived and writes it, one sends acknowledgements, which the client may
// never read.
func (s *Server) DoPut(stream flight.FlightService_DoPutServer) error {
	p := &put{server: s, stream: stream, queue: newPutQueue()}
	go p.receive()
	defer p.queue.close()
	err := p.run(stream.Context())
	if err == nil {
		return nil
	}
	err = p.explain(err)
	p.makeWay()
	return err
}

// put is one DoPut stream.
type put struct {
	server  *Server
	stream  flight.FlightService_DoPutServer
	queue   *putQueue
	decoded *ipcread.Stream
	writer  *ingest.Writer // nil until the schema is accepted
	acks    *putAcks
	batches uint64 // decoded so far, and before on a resumed stream
}

// receive moves messages into the queue until the stream ends.
func (p *put) receive() {
	from := receiver{server: p.server, stream: p.stream}
	err := guard(func() error {
		for {
			message, err := from.receive()
			if err != nil {
				return err
			}
			if err := p.queue.push(p.stream.Context(), message); err != nil {
				message.release()
				return err
			}
		}
	})
	p.queue.end(err)
}

func (p *put) run(ctx context.Context) error {
	first, descriptor, err := p.first(ctx)
	if err != nil {
		return err
	}
	p.decoded = ipcread.NewStream(p.server.allocator, int64(p.server.maxMessage))
	defer p.decoded.Release()
	_, err = p.decoded.Read(first.Header, first.Body)
	first.release()
	if err != nil {
		return err
	}
	if err := p.open(ctx, descriptor); err != nil {
		return err
	}
	defer p.writer.Abort()
	if err := p.copy(ctx); err != nil {
		p.writer.Abort()
		return err
	}
	if err := p.writer.Finish(ctx); err != nil {
		return err
	}
	return p.acks.last(ctx, p.writer.Progress())
}

// first is the message that holds the schema, and the descriptor, which comes
// with it or before it. The caller releases the message.
func (p *put) first(ctx context.Context) (*inbound, *flight.FlightDescriptor, error) {
	var descriptor *flight.FlightDescriptor
	for n := 0; ; n++ {
		messages, err := p.queue.take(ctx, nil, 1)
		switch {
		case errors.Is(err, io.EOF) && n == 0:
			return nil, nil, fault.Invalid("STREAM_EMPTY", "the stream ended without a message; send a descriptor and a schema")
		case errors.Is(err, io.EOF):
			return nil, nil, fault.Invalid("STREAM_EMPTY", "the stream ended without a schema")
		case err != nil:
			return nil, nil, err
		}
		message := messages[0]
		if descriptor == nil {
			descriptor = message.Descriptor
		}
		bare, err := isBare(message)
		switch {
		case err != nil:
			message.release()
			return nil, nil, err
		case bare:
			message.release()
		case descriptor == nil:
			message.release()
			return nil, nil, fault.Invalid("DESCRIPTOR_INVALID", `the first message has no descriptor: give a path ["table"] or a command {"table": …}`)
		default:
			return message, descriptor, nil
		}
	}
}

// isBare: the message holds metadata only, which changes nothing.
func isBare(m *inbound) (bool, error) {
	if len(m.Header) > 0 {
		return false, nil
	}
	if m.Body != nil && m.Body.Len() > 0 {
		return false, fault.Invalid("MESSAGE_INVALID", "a message has a body and no header")
	}
	return true, nil
}

// open accepts the schema: from here on errors say what is durable.
func (p *put) open(ctx context.Context, descriptor *flight.FlightDescriptor) error {
	target, options, err := targetOf(descriptor)
	if err != nil {
		return err
	}
	p.acks = newPutAcks(p.stream)
	options.Mem, options.Vectors = p.server.allocator, p.server.scanMemory
	options.MaxBatch = int64(p.server.maxMessage)
	options.Streams = &p.server.writers
	options.Committed = p.acks.put
	p.writer, err = ingest.Open(ctx, p.server.store, target, p.decoded.Schema(), options)
	if err != nil {
		p.acks.stop()
		return err
	}
	p.batches = p.writer.Progress().Batches
	if options.Resume != "" {
		p.acks.put(p.writer.Progress())
	}
	return nil
}

// targetOf reads a DoPut's descriptor.
func targetOf(descriptor *flight.FlightDescriptor) (ingest.Target, ingest.Options, error) {
	var target ingest.Target
	var options ingest.Options
	fail := func(err error) (ingest.Target, ingest.Options, error) {
		return ingest.Target{}, ingest.Options{}, err
	}
	var err error
	switch descriptor.GetType() {
	case flight.DescriptorPATH:
		if target.Name, err = tableOfPath(descriptor.GetPath()); err != nil {
			return fail(err)
		}
		return target, options, nil
	case flight.DescriptorCMD:
	default:
		return fail(fault.Invalid("DESCRIPTOR_INVALID", `the descriptor is neither a path ["table"] nor a command {"table": …}`))
	}
	if isFlightSQL(descriptor.GetCmd()) {
		return fail(fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "Flight SQL is not implemented by this version: send a path or a JSON command"))
	}
	command, err := request.ParseCommand(bytes.TrimSpace(descriptor.GetCmd()))
	if err != nil {
		return fail(err)
	}
	if target.Name, err = shards.ParseName(command.Table); err != nil {
		return fail(err)
	}
	target.Keys = ingest.Keys{Sharding: command.ShardingKey, Sorting: command.SortingKey, Slices: command.Slices}
	if options.Mode, err = ingest.ParseMode(command.Mode); err != nil {
		return fail(err)
	}
	options.Atomic, options.AddColumns, options.Resume = command.Atomic, command.AddColumns, command.Resume
	return target, options, nil
}

// copy writes what arrives until the stream ends.
func (p *put) copy(ctx context.Context) error {
	for {
		messages, err := p.queue.take(ctx, p.writer, putTake)
		if err == nil {
			err = p.write(ctx, messages)
		} else if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write decodes messages and writes their batches. Where a message cannot be
// decoded, the batches before it are written first.
func (p *put) write(ctx context.Context, messages []*inbound) error {
	batches := make([]arrow.RecordBatch, 0, len(messages))
	defer func() {
		for _, batch := range batches {
			batch.Release()
		}
		for _, message := range messages {
			message.release()
		}
	}()
	var broken error
	for _, message := range messages {
		batch, err := p.decode(message)
		if err != nil {
			broken = err
			break
		}
		if batch != nil {
			batches = append(batches, batch)
			p.batches++
		}
	}
	err := p.writer.Write(ctx, batches)
	if err == nil && broken != nil {
		err = p.writer.Settle()
	}
	if err == nil {
		err = broken
	}
	return err
}

func (p *put) decode(message *inbound) (arrow.RecordBatch, error) {
	bare, err := isBare(message)
	if bare {
		return nil, nil
	}
	var batch arrow.RecordBatch
	if err == nil {
		batch, err = p.decoded.Read(message.Header, message.Body)
	}
	if found := fault.Of(err); found != nil {
		return nil, fault.New(found.Kind, found.Reason, "batch %d, %s", p.batches, found.Message)
	}
	return batch, err
}

// explain words the error of a stream: once the schema was accepted it says
// what is durable.
func (p *put) explain(err error) error {
	if p.writer == nil {
		return err
	}
	progress := p.writer.Progress()
	found := fault.Of(err)
	switch {
	case p.stream.Context().Err() != nil && found == nil:
		return err // the client left: nobody reads it
	case found == nil && status.Code(err) == codes.ResourceExhausted:
		found = fault.New(fault.ResourceExhausted, "MESSAGE_TOO_LARGE", "%s: send smaller batches", status.Convert(err).Message())
	case found == nil:
		incident := newIncident()
		p.server.log.LogAttrs(p.stream.Context(), slog.LevelError, "DoPut", slog.String("incident", incident), slog.String("error", err.Error()))
		found = fault.New(fault.Internal, "INTERNAL", "an internal error, %s in the server's log", incident)
	}
	durable := fmt.Sprintf(" %s", progress)
	return fault.New(found.Kind, found.Reason, "%s%s", clip(found.Message, messageBytes-len(durable)-len(found.Reason)-8), durable)
}
