package pushdown

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestScripts runs testdata/*: each states a table, filters, the plan of each
// and the rows that it finds.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		var table *testTable
		var rows []string
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "table":
				slices := 16
				d.MaybeScanArgs(t, "slices", &slices)
				table, rows = parseTable(t, d.Input, slices)
				return fmt.Sprintf("%d rows\n", table.rows)
			case "where":
				var out strings.Builder
				for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
					e, err := ParseWhere([]byte(line), table.schema)
					if err != nil {
						fmt.Fprintln(&out, err)
						continue
					}
					p, err := Build(table.schema, e)
					require.NoError(t, err)
					describe(&out, p)
					show(&out, table, rows, p)
				}
				return out.String()
			case "keys":
				keys, err := ParseKeys([]byte(d.Input), table.schema)
				if err != nil {
					return err.Error() + "\n"
				}
				var out strings.Builder
				p := BuildKeys(table.schema, keys, nil)
				describe(&out, p)
				show(&out, table, rows, p)
				return out.String()
			case "after":
				where, after, _ := strings.Cut(strings.TrimSpace(d.Input), "\n")
				e, err := ParseWhere([]byte(where), table.schema)
				require.NoError(t, err)
				encoded, err := ParseAfter([]byte(after), table.schema)
				if err != nil {
					return err.Error() + "\n"
				}
				var out strings.Builder
				for _, desc := range []bool{false, true} {
					p, err := Build(table.schema, e)
					require.NoError(t, err)
					p.After(encoded, desc)
					describe(&out, p)
					show(&out, table, rows, p)
				}
				return out.String()
			}
			t.Fatalf("no command %q", d.Cmd)
			return ""
		})
	})
}

// describe writes a plan in one line.
func describe(out *strings.Builder, p *Plan) {
	r := p.Report("t", nil)
	fmt.Fprintf(out, "%s, %d of %d slices, %d ranges", r.Access, len(r.Slices), r.Of, r.Ranges)
	if len(r.Pushed) > 0 {
		fmt.Fprintf(out, "; pushed %s", strings.Join(r.Pushed, "; "))
	}
	if r.Residual != nil {
		fmt.Fprintf(out, "; residual %s", *r.Residual)
	}
	out.WriteString("\n")
}

func show(out *strings.Builder, table *testTable, rows []string, p *Plan) {
	found := table.scan(p)
	out.WriteString("  ")
	if len(found) == 0 {
		out.WriteString("no row")
	}
	for n, i := range found {
		if n > 0 {
			out.WriteString(" ")
		}
		out.WriteString(rows[i])
	}
	out.WriteString("\n")
}
