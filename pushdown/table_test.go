package pushdown

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards"
	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/canonical"
	"github.com/sheaf-db/sheaf/shards/key"
	"github.com/sheaf-db/sheaf/shards/run"
)

// testTable is a small table in memory: what a scan would see of one.
type testTable struct {
	schema *shards.Schema
	rows   int
	arrays map[uint32]arrow.Array // by column id, canonical
	keys   *key.Keys
	slices []int
}

// newTestTable makes a schema of the named columns; kinds says of each whether
// it is of the "shard"ing key, the "sort"ing key, or "".
func newTestSchema(names []string, types []arrow.DataType, kinds []string, slices int) *shards.Schema {
	s := &shards.Schema{Version: 1, Slices: slices}
	for i, name := range names {
		id := uint32(i + 1)
		if name == shards.HiddenIDName {
			id, s.HiddenID = block.ColumnHiddenID, true
		}
		s.Columns = append(s.Columns, shards.Column{
			ID: id, Field: arrow.Field{Name: name, Type: types[i], Nullable: kinds[i] == ""},
			Canonical: canonical.Type(types[i]), Hidden: name == shards.HiddenIDName,
		})
		switch kinds[i] {
		case "shard":
			s.Sharding = append(s.Sharding, i)
		case "sort":
			s.Sorting = append(s.Sorting, i)
		}
	}
	return s
}

// newTestTable takes over the arrays, one for each column. The rows' version is
// their number, counted from 1.
func newTestTable(tb testing.TB, schema *shards.Schema, arrays []arrow.Array) *testTable {
	t := &testTable{schema: schema, arrays: map[uint32]arrow.Array{}, keys: &key.Keys{}}
	for i, c := range schema.Columns {
		t.arrays[c.ID] = arrays[i]
		t.rows = arrays[i].Len()
	}
	versions := array.NewUint64Builder(memory.DefaultAllocator)
	for i := range t.rows {
		versions.Append(uint64(i + 1))
	}
	t.arrays[block.ColumnCommit] = versions.NewArray()
	var columns []arrow.Array
	for _, c := range schema.KeyColumns() {
		columns = append(columns, arrays[c])
	}
	require.NoError(tb, key.Encode(t.keys, columns))
	for i := range t.rows {
		encoded := t.keys.At(i)
		end, err := key.Prefix(schema.KeyTypes(), encoded, len(schema.Sharding))
		require.NoError(tb, err)
		t.slices = append(t.slices, schema.SliceOf(encoded[:end]))
	}
	return t
}

// inRange reports whether the plan's ranges have row i.
func (t *testTable) inRange(p *Plan, i int) bool {
	ok := false
	for _, slice := range p.Slices {
		ok = ok || slice == t.slices[i]
	}
	if !ok || p.Ranges == nil {
		return ok
	}
	for _, r := range p.Ranges {
		encoded := t.keys.At(i)
		if (r.Slice == -1 || r.Slice == t.slices[i]) && bytes.Compare(r.Low, encoded) <= 0 && (r.High == nil || bytes.Compare(encoded, r.High) < 0) {
			return true
		}
	}
	return false
}

// mask evaluates a filter in pieces of at most piece rows, which begin at odd
// offsets of the arrays.
func (t *testTable) mask(f run.Filter, piece int) []bool {
	keep := make([]bool, t.rows)
	for i := range keep {
		keep[i] = true
	}
	if f == nil {
		return keep
	}
	for from := 0; from < t.rows; from += piece {
		to := min(from+piece, t.rows)
		columns := make([]arrow.Array, len(f.Columns()))
		for i, id := range f.Columns() {
			columns[i] = array.NewSlice(t.arrays[id], int64(from), int64(to))
			defer columns[i].Release()
		}
		f.Mask(columns, to-from, keep[from:to])
		t.requireParts(f, from, to, keep[from:to])
	}
	return keep
}

// requireParts expects of a filter's parts, one after the other, what the whole
// says.
func (t *testTable) requireParts(f run.Filter, from, to int, want []bool) {
	parts := f.(interface{ Parts() []run.Filter }).Parts()
	keep := make([]bool, to-from)
	for i := range keep {
		keep[i] = true
	}
	for _, part := range parts {
		var columns []arrow.Array
		for _, id := range part.Columns() {
			columns = append(columns, array.NewSlice(t.arrays[id], int64(from), int64(to)))
		}
		part.Mask(columns, to-from, keep)
		for _, column := range columns {
			column.Release()
		}
	}
	if !slices.Equal(want, keep) {
		panic(fmt.Sprintf("parts of a filter say %v, the whole %v", keep, want))
	}
}

// scan is the rows that a scan by the plan returns.
func (t *testTable) scan(p *Plan) []int {
	found := []int{}
	if p.Empty() {
		return found
	}
	keep := t.mask(p.Filter(), 7)
	for i := range keep {
		if keep[i] && t.inRange(p, i) {
			found = append(found, i)
		}
	}
	return found
}

// parseType reads a type as the scripts write it.
func parseType(text string) (arrow.DataType, error) {
	name, arguments, _ := strings.Cut(strings.TrimRight(text, ")]"), "(")
	if arguments == "" {
		name, arguments, _ = strings.Cut(name, "[")
	}
	parts := strings.Split(arguments, ",")
	number := func(i int) int32 {
		n, err := strconv.Atoi(parts[i])
		if err != nil {
			panic(err)
		}
		return int32(n)
	}
	unit := map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}[parts[0]]
	switch name {
	case "timestamp":
		dt := &arrow.TimestampType{Unit: unit}
		if len(parts) > 1 {
			dt.TimeZone = parts[1]
		}
		return dt, nil
	case "duration":
		return &arrow.DurationType{Unit: unit}, nil
	case "time32":
		return &arrow.Time32Type{Unit: unit}, nil
	case "time64":
		return &arrow.Time64Type{Unit: unit}, nil
	case "decimal32":
		return &arrow.Decimal32Type{Precision: number(0), Scale: number(1)}, nil
	case "decimal64":
		return &arrow.Decimal64Type{Precision: number(0), Scale: number(1)}, nil
	case "decimal128":
		return &arrow.Decimal128Type{Precision: number(0), Scale: number(1)}, nil
	case "decimal256":
		return &arrow.Decimal256Type{Precision: number(0), Scale: number(1)}, nil
	case "fixed":
		return &arrow.FixedSizeBinaryType{ByteWidth: int(number(0))}, nil
	case "list":
		return arrow.ListOf(arrow.PrimitiveTypes.Int64), nil
	case "dictionary":
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, nil
	}
	for _, dt := range []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, arrow.FixedWidthTypes.MonthInterval,
	} {
		if dt.Name() == name {
			return dt, nil
		}
	}
	return nil, fmt.Errorf("no type %q", text)
}

// appendText appends JSON as a value of the builder's type; binary is base64.
func appendText(b array.Builder, value jsontext.Value) error {
	if value.Kind() == 'n' {
		b.AppendNull()
		return nil
	}
	text := string(value)
	if value.Kind() == '"' {
		text = unquote(value)
	}
	return b.AppendValueFromString(text)
}

// parseTable reads a script's table: lines `column type [shard|sort]`, then rows
// as JSON lists.
func parseTable(tb testing.TB, input string, slices int) (*testTable, []string) {
	var names, kinds, rows []string
	var types []arrow.DataType
	for _, line := range strings.Split(strings.TrimSpace(input), "\n") {
		if strings.HasPrefix(line, "[") {
			rows = append(rows, line)
			continue
		}
		words := append(strings.Fields(line), "")
		dt, err := parseType(words[1])
		require.NoError(tb, err)
		names, types, kinds = append(names, words[0]), append(types, dt), append(kinds, words[2])
	}
	schema := newTestSchema(names, types, kinds, slices)
	builders := make([]array.Builder, len(names))
	for i, c := range schema.Columns {
		builders[i] = array.NewBuilder(memory.DefaultAllocator, c.Canonical)
	}
	for _, row := range rows {
		values, err := listOf([]byte(row), "row")
		require.NoError(tb, err)
		require.Len(tb, values, len(names), row)
		for i, value := range values {
			require.NoError(tb, appendText(builders[i], value), row)
		}
	}
	arrays := make([]arrow.Array, len(names))
	for i, b := range builders {
		arrays[i] = b.NewArray()
	}
	return newTestTable(tb, schema, arrays), rows
}
