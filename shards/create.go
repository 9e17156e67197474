package shards

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/canonical"
	"github.com/sheaf-db/sheaf/shards/key"
)

// Spec describes a table to be made. Sharding and Sorting name columns of
// Schema; NoKey asks for a hidden _sheaf_id as the key instead. Extension types
// in Schema become their storage and metadata, sheaf.* metadata is ignored.
type Spec struct {
	Schema            *arrow.Schema
	Sharding, Sorting []string
	NoKey             bool
	Slices            int // 0: limits.DefaultSlices
}

// newEntry checks a Spec and gives columns their ids, from 1. All errors are
// *fault.Error of kind InvalidArgument.
func newEntry(name Name, spec Spec) (*entry, error) {
	if err := name.check(); err != nil {
		return nil, err
	}
	count := spec.Slices
	if count == 0 {
		count = limits.DefaultSlices
	}
	if count < 1 || count > limits.MaxSlices {
		return nil, fault.Invalid("SLICES_INVALID", "a table has 1 to %d slices, not %d", limits.MaxSlices, count)
	}
	if spec.Schema == nil || spec.Schema.NumFields() == 0 {
		return nil, fault.Invalid("SCHEMA_EMPTY", "the schema of table %s has no columns", name)
	}
	plain := canonical.PlainSchema(spec.Schema)
	s := &Schema{Version: 1, Slices: count, HiddenID: spec.NoKey, Metadata: withoutOurs(plain.Metadata())}
	if s.HiddenID {
		s.Columns = append(s.Columns, hiddenColumn())
	}
	e := &entry{name: name, nextColumn: 1, schemas: []*Schema{s}}
	for _, f := range plain.Fields() {
		if err := e.add(s, f); err != nil {
			return nil, err
		}
	}
	if err := s.setKeys(spec); err != nil {
		return nil, err
	}
	return e, s.checkStorable()
}

// add checks one new column and appends it to s.
func (e *entry) add(s *Schema, f arrow.Field) error {
	if err := checkColumnName(f.Name); err != nil {
		return err
	}
	for _, c := range s.Columns {
		if c.Field.Name == f.Name {
			return fault.Invalid("COLUMN_REPEATED", "column %q occurs twice: column names are unique", f.Name)
		}
	}
	if len(s.Columns) >= limits.Columns {
		return fault.New(fault.ResourceExhausted, "COLUMNS_LIMIT", "a table has at most %d columns", limits.Columns)
	}
	if err := checkType(f); err != nil {
		return err
	}
	s.Columns = append(s.Columns, Column{ID: e.nextColumn, Field: f, Canonical: canonical.Type(f.Type)})
	e.nextColumn++
	return nil
}

func checkColumnName(name string) error {
	switch {
	case name == "" || len(name) > limits.NameBytes || !utf8.ValidString(name):
		return fault.Invalid("COLUMN_NAME_INVALID", "%.300q is no column name: it must be UTF-8 of 1 to %d bytes",
			name, limits.NameBytes)
	case strings.HasPrefix(name, ReservedPrefix):
		return fault.Invalid("COLUMN_NAME_RESERVED", "column %q: names that begin with %s are reserved, choose another",
			name, ReservedPrefix)
	}
	return nil
}

func checkType(f arrow.Field) error {
	err := canonical.CheckType(f.Type)
	if err == nil {
		return nil
	}
	if found := fault.Of(err); found != nil {
		return fault.New(found.Kind, found.Reason, "column %q: %s", f.Name, found.Message)
	}
	return fault.Invalid("TYPE_UNSUPPORTED", "column %q: %w", f.Name, err)
}

// setKeys resolves the key columns. Keys hold no nulls, whatever the field
// says; the declared nullability stays.
func (s *Schema) setKeys(spec Spec) error {
	if spec.NoKey {
		if len(spec.Sharding)+len(spec.Sorting) > 0 {
			return fault.Invalid("KEY_INVALID", "a table without key has neither sharding nor sorting key")
		}
		s.Sharding = []int{0}
		return nil
	}
	if len(spec.Sharding) == 0 {
		return fault.Invalid("KEY_MISSING", "a table needs a sharding key: name its columns, or ask for a table without key by []")
	}
	if n := len(spec.Sharding) + len(spec.Sorting); n > limits.KeyColumns {
		return fault.Invalid("KEY_COLUMNS_LIMIT", "a key has at most %d columns, sharding and sorting together, not %d",
			limits.KeyColumns, n)
	}
	resolve := func(kind string, names []string) ([]int, error) {
		var list []int
		for _, name := range names {
			i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Field.Name == name })
			if i < 0 {
				return nil, fault.Invalid("KEY_COLUMN_MISSING", "%s key column %q is not in the schema%s",
					kind, name, suggest(name, s.names()))
			}
			if slices.Contains(list, i) || slices.Contains(s.Sharding, i) {
				return nil, fault.Invalid("KEY_COLUMN_REPEATED", "column %q is named twice in the key", name)
			}
			if err := key.Supported(s.Columns[i].Field.Type); err != nil {
				return nil, keyTypeError(kind, name, err)
			}
			list = append(list, i)
		}
		return list, nil
	}
	var err error
	if s.Sharding, err = resolve("sharding", spec.Sharding); err == nil {
		s.Sorting, err = resolve("sorting", spec.Sorting)
	}
	return err
}

func keyTypeError(kind, name string, err error) error {
	if found := fault.Of(err); found != nil {
		return fault.New(found.Kind, found.Reason, "%s key column %q: %s", kind, name, found.Message)
	}
	return fault.Invalid("KEY_TYPE_UNSUPPORTED", "%s key column %q: %w", kind, name, err)
}

// checkStorable makes sure that the catalog gives back what was declared, down
// to nested names and metadata, before anything is written.
func (s *Schema) checkStorable() error {
	message, err := encodeFields(s)
	if err != nil {
		return fault.Invalid("TYPE_UNSUPPORTED", "the schema cannot be stored: %w", err)
	}
	back, err := decodeArrowSchema(message)
	if err != nil {
		return fault.Invalid("TYPE_UNSUPPORTED", "the schema cannot be stored: %w", err)
	}
	for i, f := range s.declared() {
		if !f.Equal(back.Field(i)) {
			return fault.Invalid("TYPE_UNSUPPORTED", "column %q: type %s cannot be stored as it is (it would come back as %s)",
				f.Name, f.Type, back.Field(i).Type)
		}
	}
	return nil
}

// withoutOurs drops sheaf.* from metadata: the engine writes those itself.
func withoutOurs(m arrow.Metadata) arrow.Metadata {
	var keys, values []string
	for i, k := range m.Keys() {
		if k != MetaShardingKey && k != MetaSortingKey && k != MetaSlices {
			keys, values = append(keys, k), append(values, m.Values()[i])
		}
	}
	return arrow.NewMetadata(keys, values)
}

func (s *Schema) names() []string {
	var names []string
	for _, c := range s.Columns {
		if !c.Hidden {
			names = append(names, c.Field.Name)
		}
	}
	return names
}

// suggest is ": did you mean a, b?" or nothing.
func suggest(asked string, names []string) string {
	if near := Nearest(asked, names); len(near) > 0 {
		return ": did you mean " + strings.Join(near, ", ") + "?"
	}
	return ""
}
