package ipcread

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/ingest/quota"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// dictionary is the values of one dictionary id, as canonical arrays: what
// replaced it last, and the deltas since.
type dictionary struct {
	carried arrow.DataType // type of the values as they are loaded
	node    node           // of the values: children, no dictionary of its own
	parts   []arrow.Array
	bytes   int64 // that the parts keep, bodies of messages included
}

func (d *dictionary) release() {
	for _, part := range d.parts {
		part.Release()
	}
	d.parts, d.bytes = nil, 0
}

// register makes the dictionaries of a field known, those in their values too.
func (s *Stream) register(n node, dt arrow.DataType) error {
	if encoded, ok := dt.(*arrow.DictionaryType); ok {
		if n.dictionary < 0 {
			return errHeader
		}
		dt = encoded.ValueType
		values := node{dictionary: -1, children: n.children}
		if known := s.dictionaries[n.dictionary]; known == nil {
			s.dictionaries[n.dictionary] = &dictionary{carried: carriedType(dt), node: values}
		} else if !arrow.TypeEqual(known.carried, carriedType(dt)) {
			return fault.Invalid("MESSAGE_INVALID", "dictionary id %d stands for values of two types", n.dictionary)
		}
	}
	for i, child := range canonical.Children(dt) {
		if i >= len(n.children) {
			return errHeader
		}
		if err := s.register(n.children[i], child); err != nil {
			return err
		}
	}
	return nil
}

// readDictionary loads a DictionaryBatch: id, data, isDelta.
func (s *Stream) readDictionary(t table, body *memory.Buffer) (err error) {
	known := s.dictionaries[t.int64(0)]
	if t.absent || t.bad || known == nil {
		return fault.Invalid("MESSAGE_INVALID", "a dictionary has the id %d, which the schema does not name", t.int64(0))
	}
	load, err := s.loader(t.inner(1), body)
	if err != nil {
		return err
	}
	values, err := load.column(known.carried, known.node)
	if err != nil {
		return fmt.Errorf("dictionary %d: %w", t.int64(0), err)
	}
	defer values.Release()
	if err := load.end(); err != nil {
		return err
	}
	defer quota.Recover(&err, s.tooLarge)
	plain, err := canonical.Normalize(quota.New(s.mem, s.limit), values)
	if err != nil {
		if found := fault.Of(err); found != nil {
			return err
		}
		return fault.Invalid("COLUMN_MALFORMED", "dictionary %d: %w", t.int64(0), err)
	}
	s.kept -= known.bytes
	if t.byte(2) == 0 {
		known.release()
	}
	known.parts = append(known.parts, plain)
	known.bytes += max(int64(plain.Data().SizeInBytes()), int64(body.Len()))
	if s.kept += known.bytes; s.kept <= s.limit {
		return nil
	}
	return fault.New(fault.ResourceExhausted, "MESSAGE_TOO_LARGE",
		"the dictionaries of the stream take %d bytes together, more than %d, the limit of one message (--max-message): send shorter ones, or plain columns", s.kept, s.limit)
}

// now is all values, which stay the dictionary's. Without a message yet it is
// empty, so that only nulls can refer to it.
func (d *dictionary) now(s *Stream) (arrow.Array, error) {
	if len(d.parts) == 0 {
		builder := array.NewBuilder(s.mem, canonical.Type(d.carried))
		defer builder.Release()
		d.parts = []arrow.Array{builder.NewArray()}
	}
	if len(d.parts) > 1 {
		whole, err := array.Concatenate(d.parts, s.mem)
		if err != nil {
			return nil, fault.Invalid("MESSAGE_INVALID", "its dictionary cannot be put together: %w", err)
		}
		s.kept -= d.bytes
		d.release()
		d.parts, d.bytes = []arrow.Array{whole}, int64(whole.Data().SizeInBytes())
		s.kept += d.bytes
	}
	return d.parts[0], nil
}
