package ingest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// bytesOf is what arrays take; some may be nil.
func bytesOf(columns []arrow.Array) int64 {
	var total int64
	for _, arr := range columns {
		if arr != nil {
			total += int64(arr.Data().SizeInBytes())
		}
	}
	return total
}

// checkRowSizes refuses a batch with a row above limits.RowBytes. It costs
// something only for batches that are larger as a whole.
func checkRowSizes(columns []arrow.Array, rows int, place place) error {
	if bytesOf(columns) <= limits.RowBytes {
		return nil
	}
	sizes := make([]int64, rows)
	for _, arr := range columns {
		if arr != nil {
			addSizes(sizes, arr)
		}
	}
	for row, size := range sizes {
		if size > limits.RowBytes {
			return fault.Invalid("ROW_TOO_LARGE", "%s, row %d: the row takes %d bytes; the limit is %d (16 MiB)", place, row, size, limits.RowBytes)
		}
	}
	return nil
}

// addSizes adds the bytes of each value of a canonical array.
func addSizes(sizes []int64, arr arrow.Array) {
	switch arr := arr.(type) {
	case *array.String:
		addLengths(sizes, arr.ValueOffsets())
	case *array.Binary:
		addLengths(sizes, arr.ValueOffsets())
	case *array.Struct:
		for i := range arr.NumField() {
			addSizes(sizes, arr.Field(i))
		}
	case array.ListLike: // list, map, fixed-size list
		child := arr.ListValues()
		if child.Len() == 0 {
			return
		}
		inner := make([]int64, child.Len()+1)
		addSizes(inner[1:], child)
		for i := 1; i < len(inner); i++ {
			inner[i] += inner[i-1]
		}
		for row := range sizes {
			start, end := arr.ValueOffsets(row)
			sizes[row] += inner[end] - inner[start]
		}
	default:
		if fixed, ok := arr.DataType().(arrow.FixedWidthDataType); ok {
			for row := range sizes {
				sizes[row] += int64(fixed.Bytes())
			}
		}
	}
}

func addLengths(sizes []int64, offsets []int32) {
	for row := range sizes {
		sizes[row] += int64(offsets[row+1] - offsets[row])
	}
}
