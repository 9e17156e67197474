package canonical

import (
	"encoding/binary"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The layouts whose rows are not one behind the other: views, list views,
// dictionaries, runs. All but the first become a list of rows to take.

func (n *normalizer) views(dt arrow.DataType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	views := bytesOf(data, 1)[start*viewWidth : (start+count)*viewWidth]
	bitmap := bytesOf(data, 0)
	offsets := memory.NewResizableBuffer(n.mem)
	offsets.Resize(4 * (count + 1))
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	ends[0] = 0
	total := int64(0)
	for i := range count {
		if !isNull(bitmap, start+i) {
			total += int64(binary.LittleEndian.Uint32(views[i*viewWidth:]))
		}
		if total > math.MaxInt32 {
			offsets.Release()
			return nil, tooLarge(dt, total, "bytes")
		}
		ends[i+1] = int32(total)
	}
	if err := n.spend(total); err != nil {
		offsets.Release()
		return nil, err
	}
	values := memory.NewResizableBuffer(n.mem)
	values.Resize(int(total))
	for i := range count {
		value := values.Bytes()[ends[i]:ends[i+1]]
		view := views[i*viewWidth:][:viewWidth]
		if len(value) <= viewInline {
			copy(value, view[4:])
			continue
		}
		index, at := binary.LittleEndian.Uint32(view[8:]), binary.LittleEndian.Uint32(view[12:])
		copy(value, data.Buffers()[2+index].Bytes()[at:])
	}
	validity, nulls := n.validity(data, start, count)
	return newData(Type(dt), count, nulls, []*memory.Buffer{validity, offsets, values}), nil
}

// listViews lays the items of list views one list behind the other. Lists that
// do so already share their items; others, which may overlap, are taken apart.
func listViews[T int32 | int64](n *normalizer, dt arrow.DataType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	from := arrow.GetData[T](bytesOf(data, 1))[start : start+count]
	sizes := arrow.GetData[T](bytesOf(data, 2))[start : start+count]
	bitmap := bytesOf(data, 0)
	offsets := memory.NewResizableBuffer(n.mem)
	defer offsets.Release()
	offsets.Resize(4 * (count + 1))
	ends := arrow.Int32Traits.CastFromBytes(offsets.Bytes())
	ends[0] = 0

	total, ordered := int64(0), true
	low, high := int64(math.MaxInt64), int64(0)
	for i := range count {
		if size := int64(sizes[i]); size > 0 && !isNull(bitmap, start+i) {
			first := int64(from[i])
			ordered = ordered && (total == 0 || first == high)
			low, high = min(low, first), max(high, first+size)
			total += size
		}
		if total > math.MaxInt32 {
			return nil, tooLarge(dt, total, "items")
		}
		ends[i+1] = int32(total)
	}
	child, elem := data.Children()[0], Children(dt)[0]
	if total == 0 {
		low, high = 0, 0
	}
	items, err := n.rows(elem, child, child.Offset()+int(low), int(high-low))
	if err != nil {
		return nil, err
	}
	if !ordered {
		items, err = n.scattered(items, total, func(take []int32) {
			for i := range count {
				for item := range ends[i+1] - ends[i] {
					take[ends[i]+item] = int32(int64(from[i])-low) + item
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	offsets.Retain()
	validity, nulls := n.validity(data, start, count)
	return newData(Type(dt), count, nulls, []*memory.Buffer{validity, offsets}, items), nil
}

// scattered takes count rows of canonical data, which it takes over; fill says
// which, −1 for a null.
func (n *normalizer) scattered(data arrow.ArrayData, count int64, fill func(rows []int32)) (arrow.ArrayData, error) {
	defer data.Release()
	if err := n.spend(4 * count); err != nil {
		return nil, err
	}
	rows := make([]int32, count)
	fill(rows)
	return n.take(data, rows)
}

func (n *normalizer) dictionary(dt *arrow.DictionaryType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	var values arrow.ArrayData
	if dictionary := dictionaryOf(data); dictionary == nil {
		values = n.empty(Type(dt.ValueType))
	} else {
		var err error
		if values, err = n.rows(dt.ValueType, dictionary, dictionary.Offset(), dictionary.Len()); err != nil {
			return nil, err
		}
	}
	return n.scattered(values, int64(count), func(rows []int32) {
		indices(rows, dt.IndexType, bytesOf(data, 1), start)
		if bitmap := bytesOf(data, 0); len(bitmap) > 0 {
			for i := range rows {
				if isNull(bitmap, start+i) {
					rows[i] = -1
				}
			}
		}
	})
}

// indices reads dictionary indices of any integer type. Those of valid slots
// are in range and fit; others are replaced by the caller.
func indices(rows []int32, dt arrow.DataType, buffer []byte, start int) {
	switch dt.ID() {
	case arrow.INT8:
		widen(rows, arrow.GetData[int8](buffer)[start:])
	case arrow.UINT8:
		widen(rows, arrow.GetData[uint8](buffer)[start:])
	case arrow.INT16:
		widen(rows, arrow.GetData[int16](buffer)[start:])
	case arrow.UINT16:
		widen(rows, arrow.GetData[uint16](buffer)[start:])
	case arrow.INT32:
		copy(rows, arrow.GetData[int32](buffer)[start:])
	case arrow.UINT32:
		widen(rows, arrow.GetData[uint32](buffer)[start:])
	case arrow.INT64:
		widen(rows, arrow.GetData[int64](buffer)[start:])
	case arrow.UINT64:
		widen(rows, arrow.GetData[uint64](buffer)[start:])
	}
}

func widen[T arrow.IntType | arrow.UintType](rows []int32, values []T) {
	values = values[:len(rows)]
	for i := range rows {
		rows[i] = int32(values[i])
	}
}

func (n *normalizer) runs(dt *arrow.RunEndEncodedType, data arrow.ArrayData, start, count int) (arrow.ArrayData, error) {
	ends, values := data.Children()[0], data.Children()[1]
	width, _ := elementWidth(dt.RunEnds())
	end := func(run int) int { return int(runEnd(bytesOf(ends, 1), width, ends.Offset()+run)) }
	first := sort.Search(ends.Len(), func(run int) bool { return end(run) > start })
	last := sort.Search(ends.Len(), func(run int) bool { return end(run) >= start+count })
	used, err := n.rows(dt.Encoded(), values, values.Offset()+first, last-first+1)
	if err != nil {
		return nil, err
	}
	return n.scattered(used, int64(count), func(rows []int32) {
		row := 0
		for run := first; run <= last; run++ {
			for stop := min(end(run)-start, count); row < stop; row++ {
				rows[row] = int32(run - first)
			}
		}
	})
}
