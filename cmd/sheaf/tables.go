package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/spf13/cobra"
)

// description is the result of the action DescribeTable.
type description struct {
	Table       string   `json:"table"`
	Columns     []column `json:"columns"`
	ShardingKey []string `json:"sharding_key"`
	SortingKey  []string `json:"sorting_key"`
	Slices      int      `json:"slices"`
	Rows        uint64   `json:"rows"`
	RowsExact   bool     `json:"rows_exact"`
	Bytes       uint64   `json:"bytes"`
	Commit      uint64   `json:"commit"`
}

type column struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Nullable bool    `json:"nullable"`
	Key      *string `json:"key"`
}

const tablesHelp = `List the tables of a gateway, or work on one:

  sheaf tables                  every table with its keys, rows and size
  sheaf tables trips            the tables whose name begins like that
  sheaf tables describe trips   its columns and keys
  sheaf tables stats trips      rows, runs and delta of each slice, largest keys
  sheaf tables fold trips       merge its delta and runs now, and wait for it
  sheaf tables drop trips       remove it with all its rows`

func newTables() *cobra.Command {
	var (
		server string
		asJSON bool
	)
	withGateway := func(work func(context.Context, *gateway, io.Writer, []string) error) func(*cobra.Command, []string) error {
		return func(command *cobra.Command, args []string) error {
			gateway, err := dial(server)
			if err != nil {
				return err
			}
			defer gateway.Close()
			return work(command.Context(), gateway, command.OutOrStdout(), args)
		}
	}
	command := &cobra.Command{
		Use:     "tables [PREFIX]",
		Short:   "List tables, describe, fold or drop one",
		Long:    tablesHelp,
		Example: "  sheaf tables --json | jq -r .table",
		GroupID: groupClient,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("give one prefix at most, or a subcommand: describe, stats, fold, drop")}
			}
			return nil
		},
		RunE: withGateway(func(ctx context.Context, g *gateway, out io.Writer, args []string) error {
			return listTables(ctx, g, out, strings.Join(args, ""), asJSON)
		}),
	}
	describe := &cobra.Command{
		Use: "describe TABLE", Short: "Columns, keys and size of a table", Args: oneTable,
		RunE: withGateway(func(ctx context.Context, g *gateway, out io.Writer, args []string) error {
			return describeTable(ctx, g, out, args[0], asJSON)
		}),
	}
	stats := &cobra.Command{
		Use: "stats TABLE", Short: "What each slice of a table holds", Args: oneTable,
		RunE: withGateway(func(ctx context.Context, g *gateway, out io.Writer, args []string) error {
			return showStats(ctx, g, out, args[0], asJSON)
		}),
	}
	fold := &cobra.Command{
		Use: "fold TABLE", Short: "Merge a table's delta and runs now", Args: oneTable,
		RunE: withGateway(func(ctx context.Context, g *gateway, out io.Writer, args []string) error {
			return g.act(ctx, "Fold", map[string]any{"table": args[0]}, nil)
		}),
	}
	var ifExists bool
	drop := &cobra.Command{
		Use: "drop TABLE", Short: "Remove a table with all its rows", Args: oneTable,
		RunE: withGateway(func(ctx context.Context, g *gateway, out io.Writer, args []string) error {
			return g.act(ctx, "DropTable", map[string]any{"table": args[0], "if_exists": ifExists}, nil)
		}),
	}
	drop.Flags().BoolVar(&ifExists, "if-exists", false, "a table that is not there is no error")
	command.AddCommand(describe, stats, fold, drop)
	flags := command.PersistentFlags()
	flags.StringVar(&server, "server", defaultAddress, "address of the gateway, host:port")
	flags.BoolVar(&asJSON, "json", false, "print JSON, one table a line")
	return command
}

func listTables(ctx context.Context, g *gateway, out io.Writer, prefix string, asJSON bool) error {
	stream, err := g.ListFlights(ctx, &flight.Criteria{Expression: []byte(prefix)})
	if err != nil {
		return g.failed(err)
	}
	var found []description
	for {
		info, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return g.failed(err)
		}
		name := strings.Join(info.GetFlightDescriptor().GetPath(), ".")
		var raw json.RawMessage
		if err := g.act(ctx, "DescribeTable", map[string]any{"table": name}, &raw); err != nil {
			return err
		}
		if asJSON {
			if _, err := fmt.Fprintf(out, "%s\n", raw); err != nil {
				return err
			}
			continue
		}
		var one description
		if err := json.Unmarshal(raw, &one); err != nil {
			return fmt.Errorf("the gateway's description of %s: %w", name, err)
		}
		found = append(found, one)
	}
	if asJSON {
		return nil
	}
	if len(found) == 0 {
		text := "no tables yet: sheaf import makes one"
		if prefix != "" {
			text = fmt.Sprintf("no table's name begins with %q", prefix)
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLE\tSHARDING KEY\tSORTING KEY\tSLICES\tROWS\tSIZE")
	for _, one := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", one.Table,
			orDash(strings.Join(one.ShardingKey, ", ")), orDash(strings.Join(one.SortingKey, ", ")),
			one.Slices, one.rows(), bytesText(one.Bytes))
	}
	return table.Flush()
}

func describeTable(ctx context.Context, g *gateway, out io.Writer, name string, asJSON bool) error {
	body := map[string]any{"table": name}
	if asJSON {
		return actAndPrint(ctx, g, out, "DescribeTable", body)
	}
	var found description
	if err := g.act(ctx, "DescribeTable", body, &found); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s rows, %s, %d slices, commit %d\n\n", found.Table, found.rows(),
		bytesText(found.Bytes), found.Slices, found.Commit)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COLUMN\tTYPE\tNULL\tKEY")
	for _, column := range found.Columns {
		null, key := "no", ""
		if column.Nullable {
			null = "yes"
		}
		if column.Key != nil {
			key = *column.Key
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(column.Name), column.Type, null, key)
	}
	return table.Flush()
}

// rows is the number of rows, with ~ where it is an estimate.
func (d *description) rows() string {
	text := grouped(int64(d.Rows))
	if !d.RowsExact {
		return "~" + text
	}
	return text
}

// actAndPrint prints an action's result as the gateway gave it.
func actAndPrint(ctx context.Context, g *gateway, out io.Writer, kind string, body any) error {
	var raw json.RawMessage
	if err := g.act(ctx, kind, body, &raw); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s\n", raw)
	return err
}
