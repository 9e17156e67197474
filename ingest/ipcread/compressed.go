package ipcread

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/sheaf-db/sheaf/fault"
)

// Codecs of compressed bodies, from Message.fbs.
const (
	codecLZ4  = 0
	codecZSTD = 1
)

// decompressor keeps the codecs' state from message to message.
type decompressor struct {
	zstd *zstd.Decoder
	lz4  *lz4.Reader
}

func (d *decompressor) close() {
	if d.zstd != nil {
		d.zstd.Close()
		d.zstd = nil
	}
}

var errCompressed = fault.Invalid("MESSAGE_INVALID", "a compressed buffer of it cannot be decompressed")

// decompress reads a compressed buffer: its length as it was, then the frame.
// done is false if the length is -1: what follows is not compressed.
func (l *loader) decompress(raw []byte) (buffer *memory.Buffer, done bool, err error) {
	if len(raw) < 8 {
		return nil, false, errCompressed
	}
	length := int64(binary.LittleEndian.Uint64(raw))
	switch {
	case length == -1:
		return nil, false, nil
	case length < 0:
		return nil, false, errCompressed
	case length > l.left:
		return nil, false, l.stream.tooLarge()
	}
	l.left -= length
	buffer = memory.NewResizableBuffer(l.stream.mem)
	buffer.Resize(int(length))
	if !l.stream.bodies.into(buffer.Bytes(), raw[8:], l.codec) {
		buffer.Release()
		return nil, false, errCompressed
	}
	return buffer, true, nil
}

// Decompressed is how many bytes the compressed buffers of a message say they
// take, at most limit: 0 for a message without any, or one that is not valid.
func Decompressed(header, body []byte, limit int64) int64 {
	m, kind, _, err := message(header)
	if err != nil || kind != kindBatch && kind != kindDictionary {
		return 0
	}
	t := m.inner(2)
	if kind == kindDictionary {
		t = t.inner(1)
	}
	if t.inner(3).absent {
		return 0
	}
	total := int64(0)
	buffers, n := t.vector(2, 16)
	for i := range n {
		offset, length := t.i64(buffers+16*i), t.i64(buffers+16*i+8)
		if offset < 0 || length < 8 || offset > int64(len(body))-8 {
			continue
		}
		if size := int64(binary.LittleEndian.Uint64(body[offset:])); size > 0 {
			if total += min(size, limit); total >= limit {
				return limit
			}
		}
	}
	return total
}

func (s *Stream) tooLarge() error {
	return fault.New(fault.ResourceExhausted, "MESSAGE_TOO_LARGE",
		"the message takes more than %d bytes when decoded, the limit of one message (--max-message): send smaller batches", s.limit)
}

// into decompresses a frame that must give exactly len(dst) bytes.
func (d *decompressor) into(dst, frame []byte, codec byte) bool {
	if codec == codecLZ4 {
		if d.lz4 == nil {
			d.lz4 = lz4.NewReader(nil)
		}
		d.lz4.Reset(bytes.NewReader(frame))
		_, err := io.ReadFull(d.lz4, dst)
		return err == nil
	}
	if d.zstd == nil {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return false
		}
		d.zstd = decoder
	}
	out, err := d.zstd.DecodeAll(frame, dst[:0:len(dst)])
	return err == nil && len(out) == len(dst)
}
