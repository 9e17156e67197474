package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

// fields says how the value of each known field is read.
type fields map[string]func(jsontext.Value) error

// object reads one JSON object; what names it in errors ("query", "command").
func object(what string, body []byte, known fields) error {
	if err := bounded(what, body); err != nil {
		return err
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	if kind := decoder.PeekKind(); kind != '{' {
		if kind != 0 {
			return fault.Invalid("REQUEST_INVALID", "the %s is a JSON %s, not an object {…}", what, kindName(kind))
		}
		_, err := decoder.ReadToken()
		return malformed(what, err)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return malformed(what, err)
	}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return malformed(what, err)
		}
		name := token.String()
		value, err := decoder.ReadValue()
		if err != nil {
			return malformed(what, err)
		}
		read, ok := known[name]
		if !ok {
			return fault.Invalid("FIELD_UNKNOWN", "the %s has no field %q; its fields are %s",
				what, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if value.Kind() == 'n' {
			return fault.Invalid("FIELD_INVALID", "field %q of the %s is null; leave it out instead", name, what)
		}
		// The decoder reuses its buffer: what is kept must be a copy.
		if err := read(value.Clone()); err != nil {
			if bad := (*fieldError)(nil); errors.As(err, &bad) {
				return fault.Invalid("FIELD_INVALID", "field %q of the %s must be %s, not %s", name, what, bad.want, clip(value))
			}
			return err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return malformed(what, err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return fault.Invalid("REQUEST_INVALID", "the %s goes on behind its closing brace, at byte %d", what, decoder.InputOffset())
	}
	return nil
}

// bounded checks size, encoding and nesting before anything recurses.
func bounded(what string, body []byte) error {
	if len(body) > limits.QueryBytes {
		return fault.New(fault.ResourceExhausted, "QUERY_TOO_LARGE", "the %s has %d bytes; the limit is %d (1 MiB)", what, len(body), limits.QueryBytes)
	}
	if !utf8.Valid(body) {
		at := 0
		for r, size := utf8.DecodeRune(body); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(body[at:]) {
			at += size
		}
		return fault.Invalid("REQUEST_INVALID", "the %s is not valid UTF-8 at byte %d", what, at)
	}
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > limits.FilterDepth {
				return fault.New(fault.ResourceExhausted, "DEPTH_LIMIT", "the %s is nested deeper than %d levels at byte %d", what, limits.FilterDepth, i)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

// malformed words an error of the JSON decoder.
func malformed(what string, err error) error {
	syntax := (*jsontext.SyntacticError)(nil)
	switch {
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return fault.Invalid("FIELD_REPEATED", "field %q of the %s is given twice", syntax.JSONPointer.LastToken(), what)
	case errors.As(err, &syntax) && syntax.Err != nil:
		return fault.Invalid("REQUEST_INVALID", "the %s is not valid JSON at byte %d: %v", what, syntax.ByteOffset, syntax.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fault.Invalid("REQUEST_INVALID", "the %s ends in the middle of its JSON", what)
	}
	return fault.Invalid("REQUEST_INVALID", "the %s is not valid JSON: %v", what, err)
}

// fieldError says what a field must be; object adds name and value.
type fieldError struct{ want string }

func (e *fieldError) Error() string { return "must be " + e.want }

func must(format string, args ...any) error { return &fieldError{fmt.Sprintf(format, args...)} }

func text(to *string) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		if value.Kind() != '"' {
			return must("text")
		}
		raw, err := jsontext.AppendUnquote(nil, value)
		*to = string(raw)
		return err
	}
}

// filled reads text that is not empty.
func filled(to *string) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		if err := text(to)(value); err != nil {
			return err
		}
		if *to == "" {
			return must("text that is not empty")
		}
		return nil
	}
}

func flag(to *bool) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		if value.Kind() != 't' && value.Kind() != 'f' {
			return must("true or false")
		}
		*to = value.Kind() == 't'
		return nil
	}
}

func whole(to *int64, low, high int64) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		number, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || number < low || number > high {
			return must("a whole number from %d to %d", low, high)
		}
		*to = number
		return nil
	}
}

// raw keeps a value as it stands, if it is of one of the kinds.
func raw(to *jsontext.Value, kinds, want string) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		if !strings.ContainsRune(kinds, rune(value.Kind())) {
			return must("%s", want)
		}
		*to = value
		return nil
	}
}

// names reads a list of distinct texts; the result is never nil.
func names(to *[]string) func(jsontext.Value) error {
	return func(value jsontext.Value) error {
		*to = []string{}
		seen := map[string]bool{}
		return elements(value, "a list of column names", func(value jsontext.Value) error {
			var name string
			if text(&name)(value) != nil {
				return must("a list of column names")
			}
			if seen[name] {
				return must("a list that names %q once", name)
			}
			seen[name] = true
			*to = append(*to, name)
			return nil
		})
	}
}

func elements(value jsontext.Value, want string, each func(jsontext.Value) error) error {
	if value.Kind() != '[' {
		return must("%s", want)
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() != ']' {
		element, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		if err := each(element); err != nil {
			return err
		}
	}
	return nil
}

// unbuilt answers for a field of the contract that is not built.
func unbuilt(name string) func(jsontext.Value) error {
	return func(jsontext.Value) error {
		return fault.New(fault.Unimplemented, "NOT_IMPLEMENTED", "field %q is not implemented by this version", name)
	}
}

// missing is the error for a field that must be there.
func missing(what, name string) error {
	return fault.Invalid("FIELD_MISSING", "the %s lacks its field %q", what, name)
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '[':
		return "list"
	}
	return "value"
}

// clip shortens a value for an error message.
func clip(value jsontext.Value) string {
	const most = 80
	if len(value) <= most {
		return string(value)
	}
	cut := most
	for !utf8.RuneStart(value[cut]) {
		cut--
	}
	return string(value[:cut]) + "…"
}
