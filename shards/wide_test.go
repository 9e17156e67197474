package shards

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

// wide is a table of many columns, of all sizes that the tests' types have, and
// what should be in it.
type wide struct {
	*bed
	table   *Table
	columns int // beside the key
	content map[int64]values
}

func (b *bed) wide(columns int) *wide {
	var fields strings.Builder
	fields.WriteString("k:int64")
	for i := range columns {
		fmt.Fprintf(&fields, " c%d:%s", i, []string{"int64", "float64", "string", "int32", "int64"}[i%5])
	}
	return &wide{b, b.create("wide", fields.String(), "k", "", 2), columns, map[int64]values{}}
}

// row is made of numbers that look random; every eleventh value is null, and some
// columns are null in all rows or have one value.
func (w *wide) row(k, version int64) values {
	row := values{k}
	for i := range w.columns {
		n := int64(uint64(k*7919+version*104729+int64(i)*1299709) * 0x9e3779b97f4a7c15 >> 8)
		var v any
		switch {
		case n%11 == 0, i%97 == 5:
			v = nil
		case i%97 == 6:
			v = []any{int64(1), 0.5, "one", int64(7), int64(2)}[i%5]
		case i%5 == 1:
			v = float64(n) / 1e3
		case i%5 == 2:
			v = fmt.Sprintf("text %d", n%100_000)
		case i%5 == 3:
			v = n % 1000
		default:
			v = n
		}
		row = append(row, v)
	}
	return row
}

func (w *wide) upsert(from, to, step, version int64) {
	var rows []values
	for k := from; k < to; k += step {
		rows = append(rows, w.row(k, version))
		w.content[k] = rows[len(rows)-1]
	}
	w.put(w.table, rows...)
}

func (w *wide) remove(from, to, step int64) {
	var rows []values
	for k := from; k < to; k += step {
		rows = append(rows, values{k})
		delete(w.content, k)
	}
	w.delete(w.table, rows...)
}

// read scans some columns, by their places, with nothing in the caches, and holds
// them against what should be there.
func (w *wide) read(places ...int) Counters {
	w.t.Helper()
	w.reopen()
	w.table = w.bed.table("wide")
	s := w.snapshot(w.table)
	defer s.Release()
	r := ScanRequest{Limit: -1}
	ids := s.Schema().IDs()
	for _, at := range append([]int{0}, places...) {
		r.Columns = append(r.Columns, ids[at])
	}
	n := 0
	for _, row := range w.scan(s, r) {
		is := w.content[row[0].(int64)]
		require.NotNil(w.t, is, row[0])
		for i, at := range places {
			var should any
			if at < len(is) {
				should = is[at]
			}
			require.Equal(w.t, should, row[1+i], "row %d, column %d", row[0], at)
		}
		n++
	}
	require.Equal(w.t, len(w.content), n)
	w.reopen()
	w.table = w.bed.table("wide")
	return w.count(r.Columns[1:])
}

// count scans columns.
func (w *wide) count(columns []uint32) Counters {
	s := w.snapshot(w.table)
	defer s.Release()
	scan, err := s.Scan(context.Background(), ScanRequest{Columns: columns, Limit: -1})
	require.NoError(w.t, err)
	defer scan.Close()
	for b, err := scan.Next(); err == nil; b, err = scan.Next() {
		b.Release()
	}
	return scan.Counters()
}

// Reading 3 columns of many reads at most a twentieth of the bytes, index and
// zone maps included, wherever the three are, also after rows were replaced and
// deleted, columns added, and all of it folded.
func TestThreeOfManyColumnsReadFewBytes(t *testing.T) {
	for _, c := range []struct {
		columns int
		rows    int64
	}{{300, 4000}, {3000, 500}} {
		t.Run(fmt.Sprint(c.columns), func(t *testing.T) {
			w := newBed(t).wide(c.columns)
			w.upsert(0, c.rows, 1, 1)
			var every []int
			for i := 1; i <= c.columns; i++ {
				every = append(every, i)
			}
			triples := [][]int{{1, c.columns / 2, c.columns}, {2, 3, 4}, {3, 98, 203}}
			check := func(state string, share float64) {
				t.Helper()
				whole := w.read(every...)
				for _, places := range triples {
					some := w.read(places...)
					require.LessOrEqual(t, float64(some.BytesRead), share*float64(whole.BytesRead), "%s: columns %v", state, places)
				}
				require.Empty(t, w.doctor())
			}
			check("loaded", 0.05)

			w.asRun(func() { w.upsert(0, c.rows, 3, 2) })
			check("a third replaced", 0.06) // where runs overlap, the keys are read
			w.remove(1, c.rows, 50)
			require.NoError(t, w.table.Fold(context.Background()))
			check("folded", 0.05)

			var added []arrow.Field
			for i := range 3 {
				added = append(added, arrow.Field{Name: fmt.Sprint("later", i), Type: arrow.PrimitiveTypes.Int64, Nullable: true})
			}
			_, err := w.table.Alter(context.Background(), Change{AddColumns: arrow.NewSchema(added, nil)})
			require.NoError(t, err)
			triples = append(triples, []int{1, c.columns / 2, c.columns + 2})
			w.read(triples[3]...)
			for k := int64(0); k < c.rows; k += 2 {
				w.content[k] = append(w.row(k, 3), k, nil, k+1)
			}
			var rows []values
			for k := int64(0); k < c.rows; k += 2 {
				rows = append(rows, w.content[k])
			}
			w.put(w.table, rows...)
			every = append(every, c.columns+1, c.columns+2, c.columns+3)
			require.NoError(t, w.table.Fold(context.Background()))
			check("columns filled", 0.05)
		})
	}
}
