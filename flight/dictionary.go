package flight

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// unionBytes bounds the values of a dictionary that grows from message to
// message, since each time it grows it is sent anew. Columns with more distinct
// text get a dictionary per message instead.
const unionBytes = 256 << 10

// dictionary numbers the values of one dictionary column of a stream. As long as
// the running union of values is small and the index type holds it, messages
// share one dictionary; else it starts again with the message at hand, which
// replaces the dictionary at the reader.
type dictionary struct {
	declared *arrow.DictionaryType
	most     int // values that the index type can number
	mem      memory.Allocator

	codes  map[string]uint32
	values *block.Vector // canonical, in the order of their codes
	bytes  int
	sent   arrow.Array // values as declared, as the reader has them after dirty is sent
	dirty  bool        // sent is newer than what was sent
}

// newDictionary is nil for value types that are not numbered across messages:
// nested ones, whose dictionaries are made per message by canonical.Restore.
func newDictionary(declared *arrow.DictionaryType, mem memory.Allocator) *dictionary {
	if !hasPlainBytes(canonical.Type(declared)) {
		return nil
	}
	width := declared.IndexType.(arrow.FixedWidthDataType).BitWidth()
	if !arrow.IsUnsignedInteger(declared.IndexType.ID()) {
		width--
	}
	d := &dictionary{declared: declared, most: 1 << min(width, 31), mem: mem}
	d.restart()
	return d
}

func hasPlainBytes(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return true
	case arrow.BOOL:
		return false
	}
	fixed, ok := dt.(arrow.FixedWidthDataType)
	_, nested := dt.(arrow.NestedType)
	return ok && !nested && fixed.BitWidth()%8 == 0
}

func (d *dictionary) restart() {
	d.codes, d.bytes = map[string]uint32{}, 0
	if d.values != nil {
		d.values.Release()
	}
	d.values = block.NewVector(d.mem, canonical.Type(d.declared))
}

func (d *dictionary) release() {
	d.values.Release()
	if d.sent != nil {
		d.sent.Release()
		d.sent = nil
	}
}

// encode makes the dictionary array of a column of canonical values without
// offset. The error is *canonical.DictionaryFull if the values of this array
// alone are too many; a shorter piece may pass. The caller releases the result.
func (d *dictionary) encode(arr arrow.Array) (arrow.Array, error) {
	codes := make([]uint32, arr.Len())
	fresh, full := d.number(arr, codes)
	if before := len(d.codes) - len(fresh); len(fresh) > 0 && before > 0 && (full >= 0 || d.bytes > unionBytes) {
		d.restart()
		fresh, full = d.number(arr, codes)
	}
	if full >= 0 {
		d.restart() // codes without values are in it
		return nil, &canonical.DictionaryFull{Type: d.declared, Rows: full}
	}
	if len(fresh) > 0 || d.sent == nil {
		if err := d.extend(arr, fresh); err != nil {
			return nil, err
		}
	}
	return d.array(arr, codes)
}

// number gives each row its code, new values new ones. fresh are the rows where
// new values occur first. It stops at row full, 0 or above, where the index type
// has no more codes.
func (d *dictionary) number(arr arrow.Array, codes []uint32) (fresh []uint32, full int) {
	value := plainBytes(arr)
	hasNulls := arr.NullN() > 0
	for row := range codes {
		if hasNulls && arr.IsNull(row) {
			codes[row] = 0
			continue
		}
		bytes := value(row)
		code, known := d.codes[string(bytes)]
		if !known {
			if len(d.codes) == d.most {
				return fresh, row
			}
			code = uint32(len(d.codes))
			d.codes[string(bytes)] = code
			d.bytes += len(bytes)
			fresh = append(fresh, uint32(row))
		}
		codes[row] = code
	}
	return fresh, -1
}

// extend adds the values of the fresh rows to what the reader will have.
func (d *dictionary) extend(arr arrow.Array, fresh []uint32) error {
	d.values.AppendRows(arr, fresh)
	values := d.values.NewArray()
	defer values.Release()
	d.values.AppendArray(values, 0, values.Len())
	restored, err := canonical.Restore(d.mem, values, d.declared.ValueType)
	if err != nil {
		return err
	}
	if d.sent != nil {
		d.sent.Release()
	}
	d.sent, d.dirty = restored, true
	return nil
}

func (d *dictionary) array(arr arrow.Array, codes []uint32) (arrow.Array, error) {
	width := d.declared.IndexType.(arrow.FixedWidthDataType).BitWidth() / 8
	indices := memory.NewResizableBuffer(d.mem)
	defer indices.Release()
	indices.Resize(width * len(codes))
	dst := indices.Bytes()
	switch width {
	case 1:
		for i, code := range codes {
			dst[i] = byte(code)
		}
	case 2:
		for i, code := range codes {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(code))
		}
	case 4:
		for i, code := range codes {
			binary.LittleEndian.PutUint32(dst[4*i:], code)
		}
	default:
		for i, code := range codes {
			binary.LittleEndian.PutUint64(dst[8*i:], uint64(code))
		}
	}
	data := array.NewDataWithDictionary(d.declared, len(codes),
		[]*memory.Buffer{arr.Data().Buffers()[0], indices}, arr.NullN(), 0, d.sent.Data().(*array.Data))
	defer data.Release()
	return array.MakeFromData(data), nil
}

// plainBytes gives the bytes of one value of a canonical array without offset.
func plainBytes(arr arrow.Array) func(row int) []byte {
	buffers := arr.Data().Buffers()
	switch arr.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		if arr.Len() == 0 {
			return nil
		}
		ends := arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())
		var text []byte
		if buffers[2] != nil {
			text = buffers[2].Bytes()
		}
		return func(row int) []byte { return text[ends[row]:ends[row+1]] }
	}
	width := arr.DataType().(arrow.FixedWidthDataType).BitWidth() / 8
	var values []byte
	if buffers[1] != nil {
		values = buffers[1].Bytes()
	}
	return func(row int) []byte { return values[width*row : width*row+width] }
}
