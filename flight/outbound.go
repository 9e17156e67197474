package flight

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/mem"
)

// Field tags of FlightData (Flight.proto): number << 3 | 2, length-delimited.
const (
	tagDescriptor  = 1<<3 | 2
	tagHeader      = 2<<3 | 2
	tagAppMetadata = 3<<3 | 2
	tagBody        = 1000<<3 | 2
)

// copyBelow: smaller body buffers are copied behind each other, since a buffer
// of its own costs gRPC more than the copy, and since mem.NewBuffer does not
// count references of buffers up to 1 KiB.
const copyBelow = 2 << 10

// outbound is one FlightData message on its way out: gRPC gets the Arrow buffers
// themselves. What they belong to is released when gRPC has written the last of
// them, which may be long after SendMsg returned.
type outbound struct {
	buffers mem.BufferSlice
	size    int // bytes of the encoded message
}

// take hands the buffers to gRPC, which frees them.
func (m *outbound) take() mem.BufferSlice {
	buffers := m.buffers
	m.buffers = nil
	return buffers
}

// discard frees a message that was not sent. After take it does nothing.
func (m *outbound) discard() {
	m.buffers.Free()
	m.buffers = nil
}

// holder keeps what a message's buffers lie in: it is the pool that gRPC gives
// each of them back to.
type holder struct {
	left    atomic.Int32
	release func()
}

var _ mem.BufferPool = (*holder)(nil)

// Get is for gRPC's interface only; nothing is ever taken from a holder.
func (h *holder) Get(length int) *[]byte { buffer := make([]byte, length); return &buffer }

func (h *holder) Put(*[]byte) { h.done() }

func (h *holder) done() {
	if h.left.Add(-1) == 0 {
		h.release()
	}
}

// newOutbound builds a message of a record batch. It takes over one reference to
// the batch (also when it fails).
func newOutbound(batch arrow.RecordBatch, appMetadata []byte, allocator memory.Allocator) (*outbound, error) {
	payload, err := ipc.GetRecordBatchPayload(batch, ipc.WithAllocator(allocator))
	if err != nil {
		batch.Release()
		return nil, err
	}
	// The payload of a sliced array does not keep its parent: the batch does.
	message := newMessage(&payload, appMetadata, func() { payload.Release(); batch.Release() })
	return message, nil
}

// copied is a message of a payload that may be released at once: of schemas and
// dictionaries, which are small or rare.
func copied(payload *ipc.Payload) *outbound {
	meta := payload.Meta()
	defer meta.Release()
	var body bodyPieces
	_ = payload.SerializeBody(&body) // bodyPieces never fails
	raw := appendField(make([]byte, 0, meta.Len()+body.size+32), tagHeader, meta.Bytes())
	if body.size > 0 {
		raw = binary.AppendUvarint(raw, tagBody)
		raw = binary.AppendUvarint(raw, uint64(body.size))
		for _, piece := range body.pieces {
			raw = append(raw, piece...)
		}
	}
	return &outbound{buffers: mem.BufferSlice{mem.SliceBuffer(raw)}, size: len(raw)}
}

// newMessage lays out a payload. release is called once, when neither this
// message nor gRPC needs the payload any more.
func newMessage(payload *ipc.Payload, appMetadata []byte, release func()) *outbound {
	meta := payload.Meta()
	defer meta.Release()
	var body bodyPieces
	_ = payload.SerializeBody(&body) // bodyPieces never fails

	head := make([]byte, 0, meta.Len()+len(appMetadata)+32)
	head = appendField(head, tagHeader, meta.Bytes())
	if len(appMetadata) > 0 {
		head = appendField(head, tagAppMetadata, appMetadata)
	}
	message := &outbound{}
	if body.size == 0 {
		message.buffers, message.size = mem.BufferSlice{mem.SliceBuffer(head)}, len(head)
		release()
		return message
	}
	head = binary.AppendUvarint(head, tagBody)
	head = binary.AppendUvarint(head, uint64(body.size))
	message.size = len(head) + body.size

	keep := &holder{release: release}
	keep.left.Store(1)
	message.buffers = make(mem.BufferSlice, 0, 2*len(body.pieces)+1)
	small := head
	for i := range body.pieces {
		piece := &body.pieces[i]
		if len(*piece) < copyBelow {
			small = append(small, *piece...)
			continue
		}
		if len(small) > 0 {
			message.buffers = append(message.buffers, mem.SliceBuffer(small))
			small = nil
		}
		keep.left.Add(1)
		message.buffers = append(message.buffers, mem.NewBuffer(piece, keep))
	}
	if len(small) > 0 {
		message.buffers = append(message.buffers, mem.SliceBuffer(small))
	}
	keep.done()
	return message
}

func appendField(dst []byte, tag uint64, value []byte) []byte {
	dst = binary.AppendUvarint(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// bodyPieces is the writer that a payload serialises its body into: it keeps the
// slices instead of their bytes.
type bodyPieces struct {
	pieces [][]byte
	size   int
}

func (b *bodyPieces) Write(piece []byte) (int, error) {
	if len(piece) > 0 {
		b.pieces = append(b.pieces, piece[:len(piece):len(piece)])
		b.size += len(piece)
	}
	return len(piece), nil
}
