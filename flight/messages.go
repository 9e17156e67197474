package flight

import (
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// piece is rows on their way out: canonical columns as the scan gave them.
// columns are those of the result's schema; keys, for paging, the primary key.
type piece struct {
	columns []arrow.Array
	keys    []arrow.Array
	rows    int
	release func()
}

// slice is rows [lo, hi) of the piece; the caller releases both.
func (p piece) slice(lo, hi int) piece {
	part := piece{rows: hi - lo}
	cut := func(arrays []arrow.Array) []arrow.Array {
		parts := make([]arrow.Array, len(arrays))
		for i, arr := range arrays {
			parts[i] = array.NewSlice(arr, int64(lo), int64(hi))
		}
		return parts
	}
	part.columns, part.keys = cut(p.columns), cut(p.keys)
	part.release = func() {
		for _, arrays := range [][]arrow.Array{part.columns, part.keys} {
			for _, arr := range arrays {
				arr.Release()
			}
		}
	}
	return part
}

// messages turns pieces into the messages of one stream, in the declared types.
// One goroutine uses it.
type messages struct {
	schema       *arrow.Schema
	mem          memory.Allocator
	identity     []bool // columns whose canonical form is the declared one
	dictionaries []*dictionary
	hasDicts     bool
	exactDicts   bool
	headRoom     int
	writer       *ipc.Writer // of dictionary messages
	written      dictionaryMessages
	emit         func(*outbound) error
}

func newMessages(schema *arrow.Schema, mem memory.Allocator, emit func(*outbound) error) *messages {
	m := &messages{schema: schema, mem: mem, emit: emit, exactDicts: true, headRoom: headRoom(schema.Fields()),
		identity: make([]bool, schema.NumFields()), dictionaries: make([]*dictionary, schema.NumFields())}
	for i, field := range schema.Fields() {
		m.identity[i] = canonical.IsIdentity(field.Type)
		if declared, ok := field.Type.(*arrow.DictionaryType); ok {
			m.dictionaries[i] = newDictionary(declared, mem)
		}
		has, floats := dictionariesIn(field.Type)
		m.hasDicts = m.hasDicts || has
		m.exactDicts = m.exactDicts && !floats
	}
	return m
}

// dictionariesIn reports whether a type holds dictionaries at any depth, and
// dictionaries of floats.
func dictionariesIn(dt arrow.DataType) (has, floats bool) {
	if dict, ok := dt.(*arrow.DictionaryType); ok {
		return true, floatsIn(dict.ValueType)
	}
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, field := range nested.Fields() {
			h, f := dictionariesIn(field.Type)
			has, floats = has || h, floats || f
		}
	}
	return has, floats
}

func floatsIn(dt arrow.DataType) bool {
	if nested, ok := dt.(arrow.NestedType); ok {
		for _, field := range nested.Fields() {
			if floatsIn(field.Type) {
				return true
			}
		}
	}
	return arrow.IsFloating(dt.ID())
}

// close releases what the stream kept.
func (m *messages) close() {
	for _, d := range m.dictionaries {
		if d != nil {
			d.release()
		}
	}
	if m.writer != nil {
		_ = m.writer.Close()
	}
}

// sendSchema emits the schema message, which comes first.
func (m *messages) sendSchema() error {
	payload := ipc.GetSchemaPayload(m.schema, m.mem)
	defer payload.Release()
	return m.emit(copied(&payload))
}

// send emits a piece, in as many messages as limits and dictionaries ask for.
// metadata gives the app_metadata of a message that ends with row last of a
// part; final says that no row of the piece follows. send does not release p.
func (m *messages) send(p piece, metadata func(part piece, final bool) ([]byte, error)) error {
	return m.sendPart(p, true, metadata)
}

func (m *messages) sendPart(p piece, final bool, metadata func(piece, bool) ([]byte, error)) error {
	if p.rows == 0 {
		return nil
	}
	if p.rows > 1 && m.size(p) > limits.SentBytes-m.headRoom {
		return m.halves(p, p.rows/2, final, metadata)
	}
	columns, err := m.restore(p)
	if full := (*canonical.DictionaryFull)(nil); errors.As(err, &full) && p.rows > 1 {
		at := full.Rows
		if at <= 0 || at >= p.rows {
			at = p.rows / 2
		}
		return m.halves(p, at, final, metadata)
	}
	if err != nil {
		return err
	}
	batch := array.NewRecordBatch(m.schema, columns, int64(p.rows))
	for _, column := range columns {
		column.Release()
	}
	if m.hasDicts {
		if err := m.sendDictionaries(batch); err != nil {
			batch.Release()
			return err
		}
	}
	text, err := metadata(p, final)
	if err != nil {
		batch.Release()
		return err
	}
	message, err := newOutbound(batch, text, m.mem)
	if err != nil {
		return err
	}
	return m.emit(message)
}

// halves sends rows [0, at) and then the others.
func (m *messages) halves(p piece, at int, final bool, metadata func(piece, bool) ([]byte, error)) error {
	for _, bounds := range [][2]int{{0, at}, {at, p.rows}} {
		part := p.slice(bounds[0], bounds[1])
		err := m.sendPart(part, final && bounds[1] == p.rows, metadata)
		part.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// restore gives the columns their declared types; the caller releases them.
func (m *messages) restore(p piece) ([]arrow.Array, error) {
	columns := make([]arrow.Array, 0, len(p.columns))
	fail := func(err error) ([]arrow.Array, error) {
		for _, column := range columns {
			column.Release()
		}
		return nil, err
	}
	for i, column := range p.columns {
		var restored arrow.Array
		var err error
		if d := m.dictionaries[i]; d != nil {
			if column, err = settle(m.mem, column); err != nil {
				return fail(err)
			}
			restored, err = d.encode(column)
			column.Release()
		} else {
			restored, err = canonical.Restore(m.mem, column, m.schema.Field(i).Type)
		}
		if err != nil {
			return fail(err)
		}
		columns = append(columns, restored)
	}
	return columns, nil
}

// settle is a canonical array without offset; the caller releases it.
func settle(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	return canonical.Restore(mem, arr, arr.DataType())
}

// headRoom is what a message takes beside its body, about: the flatbuffer has 16
// bytes for each array and each of its buffers, of which a view may have some.
func headRoom(fields []arrow.Field) int { return 8<<10 + 96*arraysIn(fields) }

// arraysIn counts the fields and those inside of them.
func arraysIn(fields []arrow.Field) int {
	arrays := len(fields)
	for _, field := range fields {
		if nested, ok := field.Type.(arrow.NestedType); ok {
			arrays += arraysIn(nested.Fields())
		}
	}
	return arrays
}

// size is an upper bound, good enough for cutting, of what the piece's declared
// columns take in a message.
func (m *messages) size(p piece) int {
	size := 0
	for i, column := range p.columns {
		size += rowBytes(column.Data(), column.Data().Offset(), column.Len(), !m.identity[i])
	}
	return size
}

// rowBytes is what rows [from, from+rows) of canonical data take. Other layouts
// add at most 16 bytes a value (views, list views, run ends, indices).
func rowBytes(data arrow.ArrayData, from, rows int, restored bool) int {
	size := 0
	if restored {
		size += 16 * (rows + 1)
	}
	buffers := data.Buffers()
	if len(buffers) > 0 && buffers[0] != nil && data.NullN() != 0 {
		size += padded((rows + 7) / 8)
	}
	switch dt := data.DataType().(type) {
	case *arrow.StringType, *arrow.BinaryType, *arrow.ListType, *arrow.MapType:
		if rows == 0 || buffers[1] == nil || buffers[1].Len() == 0 {
			return size
		}
		ends := arrow.Int32Traits.CastFromBytes(buffers[1].Bytes())
		first, last := int(ends[from]), int(ends[from+rows])
		size += padded(4 * (rows + 1))
		if children := data.Children(); len(children) > 0 {
			return size + rowBytes(children[0], children[0].Offset()+first, last-first, restored)
		}
		return size + padded(last-first)
	case *arrow.FixedSizeListType:
		child, width := data.Children()[0], int(dt.Len())
		return size + rowBytes(child, child.Offset()+from*width, rows*width, restored)
	case *arrow.StructType:
		// A struct's offset counts for its children too, a slice's does not.
		for _, child := range data.Children() {
			size += rowBytes(child, child.Offset()+from, rows, restored)
		}
		return size
	case arrow.FixedWidthDataType:
		return size + padded((rows*dt.BitWidth()+7)/8)
	}
	return size
}

func padded(bytes int) int { return int(bitutil.CeilByte64(int64(bytes))) }

// sendDictionaries emits the dictionaries of the batch that the reader has not,
// by arrow-go's own writer, which compares with what it wrote last. It compares
// floats by nearness, so where there are any each message brings its
// dictionaries.
func (m *messages) sendDictionaries(batch arrow.RecordBatch) error {
	if m.clean() {
		return nil
	}
	if m.writer == nil || !m.exactDicts {
		if m.writer != nil {
			_ = m.writer.Close()
		}
		m.written = dictionaryMessages{}
		m.writer = ipc.NewWriterWithPayloadWriter(&m.written, ipc.WithSchema(m.schema), ipc.WithAllocator(m.mem))
	}
	none := batch.NewSlice(0, 0)
	defer none.Release()
	m.written.messages = m.written.messages[:0]
	if err := m.writer.Write(none); err != nil {
		return err
	}
	// Last comes the batch without rows itself.
	for _, message := range m.written.messages[:len(m.written.messages)-1] {
		if err := m.emit(message); err != nil {
			return err
		}
	}
	return nil
}

// clean reports that the reader has every dictionary already.
func (m *messages) clean() bool {
	clean := m.writer != nil
	for i, field := range m.schema.Fields() {
		if d := m.dictionaries[i]; d != nil {
			clean = clean && !d.dirty
			d.dirty = false
		} else if has, _ := dictionariesIn(field.Type); has {
			clean = false
		}
	}
	return clean
}

// dictionaryMessages takes what an ipc.Writer writes, but the schema.
type dictionaryMessages struct {
	begun    bool
	messages []*outbound
}

func (d *dictionaryMessages) Start() error { return nil }
func (d *dictionaryMessages) Close() error { return nil }

func (d *dictionaryMessages) WritePayload(payload ipc.Payload) error {
	if !d.begun {
		d.begun = true
		return nil
	}
	d.messages = append(d.messages, copied(&payload))
	return nil
}

// noMetadata is for streams without paging.
func noMetadata(piece, bool) ([]byte, error) { return nil, nil }
