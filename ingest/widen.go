package ingest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// widths of the number types: bits, and of which kind.
var numbers = map[arrow.Type]struct {
	bits           int
	signed, binary bool // binary: floating point
}{
	arrow.INT8: {8, true, false}, arrow.INT16: {16, true, false}, arrow.INT32: {32, true, false}, arrow.INT64: {64, true, false},
	arrow.UINT8: {8, false, false}, arrow.UINT16: {16, false, false}, arrow.UINT32: {32, false, false}, arrow.UINT64: {64, false, false},
	arrow.FLOAT16: {16, true, true}, arrow.FLOAT32: {32, true, true}, arrow.FLOAT64: {64, true, true},
}

// widens: every value of the first number type is one of the second, which is
// of the same kind.
func widens(from, to arrow.Type) bool {
	a, known := numbers[from]
	b, knownToo := numbers[to]
	return known && knownToo && a.binary == b.binary && a.bits < b.bits && (b.signed || !a.signed)
}

// widen converts numbers; see widens for the pairs.
func widen(mem memory.Allocator, arr arrow.Array, to arrow.DataType) arrow.Array {
	return remade(mem, arr, to, to.(arrow.FixedWidthDataType).Bytes(), func(in, out []byte) {
		switch arr.DataType().ID() {
		case arrow.INT8:
			widenInts(arrow.GetData[int8](in), out, to.ID())
		case arrow.INT16:
			widenInts(arrow.GetData[int16](in), out, to.ID())
		case arrow.INT32:
			widenInts(arrow.GetData[int32](in), out, to.ID())
		case arrow.UINT8:
			widenInts(arrow.GetData[uint8](in), out, to.ID())
		case arrow.UINT16:
			widenInts(arrow.GetData[uint16](in), out, to.ID())
		case arrow.UINT32:
			widenInts(arrow.GetData[uint32](in), out, to.ID())
		case arrow.FLOAT16:
			for i, v := range arrow.GetData[float16.Num](in) {
				if to.ID() == arrow.FLOAT32 {
					arrow.GetData[float32](out)[i] = v.Float32()
				} else {
					arrow.GetData[float64](out)[i] = float64(v.Float32())
				}
			}
		case arrow.FLOAT32:
			each(arrow.GetData[float32](in), arrow.GetData[float64](out))
		}
	})
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func widenInts[S integer](in []S, out []byte, to arrow.Type) {
	switch to {
	case arrow.INT16:
		each(in, arrow.GetData[int16](out))
	case arrow.INT32:
		each(in, arrow.GetData[int32](out))
	case arrow.INT64:
		each(in, arrow.GetData[int64](out))
	case arrow.UINT16:
		each(in, arrow.GetData[uint16](out))
	case arrow.UINT32:
		each(in, arrow.GetData[uint32](out))
	case arrow.UINT64:
		each(in, arrow.GetData[uint64](out))
	}
}

func each[S, T integer | float32 | float64](in []S, out []T) {
	out = out[:len(in)]
	for i, v := range in {
		out[i] = T(v)
	}
}

// remade is an array of fixed-width values of another type, with the nulls of
// arr, whose values fill writes; in and out hold exactly arr.Len() values.
func remade(mem memory.Allocator, arr arrow.Array, to arrow.DataType, width int, fill func(in, out []byte)) arrow.Array {
	data := arr.Data()
	rows := arr.Len()
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(rows * width)
	if rows > 0 {
		old := arr.DataType().(arrow.FixedWidthDataType).Bytes()
		fill(data.Buffers()[1].Bytes()[:rows*old], values.Bytes()[:rows*width])
	}
	out := array.NewData(to, rows, []*memory.Buffer{data.Buffers()[0], values}, nil, arr.NullN(), 0)
	defer out.Release()
	return array.MakeFromData(out)
}
