package canonical

import (
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func countBits(bitmap []byte, start, count int) int {
	return bitutil.CountSetBits(bitmap, start, count)
}

func bitmapBytes(count int) int { return (count + 7) / 8 }

// bits is a bitmap of the bits start ≤ bit < start+count that begins at bit 0
// and has only zeros behind its last: a part of buffer if that is so already.
func (n *normalizer) bits(buffer *memory.Buffer, start, count int) *memory.Buffer {
	size := bitmapBytes(count)
	if start%8 == 0 && (count%8 == 0 || buffer.Bytes()[start/8+size-1]>>(count%8) == 0) {
		return sliced(buffer, start/8, size)
	}
	copied := n.alloc(size)
	bitutil.CopyBitmap(buffer.Bytes(), start, count, copied.Bytes(), 0)
	return copied
}

// sliced is a part of a buffer that keeps the whole alive; the buffer itself,
// retained, if it is no larger.
func sliced(buffer *memory.Buffer, at, size int) *memory.Buffer {
	if at == 0 && buffer.Len() == size {
		buffer.Retain()
		return buffer
	}
	return memory.SliceBuffer(buffer, at, size)
}
