package pushdown

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// ParseWhere reads the JSON of a query's `where`: a list of conditions
// [column, operator, value] that must all hold, or a list of such lists of
// which one must. docs/filters.md describes it. The error is a *fault.Error.
func ParseWhere(where []byte, schema *shards.Schema) (Expr, error) {
	if err := checkSize(where); err != nil {
		return nil, err
	}
	items, err := listOf(where, "where")
	if err != nil {
		return nil, err
	}
	listed := limits.ListedValues
	parser := whereParser{schema: schema, left: &listed}
	groups := 0
	args := make([]Expr, len(items))
	for i, item := range items {
		parts, err := listOf(item, "a condition")
		if err != nil {
			return nil, invalid("`where` is a list of conditions [column, operator, value], or a list of such lists; item %d is %s",
				i, shownValue(item))
		}
		if isGroup(parts) {
			groups++
			args[i], err = parser.group(parts)
		} else {
			args[i], err = parser.condition(parts, item)
		}
		if err != nil {
			return nil, err
		}
	}
	switch groups {
	case 0:
		return And(args...), nil
	case len(items):
		return Or(args...), nil
	}
	return nil, invalid("`where` mixes conditions with lists of conditions: write a list of conditions, or a list of lists")
}

// isGroup tells a list of conditions from one condition: a condition has text,
// its operator, in the second place.
func isGroup(parts []jsontext.Value) bool {
	if len(parts) >= 2 && parts[1].Kind() == '"' {
		return false
	}
	for _, part := range parts {
		if part.Kind() != '[' {
			return false
		}
	}
	return true
}

type whereParser struct {
	schema *shards.Schema
	left   *int // values that lists may still hold
}

// count takes a list's values off what the lists of a filter may hold together:
// what is planned of a value is many times its text.
func (p whereParser) count(name string, elements, width int) error {
	if err := checkCount(name, elements); err != nil {
		return err
	}
	if *p.left -= elements * width; *p.left >= 0 {
		return nil
	}
	return fault.New(fault.ResourceExhausted, "IN_LIMIT", "with the list for column %q the lists of the filter have more than %d values together, each value of a row value counted: ask in several queries",
		clip(name), limits.ListedValues)
}

func (p whereParser) group(conditions []jsontext.Value) (Expr, error) {
	args := make([]Expr, len(conditions))
	for i, item := range conditions {
		parts, err := listOf(item, "a condition")
		if err != nil {
			return nil, err
		}
		if args[i], err = p.condition(parts, item); err != nil {
			return nil, err
		}
	}
	return And(args...), nil
}

func (p whereParser) condition(parts []jsontext.Value, whole jsontext.Value) (Expr, error) {
	if len(parts) != 2 && len(parts) != 3 || parts[1].Kind() != '"' {
		return nil, invalid("a condition is [column, operator, value], not %s", shownValue(whole))
	}
	op := unquote(parts[1])
	if op == "is null" || op == "is not null" {
		return p.nullTest(parts, op == "is not null")
	}
	if len(parts) == 2 {
		if !knownOperator(op) {
			return nil, unknownOperator(op)
		}
		return nil, invalid("condition %s lacks its value", shownValue(whole))
	}
	switch parts[0].Kind() {
	case '"':
		return p.single(unquote(parts[0]), op, parts[2])
	case '[':
		return p.row(parts[0], op, parts[2])
	}
	return nil, invalid("a condition begins with a column's name or a list of names, not %s", shownValue(parts[0]))
}

func (p whereParser) nullTest(parts []jsontext.Value, except bool) (Expr, error) {
	if parts[0].Kind() != '"' {
		return nil, invalid("the null tests take one column's name, not %s", shownValue(parts[0]))
	}
	if len(parts) == 3 && parts[2].Kind() != 'n' {
		return nil, invalid("the null test of column %q takes no value (or null), not %s", clip(unquote(parts[0])), shownValue(parts[2]))
	}
	e, err := IsNull(p.schema, unquote(parts[0]))
	if err == nil && except {
		e = Not(e)
	}
	return e, err
}

// comparisons are the operators that take one value.
var comparisons = map[string]Op{
	"=": Equal, "==": Equal, "!=": NotEqual, "<": Less, "<=": LessEqual, ">": Greater, ">=": GreaterEqual,
}

func knownOperator(op string) bool {
	switch op {
	case "in", "not in", "between", "starts_with", "is null", "is not null":
		return true
	}
	_, known := comparisons[op]
	return known
}

func unknownOperator(op string) error {
	return fault.Invalid("OPERATOR_UNKNOWN", "there is no operator %q; the operators are =, ==, !=, <, <=, >, >=, in, not in, between, starts_with, is null, is not null", clip(op))
}

// single is a condition on one column.
func (p whereParser) single(name, op string, value jsontext.Value) (Expr, error) {
	if compare, ok := comparisons[op]; ok {
		literal, err := parseLiteral(name, value)
		if err != nil {
			return nil, err
		}
		return Compare(p.schema, name, compare, literal)
	}
	switch op {
	case "starts_with":
		literal, err := parseLiteral(name, value)
		if err != nil {
			return nil, err
		}
		return StartsWith(p.schema, name, literal)
	case "in", "not in", "between":
	default:
		return nil, unknownOperator(op)
	}
	items, err := listOf(value, "")
	if err != nil {
		return nil, invalid("`%s` of column %q takes a list, not %s", op, clip(name), shownValue(value))
	}
	if err := p.count(name, len(items), 1); err != nil {
		return nil, err
	}
	literals := make([]Literal, len(items))
	for i, item := range items {
		if literals[i], err = parseLiteral(name, item); err != nil {
			return nil, err
		}
	}
	if op == "between" {
		if len(literals) != 2 {
			return nil, invalid("`between` of column %q takes [low, high], not %d values", clip(name), len(literals))
		}
		return Between(p.schema, name, literals[0], literals[1])
	}
	e, err := In(p.schema, name, literals)
	if err == nil && op == "not in" {
		e = Not(e)
	}
	return e, err
}

// row is a condition on several columns as a row value.
func (p whereParser) row(columns jsontext.Value, op string, value jsontext.Value) (Expr, error) {
	items, err := listOf(columns, "")
	if err != nil {
		return nil, err
	}
	names := make([]string, len(items))
	for i, item := range items {
		if item.Kind() != '"' {
			return nil, invalid("a row value is a list of column names, not %s", shownValue(columns))
		}
		names[i] = unquote(item)
	}
	if compare, ok := comparisons[op]; ok {
		values, err := rowValues(names, value)
		if err != nil {
			return nil, err
		}
		return CompareRow(p.schema, names, compare, values)
	}
	switch op {
	case "in", "not in", "between":
	case "starts_with":
		return nil, invalid("starts_with takes one column, not a list of columns")
	default:
		return nil, unknownOperator(op)
	}
	items, err = listOf(value, "")
	if err != nil {
		return nil, invalid("`%s` of a row value takes a list of lists, not %s", op, shownValue(value))
	}
	if len(names) > 0 {
		if err := p.count(names[0], len(items), len(names)); err != nil {
			return nil, err
		}
	}
	rows := make([][]Literal, len(items))
	for i, item := range items {
		if rows[i], err = rowValues(names, item); err != nil {
			return nil, err
		}
	}
	if op == "between" {
		if len(rows) != 2 {
			return nil, invalid("`between` of a row value takes [low, high], not %d values", len(rows))
		}
		low, err := CompareRow(p.schema, names, GreaterEqual, rows[0])
		if err != nil {
			return nil, err
		}
		high, err := CompareRow(p.schema, names, LessEqual, rows[1])
		if err != nil {
			return nil, err
		}
		return And(low, high), nil
	}
	e, err := InRows(p.schema, names, rows)
	if err == nil && op == "not in" {
		e = Not(e)
	}
	return e, err
}

func rowValues(names []string, value jsontext.Value) ([]Literal, error) {
	items, err := listOf(value, "")
	if err != nil || len(items) != len(names) {
		return nil, invalid("a row value of %d columns is compared with %s, not a list of as many values", len(names), shownValue(value))
	}
	values := make([]Literal, len(items))
	for i, item := range items {
		if values[i], err = parseLiteral(names[i], item); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// parseLiteral reads a JSON value as a literal for the column, which errors name.
func parseLiteral(name string, value jsontext.Value) (Literal, error) {
	switch value.Kind() {
	case 'n':
		return Null(), nil
	case 't', 'f':
		return Bool(value.Kind() == 't'), nil
	case '"':
		return Text(unquote(value)), nil
	case '0':
		if literal, ok := Number(string(value)); ok {
			return literal, nil
		}
	case '{':
		return parseBase64(name, value)
	}
	return Literal{}, fault.Invalid("LITERAL_TYPE", "column %q is compared with %s: a value is a number, text, true, false, null or {\"base64\": \"…\"}",
		clip(name), shownValue(value))
}

func parseBase64(name string, value jsontext.Value) (Literal, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(value))
	var encoded string
	found := 0
	if _, err := decoder.ReadToken(); err != nil {
		return Literal{}, malformed(err)
	}
	for decoder.PeekKind() == '"' {
		field, err := decoder.ReadToken()
		if err != nil {
			return Literal{}, malformed(err)
		}
		known := field.String() == "base64"
		item, err := decoder.ReadValue()
		if err != nil {
			return Literal{}, malformed(err)
		}
		if known && item.Kind() == '"' {
			encoded = unquote(item)
			found++
		} else {
			found = -1
			break
		}
	}
	if found != 1 {
		return Literal{}, fault.Invalid("LITERAL_INVALID", "column %q is compared with %s; the only object that is a value is {\"base64\": \"…\"}", clip(name), shownValue(value))
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Literal{}, fault.Invalid("LITERAL_INVALID", "column %q is compared with %s, which is no valid base64 (with padding)", clip(name), shownValue(value))
	}
	return Bytes(decoded), nil
}

// decoders are kept: a filter may hold 100,000 lists.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(bytes.NewBuffer(nil)) }}

// listOf is the values of a JSON list, which alias raw. The whole input must be
// one list.
func listOf(raw []byte, what string) ([]jsontext.Value, error) {
	decoder := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(decoder)
	decoder.Reset(bytes.NewBuffer(raw)) // of a Buffer it reads in place
	if kind := decoder.PeekKind(); kind != '[' {
		if _, err := decoder.ReadValue(); err != nil {
			return nil, malformed(err)
		}
		return nil, invalid("%s is a list, not %s", what, shownValue(bytes.TrimSpace(raw)))
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	var items []jsontext.Value
	for decoder.PeekKind() != ']' {
		item, err := decoder.ReadValue()
		if err != nil {
			return nil, malformed(err)
		}
		items = append(items, item)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, malformed(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, invalid("%s goes on behind its end", what)
	}
	return items, nil
}

// checkSize bounds length and nesting before anything looks inside.
func checkSize(raw []byte) error {
	if len(raw) > limits.QueryBytes {
		return fault.New(fault.ResourceExhausted, "QUERY_TOO_LARGE", "the filter has %d bytes; the limit is %d", len(raw), limits.QueryBytes)
	}
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > limits.FilterDepth {
				return fault.New(fault.ResourceExhausted, "DEPTH_LIMIT", "the filter is nested deeper than %d levels", limits.FilterDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

func unquote(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, value) // the decoder has checked it
	return string(text)
}

// shownValue is JSON for a message.
func shownValue(value []byte) string { return clip(string(value)) }

func invalid(format string, args ...any) error {
	return fault.Invalid("FILTER_INVALID", format, args...)
}

func malformed(err error) error {
	syntax := (*jsontext.SyntacticError)(nil)
	switch {
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return fault.Invalid("FIELD_REPEATED", "field %q of the filter is given twice", clip(syntax.JSONPointer.LastToken()))
	case errors.As(err, &syntax) && syntax.Err != nil:
		return invalid("the filter is not valid JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	}
	return invalid("the filter is not valid JSON: %v", err)
}
