package shards

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// entry is a table's catalog entry: what survives in the meta region. The
// schemas are all versions there ever were, oldest first, since runs and delta
// payloads of older versions are read by the types they were written with.
type entry struct {
	name       Name
	nextColumn uint32 // the id that the next new column gets
	schemas    []*Schema
}

func (e *entry) current() *Schema { return e.schemas[len(e.schemas)-1] }

const entryFormat byte = 1

// flagHidden marks a table without key.
const flagHidden uint64 = 1

// encode: docs/format-store.md, "Catalog entry". What all versions share (keys,
// slices) is written once; it never changes.
func (e *entry) encode() ([]byte, error) {
	s := e.current()
	r := newRecord(entryFormat).text(e.name.Namespace).text(e.name.Table)
	flags := uint64(0)
	if s.HiddenID {
		flags |= flagHidden
	}
	r.number(flags).number(uint64(s.Slices)).number(uint64(e.nextColumn))
	for _, columns := range [][]int{s.Sharding, s.Sorting} {
		r.number(uint64(len(columns)))
		for _, c := range columns {
			r.number(uint64(s.Columns[c].ID))
		}
	}
	r.number(uint64(len(e.schemas)))
	for _, s := range e.schemas {
		message, err := encodeFields(s)
		if err != nil {
			return nil, err
		}
		r.number(uint64(s.Version)).number(uint64(len(s.Columns)))
		for _, c := range s.Columns {
			r.number(uint64(c.ID))
		}
		r.bytes(message)
	}
	return r.seal(), nil
}

func decodeEntry(data []byte) (*entry, error) {
	r := readRecord("catalog entry of a table", entryFormat, data)
	e := &entry{name: Name{Namespace: r.text(), Table: r.text()}}
	flags, slices := r.number(), int(r.number())
	e.nextColumn = uint32(r.number())
	readIDs := func(n int) []uint32 {
		var list []uint32
		for range n {
			list = append(list, uint32(r.number()))
		}
		return list
	}
	sharding := readIDs(r.count())
	sorting := readIDs(r.count())
	for range r.count() {
		s := &Schema{Version: uint32(r.number()), Slices: slices, HiddenID: flags&flagHidden != 0}
		columns := readIDs(r.count())
		message := r.bytes()
		if r.err != nil {
			break
		}
		if err := s.decodeFields(columns, message, sharding, sorting); err != nil {
			return nil, fmt.Errorf("the catalog entry of table %s: %w", e.name, err)
		}
		e.schemas = append(e.schemas, s)
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	if len(e.schemas) == 0 || slices < 1 {
		return nil, fmt.Errorf("the catalog entry of table %s has no schema", e.name)
	}
	return e, nil
}

// encodeFields is the declared fields and the creator's metadata as an Arrow IPC
// stream that ends behind its schema.
func encodeFields(s *Schema) ([]byte, error) {
	return encodeArrowSchema(arrow.NewSchema(s.declared(), &s.Metadata))
}

func encodeArrowSchema(schema *arrow.Schema) ([]byte, error) {
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encoding a schema: %w", err)
	}
	return out.Bytes(), nil
}

func decodeArrowSchema(message []byte) (schema *arrow.Schema, err error) {
	// The flatbuffers below it index where damaged bytes tell them to.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("decoding a schema: %v", r)
		}
	}()
	r, err := ipc.NewReader(bytes.NewReader(message))
	if err != nil {
		return nil, fmt.Errorf("decoding a schema: %w", err)
	}
	defer r.Release()
	// A package that registers an extension type makes the reader return it.
	return canonical.PlainSchema(r.Schema()), nil
}

func (s *Schema) declared() []arrow.Field {
	var fields []arrow.Field
	for _, c := range s.Columns {
		if !c.Hidden {
			fields = append(fields, c.Field)
		}
	}
	return fields
}

// hiddenColumn is column 0 of a table without key.
func hiddenColumn() Column {
	return Column{
		ID:        block.ColumnHiddenID,
		Field:     arrow.Field{Name: HiddenIDName, Type: arrow.PrimitiveTypes.Uint64},
		Canonical: arrow.PrimitiveTypes.Uint64,
		Hidden:    true,
	}
}

// decodeFields fills Columns, Metadata and the keys.
func (s *Schema) decodeFields(ids []uint32, message []byte, sharding, sorting []uint32) error {
	declared, err := decodeArrowSchema(message)
	if err != nil {
		return err
	}
	s.Metadata = declared.Metadata()
	fields := declared.Fields()
	if s.HiddenID {
		s.Columns = append(s.Columns, hiddenColumn())
	}
	if len(ids) != len(fields)+len(s.Columns) {
		return fmt.Errorf("schema version %d has %d ids for %d columns", s.Version, len(ids), len(fields))
	}
	for i, f := range fields {
		s.Columns = append(s.Columns, Column{ID: ids[len(ids)-len(fields)+i], Field: f, Canonical: canonical.Type(f.Type)})
	}
	if s.Sharding, err = s.indices(sharding); err == nil {
		s.Sorting, err = s.indices(sorting)
	}
	return err
}

func (s *Schema) indices(ids []uint32) ([]int, error) {
	var list []int
	for _, id := range ids {
		found := -1
		for i, c := range s.Columns {
			if c.ID == id {
				found = i
			}
		}
		if found < 0 {
			return nil, fmt.Errorf("schema version %d lacks key column %d", s.Version, id)
		}
		list = append(list, found)
	}
	return list, nil
}
