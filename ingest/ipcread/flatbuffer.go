package ipcread

import (
	"encoding/binary"

	"github.com/sheaf-db/sheaf/fault"
)

// buffer is a flatbuffer that is read without trust: the first place outside of
// it makes bad true, and from then on everything reads as absent. See
// https://flatbuffers.dev/internals.
type buffer struct {
	data []byte
	bad  bool
	// copied counts the bytes of what was walked beside tables: several fields
	// may share a text or a vector, so a small buffer could ask for any amount
	// of memory.
	copied int
	fields int
}

// table is one table in a buffer, by the places of its start and its vtable.
type table struct {
	*buffer
	at, vtable, slots int
	absent            bool
}

func (b *buffer) fail() { b.bad = true }

// span reports whether n bytes from at on lie in the buffer.
func (b *buffer) span(at, n int) bool {
	if b.bad || at < 0 || n < 0 || at > len(b.data) || n > len(b.data)-at {
		b.fail()
		return false
	}
	return true
}

func (b *buffer) u32(at int) int {
	if !b.span(at, 4) {
		return 0
	}
	return int(binary.LittleEndian.Uint32(b.data[at:]))
}

func (b *buffer) i64(at int) int64 {
	if !b.span(at, 8) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b.data[at:]))
}

func (b *buffer) root() table { return b.table(b.u32(0)) }

// table opens the table at a place.
func (b *buffer) table(at int) table {
	if !b.span(at, 4) {
		return table{buffer: b, absent: true}
	}
	vtable := at - int(int32(binary.LittleEndian.Uint32(b.data[at:])))
	if !b.span(vtable, 4) {
		return table{buffer: b, absent: true}
	}
	size := int(binary.LittleEndian.Uint16(b.data[vtable:]))
	if size < 4 || size%2 != 0 || !b.span(vtable, size) {
		b.fail()
		return table{buffer: b, absent: true}
	}
	return table{buffer: b, at: at, vtable: vtable, slots: (size - 4) / 2}
}

// slot is the place of a field, 0 if it is absent.
func (t table) slot(i int) int {
	if t.absent || t.bad || i >= t.slots {
		return 0
	}
	offset := int(binary.LittleEndian.Uint16(t.data[t.vtable+4+2*i:]))
	if offset == 0 {
		return 0
	}
	return t.at + offset
}

func (t table) byte(i int) byte {
	at := t.slot(i)
	if at == 0 || !t.span(at, 1) {
		return 0
	}
	return t.data[at]
}

func (t table) int16(i int) int16 {
	at := t.slot(i)
	if at == 0 || !t.span(at, 2) {
		return 0
	}
	return int16(binary.LittleEndian.Uint16(t.data[at:]))
}

func (t table) int64(i int) int64 {
	at := t.slot(i)
	if at == 0 {
		return 0
	}
	return t.i64(at)
}

// inner is the table that a field refers to.
func (t table) inner(i int) table {
	at := t.slot(i)
	if at == 0 {
		return table{buffer: t.buffer, absent: true}
	}
	return t.table(at + t.u32(at))
}

// vector is the place and length of the elements of a field.
func (t table) vector(i, width int) (at, n int) {
	slot := t.slot(i)
	if slot == 0 {
		return 0, 0
	}
	start := slot + t.u32(slot)
	n = t.u32(start)
	if n > len(t.data)/width || !t.span(start+4, n*width) {
		t.fail()
		return 0, 0
	}
	return start + 4, n
}

// text walks a string field.
func (t table) text(i int) {
	_, n := t.vector(i, 1)
	t.copy(n)
}

// copy counts bytes that will be copied.
func (b *buffer) copy(n int) {
	if b.copied += n; b.copied > 4*len(b.data) {
		b.fail()
	}
}

var errHeader = fault.Invalid("MESSAGE_INVALID", "the header of an IPC message is cut off or no valid flatbuffer")
