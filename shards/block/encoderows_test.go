package block

import (
	"bytes"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestEncodeRows: rows of longer columns give the bytes of columns cut to them.
func TestEncodeRows(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[
		{"n":1,"f":0.5,"b":true},{"n":null,"f":1.5,"b":null},{"n":3,"f":2,"b":false},{"n":900,"f":7.25,"b":true},
		{"n":5,"f":1e300,"b":null},{"n":null,"f":0,"b":true},{"n":7,"f":-1,"b":false},{"n":8,"f":8,"b":true}]`))
	if err != nil {
		t.Fatal(err)
	}
	defer batch.Release()
	ids := []uint32{3, 1, 2}
	rows := int(batch.NumRows())
	for lo := 0; lo <= rows; lo++ {
		for hi := lo; hi <= rows; hi++ {
			var cut []arrow.Array
			for _, column := range batch.Columns() {
				cut = append(cut, array.NewSlice(column, int64(lo), int64(hi)))
			}
			want, err := NewEncoder().Encode(nil, hi-lo, ids, cut)
			if err != nil {
				t.Fatal(err)
			}
			got, err := NewEncoder().EncodeRows(nil, lo, hi, ids, batch.Columns())
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("rows [%d, %d): %x, %v, not %x", lo, hi, got, err, want)
			}
			for _, a := range cut {
				a.Release()
			}
		}
	}
	for _, bounds := range [][2]int{{-1, 2}, {3, 2}, {0, rows + 1}} {
		if _, err := NewEncoder().EncodeRows(nil, bounds[0], bounds[1], ids, batch.Columns()); err == nil {
			t.Errorf("rows %v were encoded", bounds)
		}
	}
}
