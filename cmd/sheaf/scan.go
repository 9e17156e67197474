package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"
)

// tableRows is how many rows a table for people has when nobody says --limit.
const tableRows = 50

const scanHelp = `Read rows of a table: all of them, or those that a filter on keys or other
columns asks for. A filter on the whole sharding key reads only that key's place;
sheaf explain says what a question touches.
` + queryHelp + `
` + formatHelp + ` A table shows the first 50
rows unless --limit says otherwise (--limit 0 for all).`

const scanExample = `  sheaf scan trips
  sheaf scan trips --where '["device", "=", "d7"]' --order desc --limit 10
  sheaf scan trips --columns ts,fare --format csv > trips.csv
  sheaf scan trips --where '["fare", ">", 100]' --output expensive.parquet
  sheaf scan trips --format arrows | python consume.py
  sheaf scan trips --where '["device", "=", "d7"]' --count`

func newScan() *cobra.Command {
	var (
		server *string
		ask    queryFlags
		output outputFlags
		count  bool
		force  bool
	)
	command := &cobra.Command{
		Use:     "scan TABLE",
		Short:   "Print rows, or write them to a file or pipe",
		Long:    scanHelp,
		Example: scanExample,
		GroupID: groupClient,
		Args:    oneTable,
		RunE: func(command *cobra.Command, args []string) error {
			q, err := ask.query(args[0])
			if err != nil {
				return err
			}
			gateway, err := dial(*server)
			if err != nil {
				return err
			}
			defer gateway.Close()
			s := scan{command: command, gateway: gateway, query: q, output: &output, overwrite: force}
			if count {
				return s.count()
			}
			return s.run(!ask.limitGiven())
		},
	}
	server = serverFlag(command)
	ask.add(command)
	output.add(command)
	flags := command.Flags()
	flags.StringVarP(&output.path, "output", "o", "", "file to write (default stdout)")
	flags.BoolVar(&force, "overwrite", false, "replace an existing --output file")
	flags.BoolVar(&output.wide, "wide", false, "show a table at full width")
	flags.BoolVar(&output.asJSON, "json", false, "the same as --format jsonl")
	flags.BoolVar(&count, "count", false, "print only the number of rows")
	return command
}

// scan is one run of the command.
type scan struct {
	command   *cobra.Command
	gateway   *gateway
	query     *query
	output    *outputFlags
	overwrite bool
}

// count asks for rows without columns and adds up their number.
func (s *scan) count() error {
	s.query.Columns = &[]string{}
	ticket, err := json.Marshal(s.query)
	if err != nil {
		return err
	}
	rows := int64(0)
	err = s.gateway.get(s.command.Context(), ticket,
		func(*arrow.Schema) error { return nil },
		func(batch arrow.RecordBatch, _ []byte) error { rows += batch.NumRows(); return nil })
	if err != nil {
		return err
	}
	if s.output.asJSON {
		_, err = fmt.Fprintf(s.command.OutOrStdout(), "{\"rows\":%d}\n", rows)
	} else {
		_, err = fmt.Fprintln(s.command.OutOrStdout(), rows)
	}
	return err
}

// run reads the rows and writes them in the format chosen. A table without a
// limit is cut short, since a person reads it.
func (s *scan) run(unlimited bool) error {
	out := s.command.OutOrStdout()
	format, err := s.output.choose(isTerminal(out))
	if err != nil {
		return err
	}
	if s.output.path == "" || s.output.path == "-" {
		if isTerminal(out) && (format == formatArrow || format == formatStream || format == formatParquet) {
			return usageError{fmt.Errorf("%s is not for a terminal: say --output FILE or use a pipe", format)}
		}
		return s.copy(out, format, format == formatTable && unlimited)
	}
	file, err := createFile(s.output.path, s.overwrite)
	if err != nil {
		return err
	}
	defer file.discard()
	if err := s.copy(file, format, false); err != nil {
		return err
	}
	return file.commit()
}

func (s *scan) copy(out io.Writer, format string, cut bool) error {
	if cut { // one row more than is shown tells whether there are more
		more := int64(tableRows + 1)
		s.query.Limit = &more
	}
	ticket, err := json.Marshal(s.query)
	if err != nil {
		return err
	}
	var (
		rows   rowWriter
		marker string
		shown  int64
	)
	err = s.gateway.get(s.command.Context(), ticket,
		func(schema *arrow.Schema) (err error) {
			rows, err = s.output.open(format, out, schema)
			return err
		},
		func(batch arrow.RecordBatch, metadata []byte) error {
			marker = pageMarker(metadata)
			if shown += batch.NumRows(); cut && shown > tableRows {
				batch = batch.NewSlice(0, max(0, batch.NumRows()-(shown-tableRows)))
				defer batch.Release()
			}
			return rows.write(batch)
		})
	if err != nil {
		return err
	}
	if err := rows.finish(); err != nil {
		return err
	}
	if format == formatTable {
		s.footer(shown, cut && shown > tableRows)
	}
	if marker != "" && !cut {
		fmt.Fprintf(s.command.ErrOrStderr(), "next page: --after '%s'\n", marker)
	}
	return nil
}

// footer says how many rows there were. It goes to stderr, so that a table in a
// pipe is only the table.
func (s *scan) footer(shown int64, more bool) {
	errs := s.command.ErrOrStderr()
	if more {
		fmt.Fprintf(errs, "%d rows shown, there are more (--limit 0 shows all)\n", tableRows)
	} else {
		fmt.Fprintln(errs, counted(shown, "row"))
	}
}

// pageMarker is the place behind a page's last row, empty at the end.
func pageMarker(metadata []byte) string {
	var page struct {
		After string `json:"after"`
	}
	if json.Unmarshal(metadata, &page) != nil {
		return ""
	}
	return page.After
}
