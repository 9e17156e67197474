package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
)

const (
	// defaultBatchRows is what most Parquet writers put on a page or a few.
	defaultBatchRows = 64 * 1024
	// sentBytes bounds a batch that is sent, far below --max-message.
	sentBytes = 64 << 20
)

const importHelp = `Load Parquet files, or all *.parquet files below folders, into a table. A table
that does not exist is made; name its keys then.

Columns are matched by name. Each file is one stream; what the gateway has
acknowledged when something fails stays. --atomic makes all files one commit, and
so does --mode replace_table. With --resume ID a broken import is run again with
the same arguments and goes on where it stopped; nothing doubles.`

const importExample = `  sheaf import trips trips.parquet --sharding-key device --sorting-key ts
  sheaf import trips 2026-01/ 2026-02/ --resume january-and-february
  sheaf import log events.parquet --sharding-key '' # no key: rows are appended
  sheaf import trips fixed.parquet --mode replace_table --json`

func newImport() *cobra.Command {
	var (
		server            *string
		i                 importer
		sharding, sorting []string
	)
	command := &cobra.Command{
		Use:     "import TABLE FILE|FOLDER...",
		Short:   "Load Parquet files into a table",
		Long:    importHelp,
		Example: importExample,
		GroupID: groupClient,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{fmt.Errorf("name a table and at least one Parquet file: %s", command.UseLine())}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			flags := command.Flags()
			i.put.Table = args[0]
			if flags.Changed("sharding-key") {
				i.put.ShardingKey = keyColumns(sharding)
			}
			if flags.Changed("sorting-key") {
				i.put.SortingKey = keyColumns(sorting)
			}
			if i.batchRows < 1 {
				return usageError{fmt.Errorf("--batch-rows %d: give 1 or more", i.batchRows)}
			}
			gateway, err := dial(*server)
			if err != nil {
				return err
			}
			defer gateway.Close()
			i.gateway, i.command = gateway, command
			return i.run(command.Context(), args[1:])
		},
	}
	server = serverFlag(command)
	flags := command.Flags()
	flags.StringSliceVar(&sharding, "sharding-key", nil, "sharding-key columns of a table to be made ('' for none)")
	flags.StringSliceVar(&sorting, "sorting-key", nil, "its sorting-key columns")
	flags.IntVar(&i.put.Slices, "slices", 0, "its slice count, 1 to 1024 (default 16)")
	flags.StringVar(&i.put.Mode, "mode", "", "upsert (default), insert, insert_ignore, merge, update, delete, replace_table")
	flags.BoolVar(&i.put.AddColumns, "add-columns", false, "add columns that the table lacks")
	flags.BoolVar(&i.put.Atomic, "atomic", false, "all files or nothing")
	flags.StringVar(&i.put.Resume, "resume", "", "an id under which a broken import goes on")
	flags.Int64Var(&i.batchRows, "batch-rows", defaultBatchRows, "rows sent at a time")
	flags.BoolVar(&i.quiet, "quiet", false, "no progress line")
	flags.BoolVar(&i.asJSON, "json", false, "print a summary as JSON")
	return command
}

// keyColumns takes an empty --sharding-key as a table without key.
func keyColumns(given []string) *[]string {
	if len(given) == 0 || len(given) == 1 && given[0] == "" {
		return &[]string{}
	}
	return &given
}

// importer is one run of the command.
type importer struct {
	command       *cobra.Command
	gateway       *gateway
	put           putCommand
	batchRows     int64
	quiet, asJSON bool
	progress      *progress
	commit        uint64
	durable       uint64 // rows that the gateway has acknowledged
}

func (i *importer) run(ctx context.Context, paths []string) error {
	files, err := findParquet(paths)
	if err != nil {
		return err
	}
	streams, total, err := i.plan(files)
	if err != nil {
		return err
	}
	i.progress = startProgress(i.command.ErrOrStderr(), i.quiet)
	i.progress.total.Store(total)
	for _, stream := range streams {
		if err = i.send(ctx, stream); err != nil {
			break
		}
	}
	elapsed := i.progress.end()
	if err != nil {
		if i.durable > 0 { // the rest of what was sent is not there
			fmt.Fprintf(i.command.ErrOrStderr(), "%s of %s are in %s\n",
				grouped(int64(i.durable)), counted(total, "row"), i.put.Table)
		}
		return err
	}
	return i.summary(len(files), elapsed)
}

func (i *importer) summary(files int, elapsed time.Duration) error {
	rows, bytes := i.progress.rows.Load(), i.progress.bytes.Load()
	out := i.command.OutOrStdout()
	if i.asJSON {
		return json.NewEncoder(out).Encode(map[string]any{
			"table": i.put.Table, "files": files, "rows": rows, "bytes": bytes,
			"seconds": elapsed.Seconds(), "commit": i.commit})
	}
	_, err := fmt.Fprintf(out, "%s from %s into %s (%s, commit %d)\n",
		counted(rows, "row"), counted(files, "file"), i.put.Table, took(elapsed, bytes), i.commit)
	return err
}

// putStream is what one DoPut stream carries: one file, or all of them where
// they must become visible together.
type putStream struct {
	files  []*parquetFile
	schema *arrow.Schema
	resume string
}

// plan looks at every file before anything is sent.
func (i *importer) plan(paths []string) (streams []putStream, rows int64, err error) {
	together := i.put.Atomic || i.put.Mode == "replace_table"
	for _, path := range paths {
		file, err := statParquet(path)
		if err != nil {
			return nil, 0, err
		}
		rows += file.rows
		if together && len(streams) == 1 {
			streams[0].files = append(streams[0].files, file)
			continue
		}
		stream := putStream{files: []*parquetFile{file}, schema: file.schema}
		if i.put.Resume != "" {
			stream.resume = fmt.Sprintf("%s/%d", i.put.Resume, len(streams))
		}
		streams = append(streams, stream)
	}
	if together {
		streams[0].schema, err = unionSchema(streams[0].files, i.put.Mode)
	}
	return streams, rows, err
}

// send carries one stream to its end.
func (i *importer) send(ctx context.Context, s putStream) error {
	command := i.put
	command.Resume = s.resume
	put, err := i.gateway.openPut(ctx, s.schema, command)
	if err != nil {
		return err
	}
	defer func() {
		put.abort()
		i.durable += put.last.Rows
	}()
	skip := int64(0)
	if s.resume != "" {
		if skip, err = i.resumeAt(put, s); err != nil {
			return err
		}
	}
	for _, file := range s.files {
		skipped := min(skip, file.rows)
		skip -= skipped
		i.progress.add(skipped, 0)
		err := file.batches(ctx, i.batchRows, skipped, func(batch arrow.RecordBatch) error {
			return i.write(put, s.schema, batch)
		})
		if err != nil {
			return naming(file.path, err)
		}
	}
	done, err := put.finish()
	if err != nil {
		return naming(s.files[0].path, err)
	}
	if done.Commit > 0 {
		i.commit = done.Commit
	}
	return nil
}

// resumeAt learns how many rows of the stream are durable. The schema goes out
// with a batch of no rows, since the gateway answers only then.
func (i *importer) resumeAt(put *put, s putStream) (rows int64, err error) {
	empty := emptyBatch(s.schema)
	defer empty.Release()
	if err := put.write(empty); err != nil {
		return 0, naming(s.files[0].path, err)
	}
	before, err := put.resumed()
	return int64(before.Rows), err
}

// write sends a batch in the stream's schema, in pieces that stay well below
// the message limit.
func (i *importer) write(put *put, schema *arrow.Schema, batch arrow.RecordBatch) error {
	batch = conform(batch, schema)
	defer batch.Release()
	size := arrowBytes(batch)
	pieces := min(size/sentBytes+1, max(1, batch.NumRows()))
	rows := (batch.NumRows() + pieces - 1) / pieces
	for at := int64(0); at < batch.NumRows(); at += rows {
		piece := batch.NewSlice(at, min(at+rows, batch.NumRows()))
		err := put.write(piece)
		i.progress.add(piece.NumRows(), size*piece.NumRows()/batch.NumRows())
		piece.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// conform is batch with the columns of schema, in its order; what the batch
// lacks is null. The caller releases it.
func conform(batch arrow.RecordBatch, schema *arrow.Schema) arrow.RecordBatch {
	columns := make([]arrow.Array, schema.NumFields())
	for i, field := range schema.Fields() {
		if found := batch.Schema().FieldIndices(field.Name); len(found) > 0 {
			columns[i] = batch.Column(found[0])
			continue
		}
		columns[i] = array.MakeArrayOfNull(memory.DefaultAllocator, field.Type, int(batch.NumRows()))
		defer columns[i].Release()
	}
	return array.NewRecordBatch(schema, columns, batch.NumRows())
}

func emptyBatch(schema *arrow.Schema) arrow.RecordBatch {
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	return builder.NewRecordBatch()
}

// naming says which file an error is about.
func naming(path string, err error) error {
	if fromGateway, ok := err.(gatewayError); ok {
		fromGateway.prefix = path + ": "
		if strings.Contains(fromGateway.Error(), "[TABLE_NOT_FOUND]") {
			fromGateway.hint = " (here: --sharding-key and --sorting-key)"
		}
		return fromGateway
	}
	return fmt.Errorf("%s: %w", path, err)
}
