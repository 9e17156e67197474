package flight

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/ingest/ipcread"
)

// inbound is one FlightData message as it came in. Use it with receive and call
// release once its bytes (and all arrays over Body) are no longer needed.
type inbound struct {
	Descriptor  *flight.FlightDescriptor // nil where absent
	Header      []byte                   // IPC message flatbuffer; owned by the message, plain Go memory
	AppMetadata []byte                   // plain Go memory
	Body        *memory.Buffer           // nil where absent; 64-byte aligned, recycled; arrays over it retain it
	Size        int                      // bytes on the wire, and those that compressed buffers become

	limit     int // larger messages are refused
	allocator memory.Allocator
	budget    *admission
	held      int64
	fault     error
}

// receiver reads the messages of one stream.
type receiver struct {
	server *Server
	stream grpc.ServerStream
	last   int64 // bytes of the last message
}

// receive reads the next message of a client's stream. It waits until the
// message fits the memory budget, so the caller must not wait for further
// messages while it only holds uncommitted ones without making progress
// elsewhere. Errors: io.EOF at the end of the stream, *fault.Error for what the
// message or a limit forbids, else what gRPC says.
func (r *receiver) receive() (*inbound, error) {
	s, ctx := r.server, r.stream.Context()
	expected, err := s.received.expect(ctx, r.last)
	if err != nil {
		return nil, err
	}
	message := &inbound{limit: s.maxMessage, allocator: s.scanMemory, budget: s.received}
	if err := r.stream.RecvMsg(message); err != nil {
		expected.giveUp()
		return nil, err
	}
	if message.fault != nil {
		expected.giveUp()
		message.release()
		return nil, message.fault
	}
	if message.Body != nil {
		message.Size += int(ipcread.Decompressed(message.Header, message.Body.Bytes(), int64(s.maxMessage)))
	}
	r.last = int64(message.Size)
	if message.held, err = s.received.came(ctx, expected, r.last); err != nil {
		message.held = 0
		message.release()
		return nil, err
	}
	return message, nil
}

// release gives the message's memory back. Arrays over Body that are still
// retained keep the bytes, not the budget.
func (m *inbound) release() {
	if m.Body != nil {
		m.Body.Release()
		m.Body = nil
	}
	if m.held > 0 {
		m.budget.release(m.held)
		m.held = 0
	}
}

// parse reads the protobuf message FlightData. What it finds wrong is kept in
// m.fault.
func (m *inbound) parse(data mem.BufferSlice) {
	m.Size = data.Len()
	if m.Size > m.limit {
		m.fault = tooLarge(m.Size, m.limit)
		return
	}
	in := pieces{data: data, left: m.Size}
	for in.left > 0 && m.fault == nil {
		m.fault = m.field(&in)
	}
}

func (m *inbound) field(in *pieces) error {
	tag, err := in.uvarint()
	if err != nil {
		return err
	}
	if tag&7 != 2 {
		return in.skip(tag)
	}
	length, err := in.uvarint()
	if err != nil {
		return err
	}
	if length > uint64(in.left) {
		return errCutOff
	}
	switch tag {
	case tagDescriptor:
		m.Descriptor = &flight.FlightDescriptor{}
		if err := proto.Unmarshal(in.bytes(int(length)), m.Descriptor); err != nil {
			return fault.Invalid("MESSAGE_INVALID", "the descriptor is not a FlightDescriptor: %v", err)
		}
	case tagHeader:
		m.Header = in.bytes(int(length))
	case tagAppMetadata:
		m.AppMetadata = in.bytes(int(length))
	case tagBody:
		if m.Body != nil {
			m.Body.Release() // as protobuf has it, the last one counts
		}
		m.Body = memory.NewBufferWithAllocator(m.allocator.Allocate(int(length)), m.allocator)
		in.read(m.Body.Bytes())
	default:
		in.discard(int(length))
	}
	return nil
}

var errCutOff = fault.Invalid("MESSAGE_INVALID", "a FlightData message ends in the middle of a field")

func tooLarge(size, limit int) error {
	return fault.New(fault.ResourceExhausted, "MESSAGE_TOO_LARGE",
		"the message has %d bytes; this server takes at most %d (--max-message): send smaller record batches", size, limit)
}

// pieces reads on through the buffers that a message arrived in, and gives each
// back to gRPC's pool once it is read: a large message is not held twice.
type pieces struct {
	data mem.BufferSlice
	at   int // inside data[0]
	left int
}

func (p *pieces) read(dst []byte) {
	p.left -= len(dst)
	for len(dst) > 0 {
		n := copy(dst, p.data[0].ReadOnlyData()[p.at:])
		dst, p.at = dst[n:], p.at+n
		p.next()
	}
}

func (p *pieces) next() {
	for len(p.data) > 0 && p.at >= p.data[0].Len() {
		p.at -= p.data[0].Len()
		p.data[0].Free()
		p.data[0] = mem.SliceBuffer(nil) // gRPC frees the slice again
		p.data = p.data[1:]
	}
}

func (p *pieces) bytes(n int) []byte {
	dst := make([]byte, n)
	p.read(dst)
	return dst
}

func (p *pieces) discard(n int) {
	p.left -= n
	p.at += n
	p.next()
}

// ReadByte makes pieces an io.ByteReader for varints.
func (p *pieces) ReadByte() (byte, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	p.next() // leading empty buffers
	b := p.data[0].ReadOnlyData()[p.at]
	p.discard(1)
	return b, nil
}

func (p *pieces) uvarint() (uint64, error) {
	value, err := binary.ReadUvarint(p)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, errCutOff
		}
		return 0, fault.Invalid("MESSAGE_INVALID", "a FlightData message holds a number of more than 64 bits")
	}
	return value, nil
}

// skip passes over a field that is not length-delimited; FlightData has none.
func (p *pieces) skip(tag uint64) error {
	switch tag & 7 {
	case 0:
		_, err := p.uvarint()
		return err
	case 1, 5:
		width := 8
		if tag&7 == 5 {
			width = 4
		}
		if p.left < width {
			return errCutOff
		}
		p.discard(width)
		return nil
	}
	return fault.Invalid("MESSAGE_INVALID", "a FlightData message holds a field of the unknown wire type %d", tag&7)
}
