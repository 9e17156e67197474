package ipcread

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// Stream decodes the messages of one stream, in their order. It is used by one
// goroutine. The caller calls Release.
type Stream struct {
	mem          memory.Allocator
	limit        int64
	schema       *arrow.Schema // as sent, without extension types
	carried      *arrow.Schema // of the batches: dictionaries of canonical values
	nodes        []node
	dictionaries map[int64]*dictionary
	kept         int64 // bytes of all dictionaries
	bodies       decompressor
}

// NewStream is a stream whose buffers come from mem; a compressed body may take
// at most limit bytes when it is decompressed.
func NewStream(mem memory.Allocator, limit int64) *Stream {
	return &Stream{mem: mem, limit: limit, dictionaries: map[int64]*dictionary{}}
}

// Release gives up the dictionaries.
func (s *Stream) Release() {
	for _, d := range s.dictionaries {
		d.release()
	}
	s.dictionaries = nil
	s.bodies.close()
}

// Schema is the stream's schema, nil before its message.
func (s *Stream) Schema() *arrow.Schema { return s.schema }

// Read decodes the next message: of a record batch it returns the batch, which
// the caller releases, of a schema or dictionary nil. The first message must be
// the schema. Batches have the schema's columns, but dictionaries in them have
// values of canonical type. body may be nil and is retained by what is made of
// it.
func (s *Stream) Read(header []byte, body *memory.Buffer) (batch arrow.RecordBatch, err error) {
	defer func() {
		if p := recover(); p != nil {
			batch, err = nil, fault.Invalid("MESSAGE_INVALID", "the IPC message cannot be decoded: %v", p)
		}
	}()
	if s.schema == nil {
		return nil, s.readSchema(header)
	}
	m, kind, bodyLength, err := message(header)
	if err != nil {
		return nil, err
	}
	if body == nil {
		body = memory.NewBufferBytes(nil)
	}
	if bodyLength > int64(body.Len()) {
		return nil, fault.Invalid("MESSAGE_INVALID", "the IPC message announces a body of %d bytes and brings %d: it is cut off", bodyLength, body.Len())
	}
	switch kind {
	case kindBatch:
		return s.readBatch(m.inner(2), body)
	case kindDictionary:
		return nil, s.readDictionary(m.inner(2), body)
	case kindSchema:
		return nil, fault.Invalid("MESSAGE_INVALID", "the stream brings a second schema; open another stream for it")
	}
	return nil, fault.Invalid("MESSAGE_INVALID", "the IPC message is of the unknown kind %d", kind)
}

func (s *Stream) readSchema(header []byte) error {
	schema, nodes, err := readSchema(header)
	if err != nil {
		return err
	}
	if len(nodes) != schema.NumFields() {
		return errHeader
	}
	fields := schema.Fields()
	for i := range fields {
		if err := canonical.CheckType(fields[i].Type); err != nil {
			return inColumn(fields[i].Name, err)
		}
		if err := s.register(nodes[i], fields[i].Type); err != nil {
			return inColumn(fields[i].Name, err)
		}
		fields[i].Type = carriedType(fields[i].Type)
	}
	s.schema, s.nodes, s.carried = schema, nodes, arrow.NewSchema(fields, nil)
	return nil
}

// carriedType is the type with canonical values in its dictionaries.
func carriedType(dt arrow.DataType) arrow.DataType {
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		return &arrow.DictionaryType{IndexType: dt.IndexType, ValueType: canonical.Type(dt.ValueType), Ordered: dt.Ordered}
	case *arrow.RunEndEncodedType:
		return arrow.RunEndEncodedOf(dt.RunEnds(), carriedType(dt.Encoded()))
	case *arrow.MapType:
		return arrow.MapOfFields(carriedField(dt.KeyField()), carriedField(dt.ItemField()))
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(dt.Len(), carriedField(dt.ElemField()))
	case *arrow.ListType:
		return arrow.ListOfField(carriedField(dt.ElemField()))
	case *arrow.LargeListType:
		return arrow.LargeListOfField(carriedField(dt.ElemField()))
	case *arrow.ListViewType:
		return arrow.ListViewOfField(carriedField(dt.ElemField()))
	case *arrow.LargeListViewType:
		return arrow.LargeListViewOfField(carriedField(dt.ElemField()))
	case *arrow.StructType:
		fields := dt.Fields()
		for i := range fields {
			fields[i] = carriedField(fields[i])
		}
		return arrow.StructOf(fields...)
	}
	return dt
}

func carriedField(field arrow.Field) arrow.Field {
	field.Type = carriedType(field.Type)
	return field
}

// readBatch loads a RecordBatch: length, nodes, buffers, compression,
// variadicBufferCounts.
func (s *Stream) readBatch(t table, body *memory.Buffer) (arrow.RecordBatch, error) {
	load, err := s.loader(t, body)
	if err != nil {
		return nil, err
	}
	rows := t.int64(0)
	columns := make([]arrow.Array, 0, len(s.nodes))
	defer func() {
		for _, column := range columns {
			column.Release()
		}
	}()
	for i, field := range s.carried.Fields() {
		column, err := load.column(field.Type, s.nodes[i])
		if err == nil && int64(column.Len()) != rows {
			column.Release()
			err = fault.Invalid("MESSAGE_INVALID", "it has %d rows and the batch %d", column.Len(), rows)
		}
		if err != nil {
			return nil, inColumn(field.Name, err)
		}
		columns = append(columns, column)
	}
	if err := load.end(); err != nil {
		return nil, err
	}
	return array.NewRecordBatch(s.carried, columns, rows), nil
}

// inColumn puts the column's name before the message of a fault.
func inColumn(name string, err error) error {
	if found := fault.Of(err); found != nil {
		return fault.New(found.Kind, found.Reason, "column %q: %s", name, found.Message)
	}
	return fmt.Errorf("column %q: %w", name, err)
}
