package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// plan is the result of the action Explain, as docs/wire.md has it.
type plan struct {
	Table    string   `json:"table"`
	Access   string   `json:"access"`
	Slices   []int    `json:"slices"`
	Of       int      `json:"of"`
	Ranges   int      `json:"ranges"`
	Residual *string  `json:"residual"`
	Columns  []string `json:"columns"`
	Pushed   []string `json:"pushed"`

	RowsScanned  *uint64 `json:"rows_scanned"` // set when analysed, like all below
	RowsReturned uint64  `json:"rows_returned"`
	BlocksRead   uint64  `json:"blocks_read"`
	BlocksPruned uint64  `json:"blocks_pruned"`
	BytesRead    uint64  `json:"bytes_read"`
	Ms           float64 `json:"ms"`
}

const explainHelp = `Show what a question will touch: which slices, by which kind of access, what the
keys answer (pushed) and what is left to check row by row (residual).

Access: point (single primary keys), range (a sharding key and a part of the
sorting key), shard (sharding keys), full (everything), none (nothing can match).
--analyze also runs the question and counts what it read.
` + queryHelp

func newExplain() *cobra.Command {
	var (
		server          *string
		ask             queryFlags
		analyze, asJSON bool
	)
	command := &cobra.Command{
		Use:   "explain TABLE",
		Short: "Show what a question touches",
		Long:  explainHelp,
		Example: `  sheaf explain trips --where '["device", "=", "d7"]'
  sheaf explain trips --where '["fare", ">", 100]' --analyze --json`,
		GroupID: groupClient,
		Args:    oneTable,
		RunE: func(command *cobra.Command, args []string) error {
			q, err := ask.query(args[0])
			if err != nil {
				return err
			}
			q.Analyze = analyze
			gateway, err := dial(*server)
			if err != nil {
				return err
			}
			defer gateway.Close()
			var raw json.RawMessage
			if err := gateway.act(command.Context(), "Explain", q, &raw); err != nil {
				return err
			}
			if asJSON {
				_, err = fmt.Fprintf(command.OutOrStdout(), "%s\n", raw)
				return err
			}
			var found plan
			if err := json.Unmarshal(raw, &found); err != nil {
				return fmt.Errorf("the gateway's plan %q: %w", raw, err)
			}
			return found.print(command.OutOrStdout())
		},
	}
	server = serverFlag(command)
	ask.add(command)
	command.Flags().BoolVar(&analyze, "analyze", false, "run the question too and count what it reads")
	command.Flags().BoolVar(&asJSON, "json", false, "print the plan as the gateway gives it")
	return command
}

func (p *plan) print(out io.Writer) error {
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "%-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("table", "%s", p.Table)
	line("access", "%s", p.Access)
	line("slices", "%d of %d%s", len(p.Slices), p.Of, sliceList(p.Slices, p.Of))
	line("ranges", "%d", p.Ranges)
	line("pushed", "%s", orDash(strings.Join(p.Pushed, " AND ")))
	if p.Residual != nil {
		line("residual", "%s", *p.Residual)
	} else {
		line("residual", "–")
	}
	line("columns", "%s", orDash(strings.Join(p.Columns, ", ")))
	if p.RowsScanned != nil {
		line("rows", "%s scanned, %s returned", grouped(int64(*p.RowsScanned)), grouped(int64(p.RowsReturned)))
		line("blocks", "%s read, %s pruned", grouped(int64(p.BlocksRead)), grouped(int64(p.BlocksPruned)))
		line("read", "%s", bytesText(p.BytesRead))
		line("time", "%.3g ms", p.Ms)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// sliceList names the slices where they are few.
func sliceList(slices []int, of int) string {
	if len(slices) == 0 || len(slices) == of || len(slices) > 16 {
		return ""
	}
	return ": " + strings.ReplaceAll(strings.Trim(fmt.Sprint(slices), "[]"), " ", ", ")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
