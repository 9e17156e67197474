package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// findParquet lists the files named, and those below folders in the order of
// their paths; files that begin with _ or . are other programs' notes.
func findParquet(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		about, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !about.IsDir() {
			files = append(files, path)
			continue
		}
		var below []string
		err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			hidden := strings.HasPrefix(entry.Name(), "_") || strings.HasPrefix(entry.Name(), ".")
			switch {
			case err != nil:
				return err
			case entry.IsDir() && hidden && name != path:
				return filepath.SkipDir
			case !entry.IsDir() && !hidden && strings.EqualFold(filepath.Ext(name), ".parquet"):
				below = append(below, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(below) == 0 {
			return nil, usageError{fmt.Errorf("no *.parquet files below %s", path)}
		}
		sort.Strings(below)
		files = append(files, below...)
	}
	return files, nil
}

// parquetFile is a file whose footer has been read.
type parquetFile struct {
	path   string
	rows   int64
	schema *arrow.Schema
}

// statParquet reads a file's footer.
func statParquet(path string) (*parquetFile, error) {
	reader, err := openParquet(path, 0)
	if err != nil {
		return nil, err
	}
	defer reader.ParquetReader().Close()
	schema, err := reader.Schema()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &parquetFile{path: path, rows: reader.ParquetReader().NumRows(), schema: withoutFileNotes(schema)}, nil
}

// openParquet opens a file; the caller closes its ParquetReader.
func openParquet(path string, batchRows int64) (reader *pqarrow.FileReader, err error) {
	defer func() { // a broken file must not end the program
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%s is not a readable Parquet file: %v", path, caught)
		}
	}()
	opened, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, fmt.Errorf("%s is not a readable Parquet file: %w", path, err)
	}
	properties := pqarrow.ArrowReadProperties{Parallel: true, BatchSize: batchRows}
	reader, err = pqarrow.NewFileReader(opened, properties, memory.DefaultAllocator)
	if err != nil {
		opened.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return reader, nil
}

// batches hands the file's rows to each, but for the first skip. A batch is
// valid until each returns.
func (f *parquetFile) batches(ctx context.Context, rows, skip int64, each func(arrow.RecordBatch) error) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("the file is damaged: %v", caught)
		}
	}()
	reader, err := openParquet(f.path, rows)
	if err != nil {
		return err
	}
	defer reader.ParquetReader().Close()
	readDurationsAsNumbers(reader)
	records, err := reader.GetRecordReader(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer records.Release()
	seen := int64(0)
	for records.Next() {
		batch := records.RecordBatch()
		seen += batch.NumRows()
		if skip >= batch.NumRows() {
			skip -= batch.NumRows()
			continue
		}
		typed := withDurations(batch, f.schema)
		rest := typed.NewSlice(skip, batch.NumRows())
		typed.Release()
		skip = 0
		err := each(rest)
		rest.Release()
		if err != nil {
			return err
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if seen != f.rows {
		return fmt.Errorf("the footer says %d rows, the file holds %d", f.rows, seen)
	}
	return nil
}

// withoutFileNotes drops what only tells Parquet's own story: the field ids
// that the reader adds.
func withoutFileNotes(schema *arrow.Schema) *arrow.Schema {
	fields := schema.Fields()
	for i, field := range fields {
		keys, values := []string{}, []string{}
		for at, key := range field.Metadata.Keys() {
			if key != "PARQUET:field_id" {
				keys, values = append(keys, key), append(values, field.Metadata.Values()[at])
			}
		}
		fields[i].Metadata = arrow.NewMetadata(keys, values)
	}
	metadata := schema.Metadata()
	return arrow.NewSchema(fields, &metadata)
}

// unionSchema is one schema for files that go into one stream: columns of one
// name must have one type, a column that some file lacks is null there.
func unionSchema(files []*parquetFile, mode string) (*arrow.Schema, error) {
	var fields []arrow.Field
	firstFile := map[string]string{}
	place := map[string]int{}
	for _, one := range files {
		for _, field := range one.schema.Fields() {
			at, known := place[field.Name]
			if !known {
				place[field.Name], firstFile[field.Name] = len(fields), one.path
				fields = append(fields, field)
				continue
			}
			if !arrow.TypeEqual(fields[at].Type, field.Type) {
				return nil, fmt.Errorf("column %q is %s in %s and %s in %s: files of one commit need one type",
					field.Name, fields[at].Type, firstFile[field.Name], field.Type, one.path)
			}
			fields[at].Nullable = fields[at].Nullable || field.Nullable
		}
	}
	for _, one := range files {
		for i, field := range fields {
			if one.schema.HasField(field.Name) {
				continue
			}
			if mode == "merge" || mode == "update" {
				return nil, fmt.Errorf("%s lacks column %q of %s: with --mode %s that would write nulls; import it by itself",
					one.path, field.Name, firstFile[field.Name], mode)
			}
			fields[i].Nullable = true
		}
	}
	metadata := files[0].schema.Metadata()
	return arrow.NewSchema(fields, &metadata), nil
}
