package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/text/width"

	"github.com/sheaf-db/sheaf/flight"
)

const (
	// sampleRows decide the widths of a table's columns; rows behind them are
	// written with these widths as they come.
	sampleRows = 1000
	// cellWidth bounds a column on a terminal, leastWidth what shrinking leaves.
	cellWidth  = 60
	leastWidth = 8
	gap        = "  "
	nullText   = "null"
)

// tableWriter prints aligned columns: names, types, a rule, rows.
type tableWriter struct {
	out     *bufio.Writer
	columns []tableColumn
	hidden  []string // names of columns that do not fit
	bound   int      // width of the terminal, 0 for none
	sample  [][]string
	printed bool
	rows    int64
}

type tableColumn struct {
	name, kind string
	right      bool // numbers
	width      int
}

func newTableWriter(out io.Writer, schema *arrow.Schema, bound int) *tableWriter {
	w := &tableWriter{out: bufio.NewWriterSize(out, bufferBytes), bound: bound}
	for _, field := range schema.Fields() {
		w.columns = append(w.columns, tableColumn{
			name: printable(field.Name), kind: flight.TypeText(field.Type), right: isNumber(field.Type)})
	}
	return w
}

func (w *tableWriter) write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		w.rows++
		line := make([]string, len(w.columns))
		for i := range w.columns {
			text, null := cell(batch.Column(i), row)
			if line[i] = printable(text); null {
				line[i] = nullText
			}
		}
		if w.printed {
			w.line(line)
		} else if w.sample = append(w.sample, line); len(w.sample) == sampleRows {
			w.printSample()
		}
	}
	return w.out.Flush()
}

func (w *tableWriter) finish() error {
	if !w.printed {
		w.printSample()
	}
	if len(w.hidden) > 0 {
		fmt.Fprintf(w.out, "%s not shown: %s (--columns, --wide or another --format shows them)\n",
			counted(len(w.hidden), "column"), strings.Join(w.hidden, ", "))
	}
	return w.out.Flush()
}

func (w *tableWriter) printSample() {
	w.printed = true
	for i := range w.columns {
		column := &w.columns[i]
		column.width = max(textWidth(column.name), textWidth(column.kind))
		for _, line := range w.sample {
			column.width = max(column.width, textWidth(line[i]))
		}
	}
	if w.bound > 0 {
		w.fit()
	}
	names, kinds, rules := make([]string, len(w.columns)), make([]string, len(w.columns)), make([]string, len(w.columns))
	for i, column := range w.columns {
		names[i], kinds[i], rules[i] = column.name, column.kind, strings.Repeat("─", column.width)
	}
	if len(w.columns) > 0 {
		w.line(names)
		w.line(kinds)
		w.line(rules)
	}
	for _, line := range w.sample {
		w.line(line)
	}
	w.sample = nil
}

// fit makes the table as wide as the terminal at most: first the widest columns
// shrink, then the last ones go.
func (w *tableWriter) fit() {
	total := func() int {
		sum := len(gap) * (len(w.columns) - 1)
		for _, column := range w.columns {
			sum += column.width
		}
		return sum
	}
	for i := range w.columns {
		w.columns[i].width = min(w.columns[i].width, cellWidth)
	}
	for total() > w.bound {
		widest := 0
		for i, column := range w.columns {
			if column.width > w.columns[widest].width {
				widest = i
			}
		}
		if w.columns[widest].width <= leastWidth {
			break
		}
		w.columns[widest].width--
	}
	for len(w.columns) > 1 && total() > w.bound {
		last := len(w.columns) - 1
		w.hidden = append([]string{w.columns[last].name}, w.hidden...)
		w.columns = w.columns[:last]
	}
}

func (w *tableWriter) line(cells []string) {
	if len(w.columns) == 0 {
		return
	}
	var line strings.Builder
	for i, column := range w.columns {
		if i > 0 {
			line.WriteString(gap)
		}
		text := cells[i]
		if w.bound > 0 {
			text = shorten(text, column.width)
		}
		padding := strings.Repeat(" ", max(0, column.width-textWidth(text)))
		if column.right {
			text = padding + text
		} else {
			text += padding
		}
		line.WriteString(text)
	}
	w.out.WriteString(strings.TrimRight(line.String(), " "))
	w.out.WriteByte('\n')
}

// printable shows control characters as escapes: stored text must not be able
// to drive the terminal.
func printable(text string) string {
	clean := true
	for _, r := range text {
		if !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			out.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		out.WriteString(quoted[1 : len(quoted)-1])
	}
	return out.String()
}

// shorten cuts text to a width in terminal cells, with … for what is missing.
func shorten(text string, bound int) string {
	if textWidth(text) <= bound {
		return text
	}
	used, cut := 0, 0
	for i, r := range text {
		if used += runeWidth(r); used > bound-1 {
			break
		}
		cut = i + utf8.RuneLen(r)
	}
	return text[:cut] + "…"
}

func textWidth(text string) int {
	cells := 0
	for _, r := range text {
		cells += runeWidth(r)
	}
	return cells
}

// runeWidth is how many terminal cells a character takes.
func runeWidth(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func isNumber(dt arrow.DataType) bool {
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		return isNumber(dt.ValueType)
	case *arrow.RunEndEncodedType:
		return isNumber(dt.Encoded())
	}
	return arrow.IsInteger(dt.ID()) || arrow.IsFloating(dt.ID()) || arrow.IsDecimal(dt.ID())
}
