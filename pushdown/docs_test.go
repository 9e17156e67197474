package pushdown

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// TestDocs runs every filter of docs/filters.md on its table.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/filters.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```table\n")
	input, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	table, _ := parseTable(t, input, 16)
	ids, ok := table.schema.Column("id")
	require.True(t, ok)
	found := 0
	for _, line := range strings.Split(string(page), "\n") {
		where, rest, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | ")
		if !ok || !strings.HasPrefix(line, "| `[") {
			continue
		}
		found++
		t.Run(where, func(t *testing.T) {
			cells := strings.Split(rest, " |")
			e, err := ParseWhere([]byte(where), table.schema)
			if reason, isError := strings.CutPrefix(cells[0], "`"); isError {
				require.True(t, fault.Is(err, strings.TrimSuffix(reason, "`")), "%v", err)
				return
			}
			require.NoError(t, err)
			p, err := Build(table.schema, e)
			require.NoError(t, err)
			if len(cells) > 3 {
				residual := ""
				if p.Residual != nil {
					residual = "`" + String(p.Residual) + "`"
				}
				report := p.Report("t", nil)
				require.Equal(t, cells[:3], []string{report.Access, fmt.Sprintf(" %d", report.Ranges), strings.TrimRight(" "+residual, " ")})
				return
			}
			var got []string
			for _, i := range table.scan(p) {
				got = append(got, table.arrays[table.schema.Columns[ids].ID].ValueStr(i))
			}
			want := strings.Fields(cells[0])
			if cells[0] == "none" {
				want = nil
			}
			for _, id := range want {
				_, err := strconv.Atoi(id)
				require.NoError(t, err)
			}
			require.Equal(t, want, got)
		})
	}
	require.Greater(t, found, 60)
}
