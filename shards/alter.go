package shards

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/canonical"
	"github.com/sheaf-db/sheaf/shards/run"
)

// Change is one alteration of a table; exactly one field is set. Key columns
// can be renamed only.
type Change struct {
	AddColumns *arrow.Schema     // new columns, null in all rows so far
	Drop       []string          // a column added again later under the name is a new one
	Rename     map[string]string // old name to new name, all at once: names may be swapped
	Widen      *arrow.Schema     // columns by name, with the wider type
}

// apply makes the next schema version; e itself stays as it is.
func (e *entry) apply(c Change) (*entry, error) {
	old := e.current()
	next := &Schema{
		Version: old.Version + 1, Columns: slices.Clone(old.Columns), Metadata: old.Metadata,
		Sharding: old.Sharding, Sorting: old.Sorting, Slices: old.Slices, HiddenID: old.HiddenID,
	}
	changed := &entry{name: e.name, nextColumn: e.nextColumn, schemas: append(slices.Clone(e.schemas), next)}
	asked := 0
	var err error
	if c.AddColumns != nil && c.AddColumns.NumFields() > 0 {
		asked++
		err = changed.addColumns(next, canonical.PlainSchema(c.AddColumns))
	}
	if len(c.Drop) > 0 {
		asked++
		err = next.drop(c.Drop)
	}
	if len(c.Rename) > 0 {
		asked++
		err = next.rename(c.Rename)
	}
	if c.Widen != nil && c.Widen.NumFields() > 0 {
		asked++
		err = next.widen(canonical.PlainSchema(c.Widen))
	}
	if asked != 1 {
		return nil, fault.Invalid("ALTER_INVALID", "an alteration does exactly one of: add columns, drop columns, rename columns, widen columns")
	}
	if err != nil {
		return nil, err
	}
	return changed, next.checkStorable()
}

func (e *entry) addColumns(s *Schema, added *arrow.Schema) error {
	for _, f := range added.Fields() {
		if !f.Nullable {
			return fault.Invalid("COLUMN_NOT_NULLABLE",
				"column %q cannot be added as not null: the rows there are have no value for it", f.Name)
		}
		if _, exists := s.find(f.Name); exists {
			return fault.New(fault.AlreadyExists, "COLUMN_EXISTS", "column %q exists already", f.Name)
		}
		if err := e.add(s, f); err != nil {
			return err
		}
		// A block of rows that lack the column is read as so many nulls.
		if size := canonical.ValueBytes(f.Type); size*limits.BlockRows > block.MaxColumnBytes {
			return fault.Invalid("TYPE_UNSUPPORTED", "column %q cannot be added: a null of %s takes %d bytes, and the rows there are would get one each; the limit is %d: make a table with it instead",
				f.Name, f.Type, size, block.MaxColumnBytes/limits.BlockRows)
		}
	}
	return nil
}

// find works before derive, on a schema that is still being made.
func (s *Schema) find(name string) (int, bool) {
	i := slices.IndexFunc(s.Columns, func(c Column) bool { return c.Field.Name == name && !c.Hidden })
	return i, i >= 0
}

func (s *Schema) mustFind(name string) (int, error) {
	if i, ok := s.find(name); ok {
		return i, nil
	}
	return 0, fault.Invalid("COLUMN_NOT_FOUND", "there is no column %q%s", name, suggest(name, s.names()))
}

func (s *Schema) isKey(column int) bool {
	return slices.Contains(s.Sharding, column) || slices.Contains(s.Sorting, column)
}

func (s *Schema) refuseKey(column int, what string) error {
	if s.isKey(column) {
		return fault.New(fault.FailedPrecondition, "KEY_IMMUTABLE", "column %q is part of the key %s and cannot be %s: key columns can only be renamed",
			s.Columns[column].Field.Name, s.keyText(), what)
	}
	return nil
}

func (s *Schema) drop(names []string) error {
	var gone []int
	for _, name := range names {
		i, err := s.mustFind(name)
		if err == nil {
			err = s.refuseKey(i, "dropped")
		}
		if err != nil {
			return err
		}
		gone = append(gone, i)
	}
	// Key columns move up where a column before them goes.
	moved := func(columns []int) []int {
		var list []int
		for _, c := range columns {
			before := 0
			for i := range c {
				if slices.Contains(gone, i) {
					before++
				}
			}
			list = append(list, c-before)
		}
		return list
	}
	var kept []Column
	for i, c := range s.Columns {
		if !slices.Contains(gone, i) {
			kept = append(kept, c)
		}
	}
	s.Sharding, s.Sorting, s.Columns = moved(s.Sharding), moved(s.Sorting), kept
	if len(s.names()) == 0 {
		return fault.Invalid("SCHEMA_EMPTY", "a table keeps at least one column: the last cannot be dropped")
	}
	return nil
}

func (s *Schema) rename(names map[string]string) error {
	renamed := make(map[int]string, len(names))
	for from, to := range names {
		i, err := s.mustFind(from)
		if err == nil {
			err = checkColumnName(to)
		}
		if err != nil {
			return err
		}
		renamed[i] = to
	}
	for i, to := range renamed {
		s.Columns[i].Field.Name = to
	}
	seen := map[string]bool{}
	for _, name := range s.names() {
		if seen[name] {
			return fault.New(fault.AlreadyExists, "COLUMN_EXISTS", "after renaming there would be two columns %q", name)
		}
		seen[name] = true
	}
	return nil
}

// widen gives columns wider types. What nested and metadata there was comes
// from the new field; a column declared not null may become nullable.
func (s *Schema) widen(wider *arrow.Schema) error {
	for _, f := range wider.Fields() {
		i, err := s.mustFind(f.Name)
		if err == nil {
			err = s.refuseKey(i, "widened")
		}
		if err == nil {
			err = checkType(f)
		}
		if err != nil {
			return err
		}
		c := &s.Columns[i]
		to := canonical.Type(f.Type)
		if !widens(c.Canonical, to) {
			return fault.Invalid("WIDEN_INVALID", "column %q is %s: %s does not hold every value of it", f.Name, c.Field.Type, f.Type)
		}
		if c.Field.Nullable && !f.Nullable {
			return fault.Invalid("WIDEN_INVALID", "column %q is nullable and cannot become not null", f.Name)
		}
		c.Field, c.Canonical = f, to
	}
	return nil
}

// widens reports whether every value of canonical type from is a value of type
// to. A finer unit of a timestamp or a duration reaches less far than the
// coarser one, so those stay as they are: a value that does not fit would fail
// every read of its block.
func widens(from, to arrow.DataType) bool {
	if !run.Widens(from, to) {
		return false
	}
	switch from.ID() {
	case arrow.TIMESTAMP, arrow.DURATION:
		return arrow.TypeEqual(from, to)
	}
	return true
}
