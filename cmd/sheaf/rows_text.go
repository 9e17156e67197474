package main

import (
	"bufio"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// csvWriter writes RFC 4180 CSV. Null and the empty string stay apart: null is
// the text given (by default nothing at all), an empty string is "".
type csvWriter struct {
	out  *bufio.Writer
	null string
}

func newCSVWriter(out io.Writer, schema *arrow.Schema, null string) *csvWriter {
	w := &csvWriter{out: bufio.NewWriterSize(out, bufferBytes), null: null}
	for i, field := range schema.Fields() {
		w.field(i, field.Name, false)
	}
	w.out.WriteByte('\n')
	return w
}

func (w *csvWriter) write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		for i, column := range batch.Columns() {
			text, null := cell(column, row)
			w.field(i, text, null)
		}
		if err := w.out.WriteByte('\n'); err != nil { // bufio keeps its first error
			return err
		}
	}
	return nil
}

func (w *csvWriter) field(i int, text string, null bool) {
	if i > 0 {
		w.out.WriteByte(',')
	}
	switch {
	case null:
		w.out.WriteString(w.null)
	case text == "" || text == w.null || strings.ContainsAny(text, "\",\r\n") || text[0] == ' ' || text[len(text)-1] == ' ':
		w.out.WriteByte('"')
		w.out.WriteString(strings.ReplaceAll(text, `"`, `""`))
		w.out.WriteByte('"')
	default:
		w.out.WriteString(text)
	}
}

func (w *csvWriter) finish() error { return w.out.Flush() }

// jsonlWriter writes one JSON object a line, its fields in column order.
type jsonlWriter struct {
	out   *bufio.Writer
	names [][]byte // each as JSON with its colon
	line  []byte
}

func newJSONLWriter(out io.Writer, schema *arrow.Schema) *jsonlWriter {
	w := &jsonlWriter{out: bufio.NewWriterSize(out, bufferBytes)}
	for _, field := range schema.Fields() {
		w.names = append(w.names, append(appendString(nil, field.Name), ':'))
	}
	return w
}

func (w *jsonlWriter) write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		w.line = append(w.line[:0], '{')
		for i, column := range batch.Columns() {
			if i > 0 {
				w.line = append(w.line, ',')
			}
			w.line = appendJSON(append(w.line, w.names[i]...), column, row)
		}
		w.line = append(w.line, '}', '\n')
		if _, err := w.out.Write(w.line); err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonlWriter) finish() error { return w.out.Flush() }
