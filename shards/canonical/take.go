package canonical

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// take gathers rows of canonical data, −1 standing for a null, into new
// canonical data. It neither keeps nor releases its arguments.
func (n *normalizer) take(data arrow.ArrayData, rows []int32) (arrow.ArrayData, error) {
	dt, count := data.DataType(), len(rows)
	if count == 0 {
		return n.empty(dt), nil
	}
	if dt.ID() == arrow.NULL {
		return newData(dt, count, count, []*memory.Buffer{nil}), nil
	}
	validity, nulls := n.takeValidity(bytesOf(data, 0), rows)
	var buffers []*memory.Buffer
	var children []arrow.ArrayData
	var err error
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		buffers, err = n.takeBits(bytesOf(data, 1), rows)
	case *arrow.StringType, *arrow.BinaryType:
		buffers, err = n.takeStrings(data, rows)
	case *arrow.ListType, *arrow.MapType:
		buffers, children, err = n.takeLists(data, rows)
	case *arrow.FixedSizeListType:
		children, err = n.takeItems(data.Children()[0], rows, int(dt.Len()))
	case *arrow.StructType:
		children, err = n.takeFields(data.Children(), rows)
	default:
		width, _ := elementWidth(dt)
		buffers, err = n.takeFixed(bytesOf(data, 1), width, rows)
	}
	if err != nil {
		if validity != nil {
			validity.Release()
		}
		return nil, err
	}
	return newData(dt, count, nulls, append([]*memory.Buffer{validity}, buffers...), children...), nil
}

func (n *normalizer) takeValidity(bitmap []byte, rows []int32) (*memory.Buffer, int) {
	nulls := 0
	for _, row := range rows {
		if row < 0 || isNull(bitmap, int(row)) {
			nulls++
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	taken := n.alloc(bitmapBytes(len(rows)))
	for i, row := range rows {
		if row >= 0 && !isNull(bitmap, int(row)) {
			bitutil.SetBit(taken.Bytes(), i)
		}
	}
	return taken, nulls
}

func (n *normalizer) takeBits(bits []byte, rows []int32) ([]*memory.Buffer, error) {
	taken := n.alloc(bitmapBytes(len(rows)))
	for i, row := range rows {
		if row >= 0 && bitutil.BitIsSet(bits, int(row)) {
			bitutil.SetBit(taken.Bytes(), i)
		}
	}
	return []*memory.Buffer{taken}, nil
}

func (n *normalizer) takeFixed(values []byte, width int, rows []int32) ([]*memory.Buffer, error) {
	if err := n.spend(int64(width) * int64(len(rows))); err != nil {
		return nil, err
	}
	taken := n.alloc(width * len(rows))
	dst := taken.Bytes()
	switch width {
	case 4:
		for i, row := range rows {
			if row >= 0 {
				binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(values[4*int(row):]))
			}
		}
	case 8:
		for i, row := range rows {
			if row >= 0 {
				binary.LittleEndian.PutUint64(dst[8*i:], binary.LittleEndian.Uint64(values[8*int(row):]))
			}
		}
	default:
		for i, row := range rows {
			if row >= 0 {
				copy(dst[width*i:width*(i+1)], values[width*int(row):])
			}
		}
	}
	return []*memory.Buffer{taken}, nil
}

// takeOffsets is the offsets of the taken rows and how many bytes or items they
// span.
func (n *normalizer) takeOffsets(data arrow.ArrayData, rows []int32, unit string) (*memory.Buffer, int, error) {
	if err := n.spend(4 * int64(len(rows)+1)); err != nil {
		return nil, 0, err
	}
	source := arrow.Int32Traits.CastFromBytes(bytesOf(data, 1))
	taken := memory.NewResizableBuffer(n.mem)
	taken.Resize(4 * (len(rows) + 1))
	ends := arrow.Int32Traits.CastFromBytes(taken.Bytes())
	ends[0] = 0
	total := int64(0)
	for i, row := range rows {
		if row >= 0 {
			total += int64(source[row+1] - source[row])
		}
		if total > math.MaxInt32 {
			taken.Release()
			return nil, 0, tooLarge(data.DataType(), total, unit)
		}
		ends[i+1] = int32(total)
	}
	return taken, int(total), nil
}

func (n *normalizer) takeStrings(data arrow.ArrayData, rows []int32) ([]*memory.Buffer, error) {
	offsets, size, err := n.takeOffsets(data, rows, "bytes")
	if err != nil {
		return nil, err
	}
	if err := n.spend(int64(size)); err != nil {
		offsets.Release()
		return nil, err
	}
	source, from := bytesOf(data, 2), arrow.Int32Traits.CastFromBytes(bytesOf(data, 1))
	values := memory.NewResizableBuffer(n.mem)
	values.Resize(size)
	dst := values.Bytes()
	for _, row := range rows {
		if row >= 0 {
			dst = dst[copy(dst, source[from[row]:from[row+1]]):]
		}
	}
	return []*memory.Buffer{offsets, values}, nil
}

func (n *normalizer) takeLists(data arrow.ArrayData, rows []int32) ([]*memory.Buffer, []arrow.ArrayData, error) {
	offsets, size, err := n.takeOffsets(data, rows, "items")
	if err != nil {
		return nil, nil, err
	}
	from := arrow.Int32Traits.CastFromBytes(bytesOf(data, 1))
	child := data.Children()[0]
	child.Retain()
	items, err := n.scattered(child, int64(size), func(take []int32) {
		at := 0
		for _, row := range rows {
			if row < 0 {
				continue
			}
			for item := from[row]; item < from[row+1]; item++ {
				take[at] = item
				at++
			}
		}
	})
	if err != nil {
		offsets.Release()
		return nil, nil, err
	}
	return []*memory.Buffer{offsets}, []arrow.ArrayData{items}, nil
}

// takeItems takes the items of fixed-size lists; those of a null are null.
func (n *normalizer) takeItems(child arrow.ArrayData, rows []int32, size int) ([]arrow.ArrayData, error) {
	if int64(size)*int64(len(rows)) > math.MaxInt32 {
		return nil, tooLarge(child.DataType(), int64(size)*int64(len(rows)), "items")
	}
	child.Retain()
	items, err := n.scattered(child, int64(size)*int64(len(rows)), func(take []int32) {
		for i, row := range rows {
			for item := range size {
				if take[i*size+item] = row*int32(size) + int32(item); row < 0 {
					take[i*size+item] = -1
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return []arrow.ArrayData{items}, nil
}

func (n *normalizer) takeFields(fields []arrow.ArrayData, rows []int32) ([]arrow.ArrayData, error) {
	taken := make([]arrow.ArrayData, 0, len(fields))
	for _, field := range fields {
		rows, err := n.take(field, rows)
		if err != nil {
			for _, field := range taken {
				field.Release()
			}
			return nil, err
		}
		taken = append(taken, rows)
	}
	return taken, nil
}
