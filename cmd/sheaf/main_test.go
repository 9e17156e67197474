package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/stretchr/testify/require"
)

// startGateway runs `sheaf serve` in this process and returns its address and
// what stops it.
func startGateway(t *testing.T, data string) (address string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	logs, logWriter := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"serve", "--data", data, "--listen", "127.0.0.1:0", "--log-format", "json",
			"--memory", "256MiB"}, nil, io.Discard, logWriter)
		logWriter.Close()
		ended <- code
	}()
	decoder := json.NewDecoder(logs)
	for address == "" {
		var line struct {
			Msg     string `json:"msg"`
			Address string `json:"address"`
		}
		require.NoError(t, decoder.Decode(&line), "the gateway ended before it listened")
		address = line.Address
	}
	go io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), logs)) //nolint:errcheck // ends with the gateway
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.Equal(t, exitOK, <-ended)
		}
	}
	t.Cleanup(stop)
	return address, stop
}

// sheaf runs one command and returns what it printed.
func sheaf(t *testing.T, wantCode int, args ...string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
	require.Equal(t, wantCode, code, "sheaf %s\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	return stdout.String(), stderr.String()
}

var tripSchema = arrow.NewSchema([]arrow.Field{
	{Name: "device", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "ts", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "fare", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}, Nullable: true},
	{Name: "note", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

const tripRows = `[
 {"device": "d1", "ts": "2026-01-01T00:00:00Z", "fare": "12.50", "note": "plain"},
 {"device": "d1", "ts": "2026-01-01T01:00:00Z", "fare": "0.10", "note": null},
 {"device": "d2", "ts": "2026-01-02T00:00:00Z", "fare": null, "note": ""},
 {"device": "d3", "ts": "2026-01-03T12:30:00.5Z", "fare": "-1.00", "note": "a \"b\", c"}
]`

// writeTrips writes rows as a Parquet file with row groups of two rows.
func writeTrips(t *testing.T, path, rows string) {
	t.Helper()
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, tripSchema, strings.NewReader(rows))
	require.NoError(t, err)
	defer batch.Release()
	out, err := os.Create(path)
	require.NoError(t, err)
	writer, err := pqarrow.NewFileWriter(tripSchema, out,
		parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(2)), pqarrow.DefaultWriterProps())
	require.NoError(t, err)
	require.NoError(t, writer.WriteBuffered(batch))
	require.NoError(t, writer.Close())
}

func TestATableGoesInAndComesOutInEveryFormat(t *testing.T) {
	folder := t.TempDir()
	trips := filepath.Join(folder, "trips.parquet")
	writeTrips(t, trips, tripRows)
	data := filepath.Join(folder, "data")
	address, stop := startGateway(t, data)
	t.Setenv("SHEAF_SERVER", address)

	out, _ := sheaf(t, exitOK, "import", "trips", trips, "--sharding-key", "device", "--sorting-key", "ts",
		"--slices", "4", "--json")
	require.Contains(t, out, `"rows":4`)
	out, _ = sheaf(t, exitOK, "import", "trips", folder, "--quiet") // the same rows: replaced, not doubled
	require.Contains(t, out, "4 rows from 1 file into trips")
	out, _ = sheaf(t, exitOK, "scan", "trips", "--count")
	require.Equal(t, "4\n", out)

	out, _ = sheaf(t, exitOK, "scan", "trips", "--order", "asc", "--null", `\N`)
	require.Equal(t, strings.Join([]string{
		"device,ts,fare,note",
		"d1,2026-01-01T00:00:00.000000Z,12.50,plain",
		`d1,2026-01-01T01:00:00.000000Z,0.10,\N`,
		`d2,2026-01-02T00:00:00.000000Z,\N,""`,
		`d3,2026-01-03T12:30:00.500000Z,-1.00,"a ""b"", c"`, ""}, "\n"), out)

	out, _ = sheaf(t, exitOK, "scan", "trips", "--where", `["device", "=", "d1"]`, "--where",
		`[["ts", ">", "2026-01-01"]]`, "--json")
	require.Equal(t, `{"device":"d1","ts":"2026-01-01T01:00:00.000000Z","fare":"0.10","note":null}`+"\n", out)

	out, errs := sheaf(t, exitOK, "scan", "trips", "--order", "desc", "--limit", "1", "--format", "table",
		"--columns", "fare,device")
	require.Equal(t, []string{"fare", "device"}, strings.Fields(strings.Split(out, "\n")[0]))
	require.Contains(t, strings.Split(out, "\n")[3], "-1.00  d3")
	require.Contains(t, errs, "1 row\n")
	require.Contains(t, errs, "--after '")

	for _, name := range []string{"all.parquet", "all.arrow", "all.arrows"} {
		path := filepath.Join(folder, "out-"+name)
		sheaf(t, exitOK, "export", "trips", path, "--order", "asc")
		require.Equal(t, int64(4), rowsIn(t, path), name)
		sheaf(t, exitUsage, "export", "trips", path)
		sheaf(t, exitOK, "export", "trips", path, "--overwrite")
	}
	_, errs = sheaf(t, exitError, "export", "trips", filepath.Join(folder, "none", "x.csv"))
	require.Contains(t, errs, "x.csv: no such file or directory")

	parts := filepath.Join(folder, "parts")
	out, _ = sheaf(t, exitOK, "export", "trips", parts, "--parts", "2", "--format", "arrow", "--json")
	require.Contains(t, out, `"rows":4`)

	out, _ = sheaf(t, exitOK, "explain", "trips", "--where", `["device", "in", ["d1", "d2"]]`, "--analyze")
	require.Contains(t, out, "access    shard")
	require.Contains(t, out, "3 returned")
	out, _ = sheaf(t, exitOK, "tables", "--json")
	require.Contains(t, out, `"sharding_key":["device"]`)
	out, _ = sheaf(t, exitOK, "tables", "describe", "trips")
	require.Contains(t, out, "decimal128(9, 2)")
	sheaf(t, exitOK, "tables", "fold", "trips")
	out, _ = sheaf(t, exitOK, "tables", "stats", "trips")
	require.Contains(t, out, "trips: 4 rows")
	require.Contains(t, out, "LARGEST SHARDING KEYS")
	require.Contains(t, out, `"d2"`)
	out, _ = sheaf(t, exitOK, "tables", "stats", "trips", "--json")
	require.Contains(t, out, `"largest_sharding_keys":[{"key":`)
	out, _ = sheaf(t, exitOK, "tables", "trucks")
	require.Equal(t, "no table's name begins with \"trucks\"\n", out)
	_, errs = sheaf(t, exitError, "serve", "--data", filepath.Join(folder, "other"), "--listen", address)
	require.Contains(t, errs, "another program listens on "+address)
	_, errs = sheaf(t, exitNotFound, "import", "trucks", trips)
	require.Contains(t, errs, "--sharding-key")

	_, errs = sheaf(t, exitNotFound, "scan", "tripz")
	require.Contains(t, errs, "[TABLE_NOT_FOUND]")
	require.Contains(t, errs, "trips")
	_, errs = sheaf(t, exitUsage, "scan", "trips", "--where", `["nope", "=", 1]`)
	require.Contains(t, errs, "nope")

	stop()
	out, _ = sheaf(t, exitOK, "doctor", "--data", data)
	require.Contains(t, out, "0 findings")
	_, errs = sheaf(t, exitUnavailable, "tables")
	require.Contains(t, errs, "no gateway answers at "+address+": dial tcp")
}

// rowsIn counts the rows of a file that this program wrote.
func rowsIn(t *testing.T, path string) (rows int64) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	switch filepath.Ext(path) {
	case ".parquet":
		reader, err := file.NewParquetReader(bytes.NewReader(content))
		require.NoError(t, err)
		return reader.NumRows()
	case ".arrow":
		reader, err := ipc.NewFileReader(bytes.NewReader(content))
		require.NoError(t, err)
		for i := range reader.NumRecords() {
			batch, err := reader.RecordBatch(i)
			require.NoError(t, err)
			rows += batch.NumRows()
		}
		return rows
	}
	reader, err := ipc.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	defer reader.Release()
	for reader.Next() {
		rows += reader.RecordBatch().NumRows()
	}
	require.NoError(t, reader.Err())
	return rows
}

func TestABrokenImportGoesOnWhereItStopped(t *testing.T) {
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "a.parquet"), filepath.Join(folder, "b.parquet")
	writeTrips(t, good, tripRows)
	writeTrips(t, bad, tripRows)
	whole, err := os.ReadFile(bad)
	require.NoError(t, err)
	address, _ := startGateway(t, filepath.Join(folder, "data"))

	// Damage in the last row group: the first one is read and sent.
	damaged := bytes.Clone(whole)
	pages := len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:])) // then the footer
	for i := pages * 3 / 4; i < pages; i++ {
		damaged[i] ^= 0xFF
	}
	require.NoError(t, os.WriteFile(bad, damaged, 0o644))
	load := []string{"import", "log", good, bad, "--sharding-key", "", "--resume", "load", "--batch-rows", "2",
		"--server", address}
	_, errs := sheaf(t, exitError, load...)
	require.Contains(t, errs, "b.parquet: ")
	require.Contains(t, errs, " of 8 rows are in log\n")

	require.NoError(t, os.WriteFile(bad, whole, 0o644))
	sheaf(t, exitOK, load...)
	sheaf(t, exitOK, load...) // and a third time: all of it is there
	out, _ := sheaf(t, exitOK, "scan", "log", "--count", "--server", address)
	require.Equal(t, "8\n", out, "a table without key shows what was doubled")
}

func TestFilesOfOneCommitMustFit(t *testing.T) {
	folder := t.TempDir()
	writeTrips(t, filepath.Join(folder, "a.parquet"), tripRows)
	writeTrips(t, filepath.Join(folder, "b.parquet"), strings.NewReplacer("d1", "e1", "d2", "e2", "d3", "e3").Replace(tripRows))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "c.parquet"), []byte("PAR1 not really PAR1"), 0o644))
	address, _ := startGateway(t, filepath.Join(folder, "data"))
	load := []string{"import", "trips", folder, "--sharding-key", "device", "--sorting-key", "ts", "--atomic",
		"--server", address}
	_, errs := sheaf(t, exitError, load...)
	require.Contains(t, errs, "c.parquet")
	_, errs = sheaf(t, exitNotFound, "scan", "trips", "--server", address)
	require.Contains(t, errs, "TABLE_NOT_FOUND")

	require.NoError(t, os.Remove(filepath.Join(folder, "c.parquet")))
	sheaf(t, exitOK, load...)
	out, _ := sheaf(t, exitOK, "scan", "trips", "--count", "--server", address)
	require.Equal(t, "8\n", out)
}
