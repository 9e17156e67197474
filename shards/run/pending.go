package run

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// rowSource is rows on their way into a block.
type rowSource interface {
	// columns is how many columns there are, and the type of each.
	columns() int
	dataType(column int) arrow.DataType
	// appendTo appends rows [lo, hi) of a column.
	appendTo(v *block.Vector, column, lo, hi int)
	// plainBytes is about what these rows of a column take as plain Arrow.
	plainBytes(column, lo, hi int) int64
}

// arrays are rows that lie in order.
type arrays struct{ cols []arrow.Array }

func (a *arrays) columns() int                       { return len(a.cols) }
func (a *arrays) dataType(column int) arrow.DataType { return a.cols[column].DataType() }
func (a *arrays) appendTo(v *block.Vector, column, lo, hi int) {
	v.AppendArray(a.cols[column], lo, hi)
}
func (a *arrays) plainBytes(column, lo, hi int) int64 { return plainBytes(a.cols[column], lo, hi) }

// scattered are rows that lie in several batches.
type scattered struct {
	srcs    [][]arrow.Array // [column][batch]
	refs    []block.Ref
	offsets [][][]int32 // [column][batch] of text, as far as they were needed
}

func (s *scattered) columns() int { return len(s.srcs) }
func (s *scattered) dataType(column int) arrow.DataType {
	return s.srcs[column][s.refs[0].Batch].DataType()
}
func (s *scattered) appendTo(v *block.Vector, column, lo, hi int) {
	v.AppendRefs(s.srcs[column], s.refs[lo:hi])
}

func (s *scattered) plainBytes(column, lo, hi int) int64 {
	if lo == hi {
		return 0
	}
	dt := s.dataType(column)
	if n, ok := rowBits(dt); ok {
		return int64(hi-lo) * n / 8
	}
	if id := dt.ID(); id == arrow.STRING || id == arrow.BINARY {
		return 4*int64(hi-lo) + s.textBytes(column, lo, hi)
	}
	total := int64(0)
	for _, ref := range s.refs[lo:hi] {
		total += plainBytes(s.srcs[column][ref.Batch], int(ref.Row), int(ref.Row)+1)
	}
	return total
}

// textBytes is the bytes of text in some rows, without a call for each.
func (s *scattered) textBytes(column, lo, hi int) (total int64) {
	if s.offsets == nil {
		s.offsets = make([][][]int32, len(s.srcs))
	}
	if s.offsets[column] == nil {
		s.offsets[column] = make([][]int32, len(s.srcs[column]))
	}
	offsets := s.offsets[column]
	for _, ref := range s.refs[lo:hi] {
		of := offsets[ref.Batch]
		if of == nil {
			of = s.srcs[column][ref.Batch].(interface{ ValueOffsets() []int32 }).ValueOffsets()
			offsets[ref.Batch] = of
		}
		total += int64(of[ref.Row+1] - of[ref.Row])
	}
	return total
}

// rowBits is the bits a value takes, if all values take the same.
func rowBits(dt arrow.DataType) (int64, bool) {
	switch t := dt.(type) {
	case *arrow.NullType:
		return 0, true
	case *arrow.FixedSizeListType:
		n, ok := rowBits(t.Elem())
		return n * int64(t.Len()), ok
	case *arrow.StructType:
		total := int64(0)
		for _, f := range t.Fields() {
			n, ok := rowBits(f.Type)
			if !ok {
				return 0, false
			}
			total += n
		}
		return total, true
	case arrow.FixedWidthDataType:
		return int64(t.BitWidth()), true
	}
	return 0, false
}

// plainBytes is about what rows [lo, hi) of a canonical array take as plain
// Arrow, validity aside.
func plainBytes(arr arrow.Array, lo, hi int) int64 {
	n := int64(hi - lo)
	if n == 0 {
		return 0
	}
	if bits, ok := rowBits(arr.DataType()); ok {
		return n * bits / 8
	}
	switch a := arr.(type) {
	case array.BinaryLike:
		return 4*n + a.ValueOffset64(hi-1) + int64(a.ValueLen(hi-1)) - a.ValueOffset64(lo)
	case *array.FixedSizeList:
		size, off := int(a.DataType().(*arrow.FixedSizeListType).Len()), a.Data().Offset()
		return plainBytes(a.ListValues(), (off+lo)*size, (off+hi)*size)
	case array.VarLenListLike: // lists and maps
		first, _ := a.ValueOffsets(lo)
		_, last := a.ValueOffsets(hi - 1)
		return 4*n + plainBytes(a.ListValues(), int(first), int(last))
	case *array.Struct:
		total := int64(0)
		for i := range a.NumField() {
			total += plainBytes(a.Field(i), lo, hi)
		}
		return total
	}
	return n * 16
}

// pending gathers rows until they make a block.
type pending struct {
	mem     memory.Allocator
	most    int // rows of a block
	ids     []uint32
	vectors []*block.Vector
	keys    key.Keys
	plain   int64 // bytes as plain Arrow
}

func (p *pending) rows() int { return p.keys.Len() }

func (p *pending) sameColumns(ids []uint32) bool { return p.vectors != nil && slices.Equal(p.ids, ids) }

// columns says which columns the next rows have; nothing is pending.
func (p *pending) columns(ids []uint32, rows rowSource) error {
	if rows.columns() != len(ids) {
		return fmt.Errorf("BUG: %d columns for %d ids", rows.columns(), len(ids))
	}
	p.release()
	p.ids = slices.Clone(ids)
	p.vectors = make([]*block.Vector, len(ids))
	for i := range ids {
		p.vectors[i] = block.NewVector(p.mem, rows.dataType(i))
	}
	return nil
}

// room is how many of the rows from lo on go into the pending block, and what
// they take as plain Arrow: as many as most and blockBytes allow, but a
// block has a row at least.
func (p *pending) room(rows rowSource, lo, n int) (take int, plain int64) {
	measure := func(take int) (total int64) {
		for i := range p.vectors {
			total += rows.plainBytes(i, lo, lo+take)
		}
		return total
	}
	left := blockBytes(len(p.vectors)) - p.plain
	take = min(n-lo, p.most-p.rows())
	if plain = measure(take); plain <= left {
		return take, plain
	}
	take = sort.Search(take, func(i int) bool { return measure(i+1) > left })
	if take == 0 && p.rows() == 0 {
		take = 1
	}
	return take, measure(take)
}

// append takes rows [lo, hi), which are plain bytes of plain Arrow.
func (p *pending) append(keys *key.Keys, rows rowSource, lo, hi int, plain int64) error {
	for i := lo; i < hi; i++ {
		k := keys.At(i)
		if n := p.keys.Len(); n > 0 && bytes.Compare(p.keys.At(n-1), k) >= 0 {
			return fmt.Errorf("BUG: key %x does not follow %x", k, p.keys.At(n-1))
		}
		p.keys.Append(k)
	}
	for i, v := range p.vectors {
		rows.appendTo(v, i, lo, hi)
	}
	p.plain += plain
	return nil
}

func (p *pending) release() {
	for _, v := range p.vectors {
		v.Release()
	}
	p.vectors, p.ids = nil, nil
	p.keys.Reset()
	p.plain = 0
}

// take is the pending rows as a block, whose release makes room for the next.
func (p *pending) take() *cutBlock {
	b := &cutBlock{pending: p, keys: &p.keys, rows: p.keys.Len(), plain: p.plain}
	for i, v := range p.vectors {
		b.column(p.ids[i], v.NewArray())
	}
	return b
}

// cutBlock is the rows of one block with what the index says of it.
type cutBlock struct {
	pending *pending
	keys    *key.Keys
	ids     []uint32
	cols    []arrow.Array
	zones   []block.Zone

	rows, tombstones int
	plain            int64
	perRow           bool
	least, greatest  uint64
}

// column takes over one column.
func (b *cutBlock) column(id uint32, arr arrow.Array) {
	switch id {
	case block.ColumnTombstone:
		b.tombstones = countTrue(arr.(*array.Boolean))
		if b.tombstones == 0 { // left out: nothing is deleted
			arr.Release()
			return
		}
	case block.ColumnCommit:
		versions := arr.(*array.Uint64).Uint64Values()
		b.perRow = true
		b.least, b.greatest = slices.Min(versions), slices.Max(versions)
		if b.least == b.greatest { // left out: the index tells
			arr.Release()
			return
		}
	}
	b.ids = append(b.ids, id)
	b.cols = append(b.cols, arr)
	b.zones = append(b.zones, block.ZoneOf(arr))
}

func countTrue(arr *array.Boolean) int {
	n := 0
	for i := range arr.Len() {
		if arr.Value(i) {
			n++
		}
	}
	return n
}

func (b *cutBlock) first() []byte { return b.keys.At(0) }
func (b *cutBlock) last() []byte  { return b.keys.At(b.rows - 1) }

func (b *cutBlock) release() {
	for _, c := range b.cols {
		c.Release()
	}
	b.pending.keys.Reset()
	b.pending.plain = 0
}
