package pushdown

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/run"
)

var _ run.Filter = (*filter)(nil)

// TestOneFilterServesManyGoroutines: scans of several slices share a filter.
func TestOneFilterServesManyGoroutines(t *testing.T) {
	table := everyType(t)
	p := planOf(t, table.schema, `[[["int32",">",0],["utf8","!=","a"]],[["float64","in",[0,1,"NaN"]]],
		[[["int8","bool"],"not in",[[1,true],[null,false]]],["decimal128(10,2)","<",5]],[["binary","in",[{"base64":"/w=="},{"base64":""}]]]]`)
	want := table.mask(p.Filter(), 1000)
	f := p.Filter()
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for piece := range 20 {
				if got := table.mask(f, piece+1); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("pieces of %d rows: %v, not %v", piece+1, got, want)
				}
				f.Prune(table.zonesOfRows(0, table.rows))
			}
		}()
	}
	wait.Wait()
}

// TestMaskOnlyClears: rows that are out already stay out.
func TestMaskOnlyClears(t *testing.T) {
	table := everyType(t)
	m := &maker{Rand: rand.New(rand.NewPCG(6, 6)), schema: table.schema}
	for _, c := range table.schema.Columns {
		m.pools = append(m.pools, m.pool(c.Canonical))
	}
	for range 500 {
		text, _ := m.where()
		e, err := ParseWhere([]byte(text), table.schema)
		require.NoError(t, err)
		f := newFilter(e)
		full := table.mask(f, 1000)
		columns := make([]arrow.Array, len(f.Columns()))
		for i, id := range f.Columns() {
			columns[i] = table.arrays[id]
		}
		keep := make([]bool, table.rows)
		for i := range keep {
			keep[i] = m.IntN(2) == 0
		}
		before := append([]bool(nil), keep...)
		f.Mask(columns, table.rows, keep)
		for i := range keep {
			require.Equal(t, before[i] && full[i], keep[i], text)
		}
	}
}

func ExampleBuild() {
	schema := newTestSchema([]string{"device", "ts", "fare"},
		[]arrow.DataType{arrow.BinaryTypes.String, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, arrow.PrimitiveTypes.Float64},
		[]string{"shard", "sort", ""}, 16)
	where := `[["device", "=", "d7"], ["ts", ">=", "2026-01-01T00:00:00Z"], ["ts", "<", "2026-02-01"], ["fare", ">", 10]]`
	e, err := ParseWhere([]byte(where), schema)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := Build(schema, e)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Access, "in", len(plan.Slices), "of", plan.Of, "slices,", len(plan.Ranges), "range")
	fmt.Println("still to evaluate:", String(plan.Residual))
	// Output:
	// range in 1 of 16 slices, 1 range
	// still to evaluate: fare > 10
}

// BenchmarkMask measures the kernels, which use unsafe for their speed, on
// blocks of 2,048 rows: the figure is bytes of one-byte masks, so rows.
func BenchmarkMask(b *testing.B) {
	const rows = 2048
	r := rand.New(rand.NewPCG(1, 1))
	names := []string{"k", "int64", "int32", "float64", "decimal128(12,2)", "utf8"}
	kinds := []string{"shard", "", "", "", "", ""}
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64}
	for _, name := range names[1:] {
		dt, err := parseType(name)
		require.NoError(b, err)
		types = append(types, dt)
	}
	schema := newTestSchema(names, types, kinds, 4)
	arrays := make([]arrow.Array, len(names))
	for i, c := range schema.Columns {
		cells := make([]cell, rows)
		for row := range cells {
			n := r.Int64N(10_000)
			cells[row] = cell{whole: big.NewInt(n), float: float64(n) / 100, text: fmt.Sprintf("name-%d", n)}
		}
		arrays[i] = newCells(c.Canonical, cells)
	}
	list := "[" + numbers(1000)[1:]
	for _, bench := range []struct{ name, where string }{
		{"int64 range", `[["int64",">=",1000],["int64","<",9000]]`},
		{"int32 equal", `[["int32","=",5000]]`},
		{"int64 in 1000", `[["int64","in",` + list + `]]`},
		{"float64 range", `[["float64","between",[10,90]]]`},
		{"decimal128 range", `[["decimal128(12,2)","between",[10,90]]]`},
		{"decimal128 in 1000", `[["decimal128(12,2)","in",` + list + `]]`},
		{"utf8 equal", `[["utf8","=","name-5000"]]`},
		{"utf8 prefix", `[["utf8","starts_with","name-5"]]`},
		{"or of two columns", `[[["int64","<",5000]],[["float64",">",50]]]`},
		{"rows in", `[[["int64","utf8"],"in",[[1,"name-1"],[2,"name-2"]]]]`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			e, err := ParseWhere([]byte(bench.where), schema)
			require.NoError(b, err)
			f := newFilter(e)
			columns := make([]arrow.Array, len(f.Columns()))
			for i, id := range f.Columns() {
				at, _ := schema.ColumnByID(id)
				columns[i] = array.NewSlice(arrays[at], 0, rows)
			}
			keep := make([]bool, rows)
			b.SetBytes(rows)
			for b.Loop() {
				for i := range keep {
					keep[i] = true
				}
				f.Mask(columns, rows, keep)
			}
		})
	}
}
