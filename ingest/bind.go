package ingest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/canonical"
)

// binding is how the columns of a stream become the columns of one version of a
// table's schema. It is immutable.
type binding struct {
	schema  *shards.Schema
	mode    Mode
	source  []int         // for each column of schema: the stream's column, or absent
	convert []*conversion // for each column of schema that is sent
	whole   bool          // every column of the table is sent
}

const absent = -1

// bind matches the stream's columns with the table's, by name. Columns that the
// table lacks are refused; see unknownColumns for those that may be added.
func bind(name shards.Name, schema *shards.Schema, stream *arrow.Schema, mode Mode) (*binding, error) {
	if err := mode.allowed(name, schema.HiddenID); err != nil {
		return nil, err
	}
	if unknown := unknownColumns(schema, stream); len(unknown) > 0 {
		asked := unknown[0].Name
		return nil, fault.Invalid("COLUMN_NOT_FOUND", "table %s has no column %q%s (the command field add_columns adds unknown columns)",
			name, asked, suggest(asked, schema))
	}
	b := &binding{
		schema: schema, mode: mode, whole: true,
		source:  make([]int, len(schema.Columns)),
		convert: make([]*conversion, len(schema.Columns)),
	}
	for i := range b.source {
		b.source[i] = absent
	}
	for at, field := range stream.Fields() {
		i, _ := schema.Column(field.Name)
		if mode == ModeDelete && !b.isKey(i) {
			continue
		}
		if err := b.match(i, at, field); err != nil {
			return nil, err
		}
	}
	for i, column := range schema.Columns {
		if b.source[i] != absent || column.Hidden {
			continue
		}
		b.whole = false
		switch {
		case b.isKey(i):
			return nil, fault.Invalid("COLUMN_MISSING", "key column %q of table %s is not sent; every row needs its whole key", column.Field.Name, name)
		case !column.Field.Nullable && !mode.partial() && mode != ModeDelete:
			return nil, fault.Invalid("COLUMN_MISSING", "column %q of table %s is declared not-null and is not sent", column.Field.Name, name)
		}
	}
	return b, nil
}

// unknownColumns is the fields of a stream that the table has no column for.
func unknownColumns(schema *shards.Schema, stream *arrow.Schema) []arrow.Field {
	var unknown []arrow.Field
	for _, field := range stream.Fields() {
		if _, ok := schema.Column(field.Name); !ok {
			unknown = append(unknown, field)
		}
	}
	return unknown
}

// suggest is "; did you mean …?" with the columns nearest to the one asked for,
// or nothing if none is near.
func suggest(asked string, schema *shards.Schema) string {
	near := shards.Nearest(asked, fieldNames(schema.Arrow()))
	if len(near) == 0 {
		return ""
	}
	for i, name := range near {
		near[i] = strconv.Quote(name)
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

func (b *binding) isKey(column int) bool {
	for _, c := range b.schema.KeyColumns() {
		if c == column {
			return true
		}
	}
	return false
}

func (b *binding) match(column, at int, field arrow.Field) error {
	if err := canonical.CheckType(field.Type); err != nil {
		return inColumn(field.Name, err)
	}
	declared := b.schema.Columns[column]
	conversion, err := match(canonical.Type(field.Type), declared.Canonical)
	if err != nil {
		return fault.Invalid("TYPE_MISMATCH", "column %q is %s; %s is sent and does not fit%s",
			field.Name, typeName(declared.Field.Type), typeName(field.Type), zoneHint(declared.Canonical, field.Type))
	}
	b.source[column], b.convert[column] = at, conversion
	return nil
}

// typeName is the type as users of most Arrow libraries know it.
func typeName(dt arrow.DataType) string { return strings.ReplaceAll(dt.String(), "utf8", "string") }

func zoneHint(column, sent arrow.DataType) string {
	a, isTime := column.(*arrow.TimestampType)
	z, isTimeToo := sent.(*arrow.TimestampType)
	if isTime && isTimeToo && (a.TimeZone == "") != (z.TimeZone == "") {
		return ": one is an instant, the other a reading of a clock without zone"
	}
	return ""
}

// columns converts one batch: an array for each column of the schema, nil for a
// hidden one, and for those that are not sent where the binding is of a delete.
// The caller releases them. Errors name column, row and value; place says which
// batch.
func (b *binding) columns(mem memory.Allocator, batch arrow.RecordBatch, place place) ([]arrow.Array, error) {
	columns := make([]arrow.Array, len(b.source))
	complete := false
	defer func() {
		if !complete { // after an error, or a panic of the quota
			releaseAll(columns)
		}
	}()
	for i, at := range b.source {
		column := b.schema.Columns[i]
		switch {
		case column.Hidden || at == absent && b.mode == ModeDelete:
		case at == absent:
			columns[i] = nulls(mem, column.Canonical, int(batch.NumRows()))
		default:
			converted, err := b.column(mem, column, batch.Column(at), b.convert[i], place)
			if err != nil {
				return nil, err
			}
			columns[i] = converted
			if b.isKey(i) {
				continue // encoding the keys finds nulls
			}
			if row, path := firstNull(column.Field, converted); row >= 0 {
				return nil, place.null(row, column.Field.Name, path)
			}
		}
	}
	complete = true
	return columns, nil
}

func (b *binding) column(mem memory.Allocator, column shards.Column, sent arrow.Array, conversion *conversion, place place) (arrow.Array, error) {
	name := column.Field.Name
	plain, err := canonical.Normalize(mem, sent)
	if err != nil {
		if found := fault.Of(err); found != nil {
			return nil, place.wrap(found, name)
		}
		return nil, fault.Invalid("COLUMN_MALFORMED", "%s, column %q: %w", place, name, err)
	}
	defer plain.Release()
	converted, err := conversion.apply(mem, plain)
	if err != nil {
		var bad *valueError
		if errors.As(err, &bad) {
			return nil, fault.Invalid("VALUE_OUT_OF_RANGE", "%s, row %d, column %q: value %s %s", place, bad.row, name, bad.value, bad.reason)
		}
		return nil, fmt.Errorf("%s, column %q: %w", place, name, err)
	}
	return converted, nil
}

// releaseAll releases arrays, some of which may be nil.
func releaseAll(arrays []arrow.Array) {
	for _, arr := range arrays {
		if arr != nil {
			arr.Release()
		}
	}
}

// place is the number of a batch in its stream, for messages.
type place uint64

func (p place) String() string { return fmt.Sprintf("batch %d", uint64(p)) }

func (p place) wrap(err *fault.Error, column string) error {
	return fault.New(err.Kind, err.Reason, "%s, column %q: %s", p, column, err.Message)
}

func (p place) null(row int, column, path string) error {
	if path != column {
		column = path
	}
	return fault.Invalid("NULL_VALUE", "%s, row %d, column %q: the value is null and the column is declared not-null", p, row, column)
}
