package pushdown

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

func int64Schema(slices int) *shards.Schema {
	i := arrow.PrimitiveTypes.Int64
	return newTestSchema([]string{"p", "q", "s", "v"}, []arrow.DataType{i, i, i, i}, []string{"shard", "shard", "sort", ""}, slices)
}

func planOf(t *testing.T, schema *shards.Schema, where string) *Plan {
	t.Helper()
	e, err := ParseWhere([]byte(where), schema)
	require.NoError(t, err)
	p, err := Build(schema, e)
	require.NoError(t, err)
	return p
}

func numbers(n int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint(2 * i)
	}
	return "[" + strings.Join(texts, ",") + "]"
}

// TestProductsAreBounded: what would be too many ranges becomes wider ones, and
// what these do not say stays residual.
func TestProductsAreBounded(t *testing.T) {
	schema := int64Schema(16)
	for _, c := range []struct {
		where            string
		access           Access
		ranges, residual int // residual: how many conditions
	}{
		{`[["p","in",` + numbers(300) + `],["q","in",` + numbers(300) + `]]`, Shard, 90_000, 0},
		{`[["p","in",` + numbers(400) + `],["q","in",` + numbers(400) + `]]`, Full, 400, 1},
		{`[["p","in",` + numbers(2000) + `],["q","in",` + numbers(2000) + `]]`, Full, 1, 2},
		{`[["p","=",1],["q","=",1],["s","in",` + numbers(90_000) + `]]`, Point, 90_000, 0},
		{`[["p","in",[1,3]],["q","=",1],["s","in",` + numbers(90_000) + `]]`, RangeAccess, 2, 1},
		{`[["p","in",` + numbers(2000) + `]]`, Full, 1, 1},
		{`[["s","in",` + numbers(2000) + `]]`, Full, 1, 1},
	} {
		p := planOf(t, schema, c.where)
		r := p.Report("t", nil)
		require.Equal(t, c.access.String(), r.Access, "%.60s", c.where)
		require.Equal(t, c.ranges, r.Ranges, "%.60s", c.where)
		residual := 0
		if p.Residual != nil {
			residual = 1
			if all, ok := p.Residual.(*and); ok {
				residual = len(all.args)
			}
		}
		require.Equal(t, c.residual, residual, "%.60s", c.where)
		checkPlan(t, p, c.where[:60])
	}
}

func TestListsOfLimits(t *testing.T) {
	schema := int64Schema(4)
	values := make([]Literal, limits.InValues+1)
	for i := range values {
		values[i], _ = Number(fmt.Sprint(i))
	}
	_, err := In(schema, "v", values)
	require.True(t, fault.Is(err, "IN_LIMIT"), err)
	require.Contains(t, err.Error(), "100000")
	e, err := In(schema, "v", values[1:])
	require.NoError(t, err)
	require.Less(t, len(String(e)), 200)
	_, err = ParseWhere([]byte(strings.Repeat("[", 400_000)), schema)
	require.True(t, fault.Is(err, "DEPTH_LIMIT"), err)
	_, err = ParseWhere([]byte(`[["v","=",`+strings.Repeat("[", 101)+`]]`), schema)
	require.True(t, fault.Is(err, "DEPTH_LIMIT"), err)
	_, err = ParseWhere(make([]byte, limits.QueryBytes+1), schema)
	require.True(t, fault.Is(err, "QUERY_TOO_LARGE"), err)
}

// TestManyGroups: an OR of as many groups as a query can hold is planned and
// shortened in texts.
func TestManyGroups(t *testing.T) {
	schema := int64Schema(16)
	groups := make([]string, 20_000)
	for i := range groups {
		groups[i] = fmt.Sprintf(`[["p","=",%d],["q","=",1]]`, i)
	}
	p := planOf(t, schema, "["+strings.Join(groups, ",")+"]")
	require.Equal(t, Shard, p.Access)
	require.Len(t, p.Ranges, len(groups))
	require.Nil(t, p.Residual)
	require.Less(t, len(p.Report("t", nil).Pushed[0]), 2*maxText)
}

// TestEffortIsBounded: filters that are made to be hard are planned in little
// time, and stay right.
func TestEffortIsBounded(t *testing.T) {
	i := arrow.PrimitiveTypes.Int64
	names, types, kinds := []string{"k"}, []arrow.DataType{i}, []string{"shard"}
	for n := range 40 {
		names, types, kinds = append(names, fmt.Sprint("c", n)), append(types, i), append(kinds, "")
	}
	schema := newTestSchema(names, types, kinds, 4)
	one, _ := Number("1")
	for name, part := range map[string]func(n int) Expr{
		"pairs that exclude each other": func(n int) Expr {
			e, err := CompareRow(schema, []string{names[1+n%40], names[1+(n+1)%40]}, []Op{Less, Greater}[n%2], []Literal{one, one})
			require.NoError(t, err)
			return e
		},
		"long lists": func(n int) Expr {
			values := make([]Literal, 5000)
			for v := range values {
				values[v], _ = Number(fmt.Sprint(v + n))
			}
			e, err := In(schema, names[n%40], values)
			require.NoError(t, err)
			return e
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := make([]Expr, 300)
			for n := range args {
				args[n] = part(n)
			}
			for _, e := range []Expr{And(args...), Or(args...), And(Or(args[:150]...), Or(args[150:]...)), Not(And(args...))} {
				start := time.Now()
				p, err := Build(schema, e)
				require.NoError(t, err)
				p.Filter()
				require.Less(t, time.Since(start), 30*time.Second)
				checkPlan(t, p, name)
			}
		})
	}
}

func TestOnlySlices(t *testing.T) {
	schema := int64Schema(8)
	p := planOf(t, schema, `[["p","in",[1,2,3,4,5,6]],["q","=",1]]`)
	whole := p.Slices
	require.Greater(t, len(whole), 2)
	ranges := 0
	for _, slice := range whole {
		p := planOf(t, schema, `[["p","in",[1,2,3,4,5,6]],["q","=",1]]`)
		require.NoError(t, p.OnlySlices([]int{slice}))
		require.Equal(t, []int{slice}, p.Slices)
		ranges += len(p.Ranges)
		checkPlan(t, p, "slice")
	}
	require.Equal(t, 6, ranges)
	require.NoError(t, p.OnlySlices([]int{}))
	require.True(t, p.Empty())
	p = planOf(t, schema, `[]`)
	require.NoError(t, p.OnlySlices([]int{5, 3}))
	require.Equal(t, []int{3, 5}, p.Slices)
	require.True(t, fault.Is(p.OnlySlices([]int{8}), "SLICE_RANGE"))
	require.True(t, fault.Is(p.OnlySlices([]int{-1}), "SLICE_RANGE"))
}

func TestReportIsThePlanOfTheContract(t *testing.T) {
	schema := int64Schema(4)
	report := planOf(t, schema, `[["p","=",1],["q","=",2],["v",">",3]]`).Report("ns.t", []string{"v"})
	text, err := json.Marshal(report)
	require.NoError(t, err)
	slice := report.Slices[0]
	require.JSONEq(t, fmt.Sprintf(`{"table":"ns.t","access":"shard","slices":[%d],"of":4,"ranges":1,"residual":"v > 3","columns":["v"],
		"pushed":["p = 1","q = 2"]}`, slice), string(text))
	report.Analysis = &Analysis{RowsScanned: 5, RowsReturned: 1, BlocksRead: 2, BlocksPruned: 3, BytesRead: 100, Millis: 0.5}
	text, err = json.Marshal(report)
	require.NoError(t, err)
	require.Contains(t, string(text), `"rows_scanned":5,"rows_returned":1,"blocks_read":2,"blocks_pruned":3,"bytes_read":100,"ms":0.5`)
	text, err = json.Marshal(planOf(t, schema, `[["p","in",[]]]`).Report("t", nil))
	require.NoError(t, err)
	require.JSONEq(t, `{"table":"t","access":"none","slices":[],"of":4,"ranges":0,"residual":null,"columns":[],"pushed":["FALSE"]}`, string(text))
}

// TestTexts: an expression reads as SQL.
func TestTexts(t *testing.T) {
	schema := newTestSchema([]string{"k", "odd name", `q"t`, "x"},
		[]arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Float64},
		[]string{"shard", "", "", ""}, 4)
	for where, want := range map[string]string{
		`[["k","=","O'Brien"],["odd name","!=",5]]`:      `k = 'O''Brien' AND "odd name" != 5`,
		`[["q\"t","=",{"base64":"/2E="}]]`:               `"q""t" = X'FF61'`,
		`[[["x","<",1]],[["x","is null"]]]`:              `x < 1 OR x IS NULL`,
		`[["x","not in",[1,"NaN",null]]]`:                `x NOT IN (1, 'NaN', NULL)`,
		`[["x","between",[1,2]]]`:                        `x BETWEEN 1 AND 2`,
		`[[["k","x"],"not in",[["a",1]]]]`:               `(k, x) NOT IN (('a', 1))`,
		`[["k","starts_with","a"]]`:                      `starts_with(k, 'a')`,
		`[["x","in",[1,2,3,4,5,6,7,8,9,10,11]]]`:         `x IN (1, 2, 3, 4, 5, 6, 7, 8, … 3 more)`,
		`[["k","=","` + strings.Repeat("ü", 100) + `"]]`: `k = '` + strings.Repeat("ü", 40) + `…'`,
	} {
		e, err := ParseWhere([]byte(where), schema)
		require.NoError(t, err)
		require.Equal(t, want, String(e))
	}
	e, err := ParseWhere([]byte(`[["x","<",1],["k","<","a"],["k","starts_with","a"],["odd name","between",[1,2]]]`), schema)
	require.NoError(t, err)
	require.Equal(t, `NOT (x < 1) OR k >= 'a' OR NOT starts_with(k, 'a') OR "odd name" NOT BETWEEN 1 AND 2`, String(Not(e)))
}
