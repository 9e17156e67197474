package ipcread

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
)

// parts collects the buffers and children of one array; its first error stays.
type parts struct {
	*loader
	rows     int
	buffers  []*memory.Buffer
	children []arrow.ArrayData
	err      error
}

func (p *parts) release() {
	memory.ReleaseBuffers(p.buffers)
	for _, child := range p.children {
		child.Release()
	}
}

func (p *parts) validity(hasNulls bool) {
	bitmap, err := p.loader.validity(p.rows, hasNulls)
	p.buffers, p.err = append(p.buffers, bitmap), err
}

func (p *parts) buffer(need int64) {
	if p.err != nil {
		return
	}
	buffer, err := p.loader.buffer(need)
	if err != nil {
		p.err = err
		return
	}
	p.buffers = append(p.buffers, buffer)
}

// offsets takes a buffer of rows+1 offsets; an array without rows may leave it
// empty.
func (p *parts) offsets(width int64) {
	need := (int64(p.rows) + 1) * width
	if p.rows == 0 {
		need = 0
	}
	p.buffer(need)
}

// texts takes the bytes that the offsets before it point into, and checks the
// first and last of those, which arrow-go would panic about.
func (p *parts) texts(width int) {
	p.buffer(0)
	if p.err != nil || p.rows == 0 {
		return
	}
	offsets := p.buffers[1].Bytes()
	at := func(row int) int64 {
		if width == 4 {
			return int64(int32(binary.LittleEndian.Uint32(offsets[4*row:])))
		}
		return int64(binary.LittleEndian.Uint64(offsets[8*row:]))
	}
	if first, last := at(0), at(p.rows); first < 0 || first > last || last > int64(p.buffers[2].Len()) {
		p.err = fault.Invalid("COLUMN_MALFORMED", "its offsets point outside of its data")
	}
}

// variadic takes the data buffers of a view array.
func (p *parts) variadic() {
	if p.err != nil {
		return
	}
	if p.vars == 0 {
		p.err = errShort
		return
	}
	n := p.from.i64(p.variadics)
	p.variadics += 8
	p.vars--
	if n < 0 || n > int64(p.buffersLeft) {
		p.err = errShort
		return
	}
	for range n {
		p.buffer(0)
	}
}

func (p *parts) child(dt arrow.DataType, n node, i int) {
	if p.err != nil {
		return
	}
	// A map's type has one child, its entries; its node has them too.
	inner := node{dictionary: -1}
	if i < len(n.children) {
		inner = n.children[i]
	}
	child, err := p.load(dt, inner)
	if err != nil {
		p.err = err
		return
	}
	p.children = append(p.children, child)
}

func (p *parts) data(dt arrow.DataType, nulls int) (arrow.ArrayData, error) {
	if p.err != nil {
		return nil, p.err
	}
	if len(p.buffers) > 0 && p.buffers[0] == nil {
		nulls = 0
	}
	return array.NewData(dt, p.rows, p.buffers[:len(p.buffers):len(p.buffers)], p.children, nulls, 0), nil
}

// dictionary is data whose indices refer to the dictionary as it is now.
func (p *parts) dictionary(dt *arrow.DictionaryType, n node) (arrow.ArrayData, error) {
	if p.err != nil {
		return nil, p.err
	}
	known := p.stream.dictionaries[n.dictionary]
	if known == nil {
		return nil, fault.Invalid("MESSAGE_INVALID", "its dictionary has no id")
	}
	values, err := known.now(p.stream)
	if err != nil {
		return nil, err
	}
	nulls := array.UnknownNullCount
	if p.buffers[0] == nil {
		nulls = 0
	}
	return array.NewDataWithDictionary(dt, p.rows, p.buffers[:len(p.buffers):len(p.buffers)], nulls, 0, values.Data().(*array.Data)), nil
}
