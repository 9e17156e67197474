package main

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// arrowWriter writes an Arrow IPC file or stream.
type arrowWriter struct {
	out interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	file bool
}

func newArrowStreamWriter(out io.Writer, schema *arrow.Schema) *arrowWriter {
	return &arrowWriter{out: ipc.NewWriter(out, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(true))}
}

func newArrowFileWriter(out io.Writer, schema *arrow.Schema) (*arrowWriter, error) {
	writer, err := ipc.NewFileWriter(out, ipc.WithSchema(schema), ipc.WithDictionaryDeltas(true))
	if err != nil {
		return nil, err
	}
	return &arrowWriter{out: writer, file: true}, nil
}

func (w *arrowWriter) write(batch arrow.RecordBatch) error {
	err := w.out.Write(batch)
	if err != nil && w.file {
		return fmt.Errorf("writing an Arrow IPC file: %w (a file holds one dictionary a column, a stream, --format arrows, any number)", err)
	}
	return err
}

func (w *arrowWriter) finish() error { return w.out.Close() }

// rowGroupRows is pyarrow's default for a row group.
const rowGroupRows = 1 << 20

// parquetWriter writes one Parquet file.
type parquetWriter struct{ out *pqarrow.FileWriter }

var codecs = map[string]compress.Compression{
	"zstd": compress.Codecs.Zstd, "snappy": compress.Codecs.Snappy,
	"gzip": compress.Codecs.Gzip, "none": compress.Codecs.Uncompressed,
}

func newParquetWriter(out io.Writer, schema *arrow.Schema, compression string) (*parquetWriter, error) {
	codec, known := codecs[compression]
	if !known {
		return nil, usageError{fmt.Errorf("--compression %q: known are zstd, snappy, gzip, none", compression)}
	}
	if schema.NumFields() == 0 {
		return nil, usageError{fmt.Errorf("a Parquet file cannot hold rows without columns")}
	}
	for _, field := range schema.Fields() {
		single := arrow.NewSchema([]arrow.Field{field}, nil)
		if _, err := pqarrow.ToParquet(single, nil, pqarrow.DefaultWriterProps()); err != nil {
			return nil, usageError{fmt.Errorf("column %q of type %s does not go into Parquet: %w (leave it out with --columns, or write --format arrow)",
				field.Name, field.Type, err)}
		}
	}
	properties := parquet.NewWriterProperties(
		parquet.WithCompression(codec), parquet.WithMaxRowGroupLength(rowGroupRows),
		parquet.WithStats(true))
	// The Arrow schema goes along, so that types Parquet lacks come back as they were.
	// The file is not pqarrow's to close.
	writer, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{out}, properties,
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return nil, err
	}
	return &parquetWriter{out: writer}, nil
}

func (w *parquetWriter) write(batch arrow.RecordBatch) error { return w.out.WriteBuffered(batch) }

func (w *parquetWriter) finish() error { return w.out.Close() }
