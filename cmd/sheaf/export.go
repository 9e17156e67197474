package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

const exportHelp = `Write a table, or what a filter leaves of it, to a file, or with --parts to a
folder of files that are read in parallel. All of it is of one moment, however
long it takes. A file appears under its name only when it is complete.
` + queryHelp + `
` + formatHelp

const exportExample = `  sheaf export trips trips.parquet
  sheaf export trips trips/ --parts 8 --format parquet
  sheaf export trips d7.csv --where '["device", "=", "d7"]' --order asc
  sheaf export trips trips.arrow --columns device,ts --json`

func newExport() *cobra.Command {
	var (
		server *string
		ask    queryFlags
		e      export
	)
	command := &cobra.Command{
		Use:     "export TABLE FILE|FOLDER",
		Short:   "Write rows to a file or a folder of files",
		Long:    exportHelp,
		Example: exportExample,
		GroupID: groupClient,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("name one table and where it goes: %s", command.UseLine())}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) (err error) {
			if e.query, err = ask.query(args[0]); err != nil {
				return err
			}
			if e.gateway, err = dial(*server); err != nil {
				return err
			}
			defer e.gateway.Close()
			e.command, e.path = command, args[1]
			return e.run()
		},
	}
	server = serverFlag(command)
	ask.add(command)
	e.output.add(command)
	flags := command.Flags()
	flags.IntVar(&e.parts, "parts", 1, "about so many files of equal size, in a folder")
	flags.BoolVar(&e.overwrite, "overwrite", false, "replace existing files")
	flags.BoolVar(&e.quiet, "quiet", false, "no progress line")
	flags.BoolVar(&e.asJSON, "json", false, "print a summary as JSON")
	return command
}

// export is one run of the command.
type export struct {
	command                  *cobra.Command
	gateway                  *gateway
	query                    *query
	output                   outputFlags
	path                     string
	parts                    int
	overwrite, quiet, asJSON bool
	progress                 *progress
}

func (e *export) run() error {
	if e.parts < 1 {
		return usageError{fmt.Errorf("--parts %d: give 1 or more", e.parts)}
	}
	format, err := e.format()
	if err != nil {
		return err
	}
	e.progress = startProgress(e.command.ErrOrStderr(), e.quiet)
	files := 1
	if e.parts == 1 {
		err = e.whole(format)
	} else {
		files, err = e.inParts(format)
	}
	elapsed := e.progress.end()
	if err != nil {
		return err
	}
	rows, bytes := e.progress.rows.Load(), e.progress.bytes.Load()
	if e.asJSON {
		return json.NewEncoder(e.command.OutOrStdout()).Encode(map[string]any{
			"table": e.query.Table, "path": e.path, "files": files, "rows": rows, "bytes": bytes,
			"seconds": elapsed.Seconds()})
	}
	_, err = fmt.Fprintf(e.command.OutOrStdout(), "%s of %s to %s (%s, %s)\n",
		counted(rows, "row"), e.query.Table, e.path, counted(files, "file"), took(elapsed, bytes))
	return err
}

func (e *export) format() (string, error) {
	if e.parts > 1 && e.output.format == "" {
		return formatParquet, nil
	}
	e.output.path = e.path
	return e.output.choose(false)
}

func (e *export) whole(format string) error {
	ticket, err := json.Marshal(e.query)
	if err != nil {
		return err
	}
	return e.file(e.command.Context(), ticket, format, e.path)
}

// file writes what one ticket gives to one file.
func (e *export) file(ctx context.Context, ticket []byte, format, path string) error {
	file, err := createFile(path, e.overwrite)
	if err != nil {
		return err
	}
	defer file.discard()
	var rows rowWriter
	err = e.gateway.get(ctx, ticket,
		func(schema *arrow.Schema) (err error) {
			rows, err = e.output.open(format, file, schema)
			return err
		},
		func(batch arrow.RecordBatch, _ []byte) error {
			e.progress.add(batch.NumRows(), arrowBytes(batch))
			return rows.write(batch)
		})
	if err != nil {
		return err
	}
	if err := rows.finish(); err != nil {
		return err
	}
	return file.commit()
}

// inParts asks for several tickets of one snapshot and writes a file for each.
func (e *export) inParts(format string) (files int, err error) {
	e.query.Endpoints = e.parts
	command, err := json.Marshal(e.query)
	if err != nil {
		return 0, err
	}
	ctx := e.command.Context()
	info, err := e.gateway.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: command})
	if err != nil {
		return 0, e.gateway.failed(err)
	}
	defer e.release(info)
	if info.TotalRecords > 0 {
		e.progress.total.Store(info.TotalRecords)
	}
	if err := os.MkdirAll(e.path, 0o755); err != nil {
		return 0, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, endpoint := range info.Endpoint {
		path := filepath.Join(e.path, fmt.Sprintf("part-%05d.%s", i, format))
		group.Go(func() error { return e.file(ctx, endpoint.GetTicket().GetTicket(), format, path) })
	}
	return len(info.Endpoint), group.Wait()
}

// release gives the snapshot back; if that fails it ends by itself.
func (e *export) release(info *flight.FlightInfo) {
	var about struct {
		Snapshot string `json:"snapshot"`
	}
	if json.Unmarshal(info.AppMetadata, &about) == nil && about.Snapshot != "" {
		ctx := context.WithoutCancel(e.command.Context())
		_ = e.gateway.act(ctx, "ReleaseSnapshot", map[string]string{"snapshot": about.Snapshot}, nil)
	}
}
