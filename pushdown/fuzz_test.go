package pushdown

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// everyType is a table with a column of every type that filters compare, named
// after the type; the first key columns are an integer, a string and a decimal.
func everyType(tb testing.TB) *testTable {
	m := &maker{Rand: rand.New(rand.NewPCG(9, 9))}
	names, kinds := []string{"k", "s", "m"}, []string{"shard", "sort", "sort"}
	types := []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String, &arrow.Decimal128Type{Precision: 10, Scale: 2}}
	for _, name := range otherTypes {
		dt, err := parseType(name)
		require.NoError(tb, err)
		names, types, kinds = append(names, name), append(types, dt), append(kinds, "")
	}
	schema := newTestSchema(names, types, kinds, 8)
	const rows = 24
	arrays := make([]arrow.Array, len(names))
	for i, c := range schema.Columns {
		pool := m.pool(c.Canonical)
		cells := make([]cell, rows)
		for row := range cells {
			cells[row] = pool[m.IntN(len(pool))]
			if kinds[i] == "" && m.IntN(4) == 0 {
				cells[row] = cell{null: true}
			}
			if i == 0 {
				cells[row].whole.SetInt64(int64(row))
			}
		}
		arrays[i] = newCells(c.Canonical, cells)
	}
	return newTestTable(tb, schema, arrays)
}

// FuzzParseWhere: no input panics; every error is the user's; what parses is
// planned and evaluated, and no row is both in a filter and in its NOT.
func FuzzParseWhere(f *testing.F) {
	table := everyType(f)
	for _, seed := range []string{
		`[]`, `[[]]`, `[["k","=",1]]`, `[[["k","=",1],["s","starts_with","a"]],[["float64","!=","NaN"]]]`,
		`[[["k","s","m"],"in",[[1,"a","0.5"],[2,null,1e30]]]]`, `[["date32","between",["2024-01-01","2024-02-29T10:00"]]]`,
		`[["timestamp[us,UTC]",">=","2024-01-01T00:00:00+02:00"]]`, `[["duration[ms]","<","-P1DT2H3.5S"]]`,
		`[["binary","not in",[{"base64":"/w=="},null]]]`, `[["fixed(3)","starts_with",{"base64":"/w=="}]]`,
		`[["_sheaf_commit",">",3],["null","is null"],["bool","=","true"],["float16","<",65520]]`,
		`[[["k","float32"],"<=",[1,"-Infinity"]]]`, `[["decimal256(76,20)","=",1e-20]]`, `[["time64[ns]",">","23:59:59.999999999"]]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, where []byte) {
		e, err := ParseWhere(where, table.schema)
		if err != nil {
			require.NotNil(t, fault.Of(err), "%v", err)
			return
		}
		var found [2][]int
		for i, e := range []Expr{e, Not(e)} {
			p, err := Build(table.schema, e)
			require.NoError(t, err)
			checkPlan(t, p, String(e))
			found[i] = table.scan(p)
			if filter := p.Filter(); filter != nil && filter.Prune(table.zonesOfRows(0, table.rows)) {
				require.Empty(t, found[i])
			}
		}
		for _, row := range found[0] {
			require.False(t, slices.Contains(found[1], row), "row %d is in %s and in its NOT", row, where)
		}
	})
}

// FuzzParseKeys: no input panics, and what parses finds the rows of its keys.
func FuzzParseKeys(f *testing.F) {
	table := everyType(f)
	f.Add([]byte(`[[1,"a","0.5"],[2],[3,"b"]]`))
	f.Add([]byte(`[1,"2"]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if after, err := ParseAfter(raw, table.schema); err == nil {
			p, err := Build(table.schema, nil)
			require.NoError(t, err)
			p.After(after, true)
			checkPlan(t, p, string(raw))
		} else {
			require.NotNil(t, fault.Of(err), "%v", err)
		}
		keys, err := ParseKeys(raw, table.schema)
		if err != nil {
			require.NotNil(t, fault.Of(err), "%v", err)
			return
		}
		p := BuildKeys(table.schema, keys, nil)
		checkPlan(t, p, string(raw))
		for i := range table.rows {
			want := slices.ContainsFunc(keys, func(k KeyPrefix) bool {
				encoded := table.keys.At(i)
				return len(encoded) >= len(k.Encoded) && string(encoded[:len(k.Encoded)]) == string(k.Encoded)
			})
			require.Equal(t, want, !p.Empty() && table.inRange(p, i))
		}
	})
}
