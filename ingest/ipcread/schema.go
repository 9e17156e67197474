package ipcread

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

const (
	maxDepth  = 64      // nesting of fields, as arrow-go has it
	maxFields = 1 << 16 // of one schema, nested ones included
	oldest    = 3       // metadata version V4, of Arrow 0.8
	newest    = 4       // V5
)

// Kinds of message, from Message.fbs.
const (
	kindSchema     = 1
	kindDictionary = 2
	kindBatch      = 3
)

// Members of the union Type whose tables hold more than numbers.
const (
	typeTimestamp = 10
	typeUnion     = 14
)

// node is what a field's flatbuffer says beside its type: the id of its
// dictionary, if it has one, and its children (those of the dictionary's values
// in that case).
type node struct {
	dictionary int64 // -1: none
	children   []node
}

// Schema decodes a schema message as Flight carries it, without length prefix.
// Extension types are replaced by their storage (canonical.PlainSchema).
func Schema(header []byte) (*arrow.Schema, error) {
	schema, _, err := readSchema(header)
	return schema, err
}

// SerializedSchema decodes an encapsulated schema message, as pyarrow's
// schema.serialize() gives it: continuation marker, length, header.
func SerializedSchema(data []byte) (*arrow.Schema, error) {
	rest := data
	if len(rest) >= 4 && binary.LittleEndian.Uint32(rest) == 0xFFFFFFFF {
		rest = rest[4:]
	}
	if len(rest) < 4 {
		return nil, errHeader
	}
	n := binary.LittleEndian.Uint32(rest)
	if rest = rest[4:]; uint64(n) > uint64(len(rest)) {
		return nil, errHeader
	}
	return Schema(rest[:n])
}

// message opens a header.
func message(header []byte) (m table, kind byte, bodyLength int64, err error) {
	b := &buffer{data: header}
	m = b.root()
	version, kind, bodyLength := m.int16(0), m.byte(1), m.int64(3)
	if m.bad || m.absent || bodyLength < 0 {
		return table{}, 0, 0, errHeader
	}
	if version < oldest || version > newest {
		return table{}, 0, 0, fault.Invalid("MESSAGE_INVALID", "the IPC message has metadata version V%d; V4 and V5 are read", version+1)
	}
	return m, kind, bodyLength, nil
}

// readSchema checks the whole flatbuffer and then has arrow-go decode it.
func readSchema(header []byte) (schema *arrow.Schema, nodes []node, err error) {
	m, kind, _, err := message(header)
	if err != nil {
		return nil, nil, err
	}
	if kind != kindSchema {
		return nil, nil, fault.Invalid("MESSAGE_INVALID", "the first IPC message is no schema")
	}
	s := m.inner(2)
	if s.absent {
		return nil, nil, errHeader
	}
	if s.int16(0) != 0 {
		return nil, nil, fault.Invalid("ENDIANNESS", "the schema says that values are big-endian; send them little-endian")
	}
	nodes = s.children(1, maxDepth)
	s.metadata(2)
	m.metadata(4)
	if s.fields > maxFields {
		return nil, nil, fault.New(fault.ResourceExhausted, "COLUMNS_LIMIT", "the schema has more than %d fields, nested ones included; a table has at most %d columns", maxFields, limits.Columns)
	}
	if s.bad {
		return nil, nil, errHeader
	}
	defer func() {
		if p := recover(); p != nil {
			err = fault.Invalid("MESSAGE_INVALID", "the schema cannot be decoded: %v", p)
		}
	}()
	reader, err := ipc.NewReaderFromMessageReader(&single{header: header})
	if err != nil {
		return nil, nil, fault.Invalid("MESSAGE_INVALID", "the schema cannot be decoded: %w", err)
	}
	defer reader.Release()
	return canonical.PlainSchema(reader.Schema()), nodes, nil
}

// children walks a vector of fields.
func (t table) children(slot, depth int) []node {
	at, n := t.vector(slot, 4)
	t.fields += n
	if depth == 0 || t.fields > maxFields {
		t.fail()
	}
	if t.bad {
		return nil
	}
	nodes := make([]node, n)
	for i := range nodes {
		field := t.table(at + 4*i + t.u32(at+4*i))
		nodes[i] = field.node(depth - 1)
	}
	return nodes
}

// node walks one field: name, nullable, type_type, type, dictionary, children,
// custom_metadata.
func (t table) node(depth int) node {
	t.text(0)
	switch dt := t.inner(3); t.byte(2) {
	case typeTimestamp:
		dt.text(1) // its zone
	case typeUnion:
		_, n := dt.vector(1, 4) // its type ids
		dt.copy(4 * n)
	}
	n := node{dictionary: -1, children: t.children(5, depth)}
	if dictionary := t.inner(4); !dictionary.absent {
		n.dictionary = dictionary.int64(0)
		if n.dictionary < 0 {
			t.fail()
		}
	}
	t.metadata(6)
	return n
}

// metadata walks a vector of key-value pairs.
func (t table) metadata(slot int) {
	at, n := t.vector(slot, 4)
	t.copy(4 * n)
	for i := range n {
		if t.bad {
			return
		}
		pair := t.table(at + 4*i + t.u32(at+4*i))
		pair.text(0)
		pair.text(1)
	}
}

// single is an ipc.MessageReader of one message without body.
type single struct {
	header []byte
	read   bool
}

func (s *single) Message() (*ipc.Message, error) {
	if s.read {
		return nil, io.EOF
	}
	s.read = true
	return ipc.NewMessage(memory.NewBufferBytes(s.header), memory.NewBufferBytes(nil)), nil
}

func (s *single) Retain()  {}
func (s *single) Release() {}
