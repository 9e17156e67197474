package pushdown

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

// rowLists is a filter of so many lists of rows of the key, each with so many
// rows of different values.
func rowLists(lists, rows int, join string) string {
	text := make([]string, lists)
	for i := range text {
		list := make([]string, rows)
		for j := range list {
			list[j] = fmt.Sprintf("[%d,%d]", j%10, j/10)
		}
		text[i] = `[["k","s"],"in",[` + strings.Join(list, ",") + `]]`
	}
	return strings.Join(text, join)
}

// TestRowListsPlanInBoundedMemory: what the largest lists of rows that a query
// can hold take, parsed, planned and compiled.
func TestRowListsPlanInBoundedMemory(t *testing.T) {
	number := arrow.PrimitiveTypes.Int64
	schema := newTestSchema([]string{"k", "s"}, []arrow.DataType{number, number}, []string{"shard", "sort"}, 16)
	for name, where := range map[string]string{
		"one":       "[" + rowLists(1, 100_000, "") + "]",
		"two, both": "[" + rowLists(2, 50_000, ",") + "]",
		"two, any":  "[[" + rowLists(2, 50_000, "],[") + "]]",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			e, err := ParseWhere([]byte(where), schema)
			require.NoError(t, err)
			p, err := Build(schema, e)
			require.NoError(t, err)
			require.NotEmpty(t, p.Ranges)
			f := p.Filter()
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.Less(t, (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>20, int64(48), "MiB kept")
			require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(256), "MiB allocated")
			runtime.KeepAlive(p)
			runtime.KeepAlive(f)
		})
	}
	for _, where := range []string{
		"[" + rowLists(2, 50_001, ",") + "]",
		`[["k","in",[` + strings.Repeat("1,", 99_999) + `1]],["s","in",[` + strings.Repeat("1,", 99_999) + `1]],["k","in",[1]]]`,
	} {
		_, err := ParseWhere([]byte(where), schema)
		require.ErrorContains(t, err, "IN_LIMIT")
		require.ErrorContains(t, err, "200000 values together")
	}
}
