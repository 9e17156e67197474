package ipcread

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
)

// loader makes arrays of the buffers of one message, in the order in which the
// format flattens columns (Arrow columnar format, "RecordBatch message").
type loader struct {
	stream                       *Stream
	body                         *memory.Buffer
	from                         table
	nodes, buffers, variadics    int // places of the vectors
	nodesLeft, buffersLeft, vars int
	compressed                   bool
	codec                        byte
	left                         int64 // bytes that may still be decompressed or copied
}

// maxRows bounds what a field says of its length: arrays of int32 offsets and
// row numbers of 32 bits carry no more.
const maxRows = 1<<31 - 1

var errShort = fault.Invalid("MESSAGE_INVALID", "it lacks a buffer, or one is shorter than its rows need")

func (s *Stream) loader(t table, body *memory.Buffer) (*loader, error) {
	l := &loader{stream: s, body: body, from: t, left: s.limit}
	l.nodes, l.nodesLeft = t.vector(1, 16)
	l.buffers, l.buffersLeft = t.vector(2, 16)
	l.variadics, l.vars = t.vector(4, 8)
	if compression := t.inner(3); !compression.absent {
		l.compressed, l.codec = true, compression.byte(0)
		if l.codec > codecZSTD || compression.byte(1) != 0 {
			return nil, fault.Invalid("MESSAGE_INVALID", "the body is compressed by an unknown codec; LZ4 frames and ZSTD are read")
		}
	}
	if rows := t.int64(0); t.absent || t.bad || rows < 0 || rows > maxRows {
		return nil, errHeader
	}
	return l, nil
}

// column loads a column and makes an array of it. arrow-go panics on some data
// that is not valid.
func (l *loader) column(dt arrow.DataType, n node) (column arrow.Array, err error) {
	data, err := l.load(dt, n)
	if err != nil {
		return nil, err
	}
	defer data.Release()
	defer func() {
		if p := recover(); p != nil {
			column, err = nil, fault.Invalid("COLUMN_MALFORMED", "its data is not valid: %v", p)
		}
	}()
	return array.MakeFromData(data), nil
}

// field reads the next field node. Its null count is not believed: arrays count
// for themselves.
func (l *loader) field() (rows int, hasNulls bool, err error) {
	if l.nodesLeft == 0 {
		return 0, false, fault.Invalid("MESSAGE_INVALID", "it is not in the message: the batch has fewer fields than the schema")
	}
	length, nulls := l.from.i64(l.nodes), l.from.i64(l.nodes+8)
	l.nodes += 16
	l.nodesLeft--
	if length < 0 || length > maxRows {
		return 0, false, fault.Invalid("MESSAGE_INVALID", "its length of %d is not possible", length)
	}
	return int(length), nulls != 0, nil
}

// end refuses a message that holds more than the columns took: its rows are of
// another schema, and what was read of it is not what was sent.
func (l *loader) end() error {
	if l.nodesLeft == 0 && l.buffersLeft == 0 {
		return nil
	}
	return fault.Invalid("MESSAGE_INVALID", "the batch has %d fields and %d buffers more than the stream's schema: send the schema that the batches have",
		l.nodesLeft, l.buffersLeft)
}

// buffer takes the next buffer, which must hold at least need bytes. The caller
// releases it.
func (l *loader) buffer(need int64) (*memory.Buffer, error) {
	if l.buffersLeft == 0 {
		return nil, errShort
	}
	offset, length := l.from.i64(l.buffers), l.from.i64(l.buffers+8)
	l.buffers += 16
	l.buffersLeft--
	if offset < 0 || length < 0 || offset > int64(l.body.Len()) || length > int64(l.body.Len())-offset {
		return nil, fault.Invalid("MESSAGE_INVALID", "a buffer of it lies outside of the message's body")
	}
	buffer, err := l.content(int(offset), int(length))
	if err != nil {
		return nil, err
	}
	if int64(buffer.Len()) < need {
		buffer.Release()
		return nil, errShort
	}
	return buffer, nil
}

// content is a part of the body, decompressed and where values may be read in
// place.
func (l *loader) content(offset, length int) (*memory.Buffer, error) {
	if length == 0 {
		return memory.NewBufferBytes(nil), nil
	}
	if l.compressed {
		raw := l.body.Bytes()[offset : offset+length]
		if decompressed, done, err := l.decompress(raw); done || err != nil {
			return decompressed, err
		}
		offset, length = offset+8, length-8
		if length == 0 {
			return memory.NewBufferBytes(nil), nil
		}
	}
	raw := l.body.Bytes()[offset : offset+length]
	if uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%8 == 0 {
		return memory.SliceBuffer(l.body, offset, length), nil
	}
	// Several buffers may be one place of the body.
	if l.left -= int64(length); l.left < 0 {
		return nil, l.stream.tooLarge()
	}
	aligned := memory.NewResizableBuffer(l.stream.mem)
	aligned.Resize(length)
	copy(aligned.Bytes(), raw)
	return aligned, nil
}

// validity takes the next buffer as a bitmap, nil if there are no nulls.
func (l *loader) validity(rows int, hasNulls bool) (*memory.Buffer, error) {
	if !hasNulls {
		if l.buffersLeft == 0 {
			return nil, errShort
		}
		l.buffers += 16
		l.buffersLeft--
		return nil, nil
	}
	return l.buffer(bitutil.BytesForBits(int64(rows)))
}

// load reads one field and its children. The caller releases the data.
func (l *loader) load(dt arrow.DataType, n node) (arrow.ArrayData, error) {
	rows, hasNulls, err := l.field()
	if err != nil {
		return nil, err
	}
	parts := &parts{loader: l, rows: rows}
	defer parts.release()
	switch dt := dt.(type) {
	case *arrow.NullType:
		return array.NewData(dt, rows, []*memory.Buffer{nil}, nil, rows, 0), nil
	case *arrow.RunEndEncodedType:
		parts.buffers = append(parts.buffers, nil)
		parts.child(dt.RunEnds(), n, 0)
		parts.child(dt.Encoded(), n, 1)
		return parts.data(dt, 0)
	}
	parts.validity(hasNulls)
	many := int64(rows)
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		parts.buffer(many * int64(dt.IndexType.(arrow.FixedWidthDataType).Bytes()))
		return parts.dictionary(dt, n)
	case *arrow.BooleanType:
		parts.buffer(bitutil.BytesForBits(many))
	case *arrow.StringType, *arrow.BinaryType:
		parts.offsets(4)
		parts.texts(4)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		parts.offsets(8)
		parts.texts(8)
	case arrow.BinaryViewDataType:
		parts.buffer(many * 16)
		parts.variadic()
	case *arrow.ListViewType:
		parts.buffer(many * 4)
		parts.buffer(many * 4)
		parts.child(dt.Elem(), n, 0)
	case *arrow.LargeListViewType:
		parts.buffer(many * 8)
		parts.buffer(many * 8)
		parts.child(dt.Elem(), n, 0)
	case *arrow.LargeListType:
		parts.offsets(8)
		parts.child(dt.Elem(), n, 0)
	case *arrow.ListType:
		parts.offsets(4)
		parts.child(dt.Elem(), n, 0)
	case *arrow.MapType:
		parts.offsets(4)
		parts.child(dt.Elem(), n, 0)
	case *arrow.FixedSizeListType:
		parts.child(dt.Elem(), n, 0)
	case *arrow.StructType:
		for i, field := range dt.Fields() {
			parts.child(field.Type, n, i)
		}
	case arrow.FixedWidthDataType:
		parts.buffer(many * int64(dt.Bytes()))
	default:
		return nil, fault.Invalid("TYPE_UNSUPPORTED", "%s cannot be read", dt)
	}
	return parts.data(dt, array.UnknownNullCount)
}
