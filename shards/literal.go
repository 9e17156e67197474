package shards

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
)

// appendNumbers appends some of the numbers to a uint64 vector.
func appendNumbers(v *block.Vector, numbers []uint64, rows []uint32) {
	values := make([]byte, 8*len(rows))
	for i, row := range rows {
		binary.LittleEndian.PutUint64(values[8*i:], numbers[row])
	}
	appendPlain(v, arrow.PrimitiveTypes.Uint64, len(rows), values)
}

// appendBools appends n times the same boolean to a bool vector.
func appendBools(v *block.Vector, value bool, n int) {
	bits := make([]byte, bitutil.BytesForBits(int64(n)))
	if value {
		for i := range bits {
			bits[i] = 0xFF
		}
	}
	appendPlain(v, arrow.FixedWidthTypes.Boolean, n, bits)
}

func appendPlain(v *block.Vector, dt arrow.DataType, n int, values []byte) {
	data := array.NewData(dt, n, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
	defer data.Release()
	arr := array.MakeFromData(data)
	defer arr.Release()
	v.AppendArray(arr, 0, n)
}
