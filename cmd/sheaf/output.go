package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// rowWriter takes the batches of one result. It keeps no batch after write has
// returned. finish completes the output; without it the output is worthless.
type rowWriter interface {
	write(batch arrow.RecordBatch) error
	finish() error
}

// The formats, by the name that --format takes.
const (
	formatTable   = "table"
	formatCSV     = "csv"
	formatJSONL   = "jsonl"
	formatArrow   = "arrow"
	formatStream  = "arrows"
	formatParquet = "parquet"
)

var formats = []string{formatTable, formatCSV, formatJSONL, formatArrow, formatStream, formatParquet}

// extensions says which format a file's name asks for.
var extensions = map[string]string{
	".csv": formatCSV, ".jsonl": formatJSONL, ".ndjson": formatJSONL, ".json": formatJSONL,
	".arrow": formatArrow, ".feather": formatArrow, ".ipc": formatArrow, ".arrows": formatStream,
	".parquet": formatParquet, ".txt": formatTable,
}

const formatHelp = `
Formats: table (aligned, for people), csv, jsonl (one JSON object a line), arrow
(IPC file), arrows (IPC stream), parquet. Without --format the output file's
extension says which; a terminal gets a table, a pipe gets CSV.`

// outputFlags say where rows go and in which form.
type outputFlags struct {
	format, path, null string
	compression        string
	wide, asJSON       bool
}

func (f *outputFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&f.format, "format", "f", "", strings.Join(formats, ", "))
	flags.StringVar(&f.null, "null", "", "text for null in CSV (default nothing; an empty string is \"\")")
	flags.StringVar(&f.compression, "compression", "zstd", "of Parquet: zstd, snappy, gzip, none")
}

// choose is the format: as asked, by extension, or by what the output is.
func (f *outputFlags) choose(terminal bool) (string, error) {
	if f.asJSON {
		if f.format != "" && f.format != formatJSONL {
			return "", usageError{fmt.Errorf("--json is --format jsonl: drop one of the two")}
		}
		return formatJSONL, nil
	}
	if f.format != "" {
		if !slices.Contains(formats, f.format) {
			return "", usageError{fmt.Errorf("--format %q: known are %s", f.format, strings.Join(formats, ", "))}
		}
		return f.format, nil
	}
	if f.path != "" && f.path != "-" {
		extension := strings.ToLower(filepath.Ext(f.path))
		if format, known := extensions[extension]; known {
			return format, nil
		}
		if extension == "" {
			return "", usageError{fmt.Errorf("%s has no extension that names a format: say --format", f.path)}
		}
		return "", usageError{fmt.Errorf("%s: the extension %q names no format; say --format", f.path, extension)}
	}
	if terminal {
		return formatTable, nil
	}
	return formatCSV, nil
}

// open makes the writer of a format.
func (f *outputFlags) open(format string, out io.Writer, schema *arrow.Schema) (rowWriter, error) {
	switch format {
	case formatCSV:
		return newCSVWriter(out, schema, f.null), nil
	case formatJSONL:
		return newJSONLWriter(out, schema), nil
	case formatArrow:
		return newArrowFileWriter(out, schema)
	case formatStream:
		return newArrowStreamWriter(out, schema), nil
	case formatParquet:
		return newParquetWriter(out, schema, f.compression)
	}
	return newTableWriter(out, schema, tableWidth(out, f.wide)), nil
}

// isTerminal reports whether a person watches out.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// tableWidth is the width of the terminal, 0 for no bound.
func tableWidth(out io.Writer, wide bool) int {
	if file, ok := out.(*os.File); ok && !wide {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// newFile is a file that appears under its name only when it is complete.
type newFile struct {
	*os.File
	path string
}

// createFile begins a file; overwrite permits that one of this name exists.
func createFile(path string, overwrite bool) (*newFile, error) {
	if _, err := os.Stat(path); err == nil && !overwrite {
		return nil, usageError{fmt.Errorf("%s exists: say --overwrite to replace it", path)}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		if about := new(fs.PathError); errors.As(err, &about) { // not by the name that nobody gave
			err = about.Err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &newFile{File: file, path: path}, nil
}

// commit makes the file durable and visible.
func (f *newFile) commit() error {
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), f.path)
}

// discard removes what was written; after commit it does nothing.
func (f *newFile) discard() {
	f.Close()
	os.Remove(f.Name())
}

// arrowBytes is the size of a batch's buffers.
func arrowBytes(batch arrow.RecordBatch) int64 {
	size := uint64(0)
	for _, column := range batch.Columns() {
		size += column.Data().SizeInBytes()
	}
	return int64(size)
}
