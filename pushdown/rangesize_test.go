package pushdown

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
)

// TestRangesStaySmall: a small query cannot ask for much memory by the product
// of its lists, and what is longer than any key is not looked up.
func TestRangesStaySmall(t *testing.T) {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	schema := newTestSchema([]string{"k", "s", "v"}, []arrow.DataType{text, text, number}, []string{"shard", "sort", ""}, 16)
	texts := func(n, length int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("%q", fmt.Sprintf("%06d", i)+strings.Repeat("x", length-6))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	long := strings.Repeat("y", 500_000)
	for _, c := range []struct {
		where  string
		access Access
	}{
		{`[["k","in",` + texts(8, 50_000) + `],["s","in",` + texts(10_000, 20) + `]]`, None},
		{`[["k","in",` + texts(20_000, 20) + `],["s",">","` + long + `"]]`, RangeAccess},
		{`[["k","=","` + long + `"]]`, None},
		{`[["k","in",` + texts(900, 500) + `],["s","in",` + texts(900, 500) + `]]`, RangeAccess},
		{`[["k","in",` + texts(316, 900) + `],["s","in",` + texts(316, 100) + `]]`, RangeAccess},
	} {
		p := planOf(t, schema, c.where)
		require.Equal(t, c.access, p.Access, "%.60s", c.where)
		size := 0
		for _, r := range p.Ranges {
			size += len(r.Low) + len(r.High)
			require.LessOrEqual(t, max(len(r.Low), len(r.High)), limits.KeyBytes+1)
		}
		require.LessOrEqual(t, size, 2*maxRangeBytes, "%.60s", c.where)
		if p.Access != None {
			checkPlan(t, p, c.where[:60])
		}
	}
}

// TestLongKeysAreNotFound: a key that no row can have gives no row.
func TestLongKeysAreNotFound(t *testing.T) {
	text := arrow.BinaryTypes.String
	schema := newTestSchema([]string{"k", "s"}, []arrow.DataType{text, text}, []string{"shard", "sort"}, 16)
	long := strings.Repeat("y", 2000)
	keys, err := ParseKeys([]byte(`["`+long+`",["a","`+long+`"]]`), schema)
	require.NoError(t, err)
	require.True(t, BuildKeys(schema, keys, nil).Empty())
	after, err := ParseAfter([]byte(`["a","`+long+`"]`), schema)
	require.NoError(t, err)
	p := planOf(t, schema, `[["k","=","a"]]`)
	p.After(after, false)
	require.False(t, p.Empty(), "keys behind it are read")
}
