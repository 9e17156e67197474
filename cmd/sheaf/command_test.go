package main

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

func TestEveryCommandTeaches(t *testing.T) {
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		if command.Name() == "completion" || command.Name() == "help" {
			return
		}
		require.NotEmpty(t, command.Short, command.CommandPath())
		if command.Parent() != nil && command.Parent().Parent() == nil && command.Name() != "version" {
			require.NotEmpty(t, command.Long, command.CommandPath())
			require.NotEmpty(t, command.Example, command.CommandPath())
		}
		for _, child := range command.Commands() {
			walk(child)
		}
	}
	walk(newRoot())
}

func TestEveryFlagNamesItsVariable(t *testing.T) {
	out, _ := sheaf(t, exitOK, "serve", "--help")
	for _, variable := range []string{"SHEAF_DATA", "SHEAF_LISTEN", "SHEAF_MEMORY", "SHEAF_MAX_MESSAGE", "SHEAF_LOG_LEVEL"} {
		require.Contains(t, out, "["+variable+"]")
	}
	out, _ = sheaf(t, exitOK, "tables", "fold", "--help")
	require.Contains(t, out, "[SHEAF_SERVER]")
}

func TestAFlagWinsOverItsVariable(t *testing.T) {
	t.Setenv("SHEAF_SERVER", "127.0.0.1:1")
	_, errs := sheaf(t, exitUnavailable, "tables")
	require.Contains(t, errs, "127.0.0.1:1")
	_, errs = sheaf(t, exitUnavailable, "tables", "--server", "127.0.0.1:2")
	require.Contains(t, errs, "127.0.0.1:2")
	t.Setenv("SHEAF_LIMIT", "many")
	_, errs = sheaf(t, exitUsage, "scan", "t")
	require.Contains(t, errs, "SHEAF_LIMIT")
	require.NotContains(t, errs, "strconv")
}

func TestWrongUsageIsExplained(t *testing.T) {
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"skan"}, `did you mean scan`},
		{[]string{"scan"}, "name one table"},
		{[]string{"scan", "t", "--nope"}, "unknown flag"},
		{[]string{"scan", "t", "--where", "a = 1"}, "--where must be a JSON list"},
		{[]string{"scan", "t", "--format", "xml"}, "known are table, csv"},
		{[]string{"scan", "t", "--output", "x.docx"}, `".docx" names no format`},
		{[]string{"scan", "t", "--limit", "-1"}, "negative"},
		{[]string{"scan", "t", "--limit", "x"}, `invalid argument "x" for "--limit" flag: invalid syntax`},
		{[]string{"scan", "t", "--output", "rows"}, "rows has no extension"},
		{[]string{"serve"}, "--data DIR"},
		{[]string{"serve", "--data", "x", "--memory", "lots"}, `"lots" is no size`},
		{[]string{"serve", "--data", "x", "--memory", "1MiB"}, `--memory 1MiB is too little: a gateway needs 64MiB at least`},
		{[]string{"serve", "--data", "x", "--log-level", "loud"}, "debug, info"},
		{[]string{"doctor"}, "--data DIR"},
		{[]string{"import", "t"}, "at least one Parquet file"},
		{[]string{"export", "t"}, "where it goes"},
		{[]string{"tables", "a", "b"}, "one prefix at most"},
	} {
		_, errs := sheaf(t, exitUsage, wrong.args...)
		require.Contains(t, errs, wrong.says, wrong.args)
		require.Contains(t, errs, "--help")
	}
}

func TestConditionsOfSeveralFlagsAreJoined(t *testing.T) {
	for _, one := range []struct {
		given []string
		want  string
	}{
		{nil, ""},
		{[]string{`["a","=",1]`}, `[["a","=",1]]`},
		{[]string{`["a","is null"]`}, `[["a","is null"]]`},
		{[]string{`[["a","b"],"=",[1,2]]`}, `[[["a","b"],"=",[1,2]]]`},
		{[]string{`[["a","=",1],["b","<",2]]`}, `[["a","=",1],["b","<",2]]`},
		{[]string{`[["a","=",1],["b","<",2]]`, `["c","=",9007199254740993]`}, `[["a","=",1],["b","<",2],["c","=",9007199254740993]]`},
		{[]string{`[[["a","=",1]],[["b","=",2]]]`}, `[[["a","=",1]],[["b","=",2]]]`},
	} {
		got, err := joinConditions(one.given)
		require.NoError(t, err)
		require.Equal(t, one.want, string(got))
	}
	_, err := joinConditions([]string{`[[["a","=",1]],[["b","=",2]]]`, `["c","=",1]`})
	require.ErrorContains(t, err, "alternatives")
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]byteSize{
		"1": 1, "1024": 1024, "64MiB": 64 << 20, "1GiB": 1 << 30, "500MB": 500e6, "5 kB": 5000, "7B": 7} {
		var got byteSize
		require.NoError(t, got.Set(text))
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "0", "-5", "1.5GiB", "GiB", "99999999TiB", "10 XB"} {
		var got byteSize
		require.Error(t, got.Set(text), text)
	}
	size := byteSize(64 << 20)
	require.Equal(t, "64MiB", size.String())
	require.Equal(t, "0 B", bytesText(0))
	require.Equal(t, "1.50 kB", bytesText(1500))
	require.Equal(t, "1.00 MB", bytesText(999_999))
	require.Equal(t, "966 MB", bytesText(966_000_000))
}

func TestValuesAsText(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	for _, one := range []struct {
		dt         arrow.DataType
		json       string // as arrow reads it
		text, want string // of cell and appendJSON
	}{
		{arrow.PrimitiveTypes.Int64, `[9007199254740993]`, "9007199254740993", "9007199254740993"},
		{arrow.FixedWidthTypes.Boolean, `[true]`, "true", "true"},
		{arrow.PrimitiveTypes.Float64, `[0.1]`, "0.1", "0.1"},
		{arrow.BinaryTypes.String, `["a\"b\u0007<日>"]`, "a\"b\a<日>", `"a\"b\u0007<日>"`},
		{arrow.BinaryTypes.Binary, `["AAH/"]`, "AAH/", `"AAH/"`},
		{&arrow.Decimal128Type{Precision: 9, Scale: 2}, `["12.50"]`, "12.50", `"12.50"`},
		{&arrow.Decimal256Type{Precision: 50, Scale: 0}, `["123456789012345678901234567890"]`, "123456789012345678901234567890", `"123456789012345678901234567890"`},
		{arrow.FixedWidthTypes.Date32, `["1582-10-15"]`, "1582-10-15", `"1582-10-15"`},
		{&arrow.TimestampType{Unit: arrow.Second}, `["2026-01-01 00:00:00"]`, "2026-01-01T00:00:00", `"2026-01-01T00:00:00"`},
		{&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, `["2026-01-01 00:00:00.5Z"]`, "2026-01-01T00:00:00.500000000Z", `"2026-01-01T00:00:00.500000000Z"`},
		{&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Paris"}, `["2023-08-24T08:00:00Z"]`, "2023-08-24T10:00:00.000+02:00", `"2023-08-24T10:00:00.000+02:00"`},
		{arrow.FixedWidthTypes.Time64us, `["23:59:59.000001"]`, "23:59:59.000001", `"23:59:59.000001"`},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), `[[1,null,3]]`, "[1,null,3]", "[1,null,3]"},
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}), `[{"x":"y"}]`, `{"x":"y"}`, `{"x":"y"}`},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["word"]`, "word", `"word"`},
	} {
		arr, _, err := array.FromJSON(mem, one.dt, strings.NewReader(one.json))
		require.NoError(t, err, one.dt)
		text, null := cell(arr, 0)
		require.False(t, null, one.dt)
		require.Equal(t, one.text, text, one.dt)
		require.Equal(t, one.want, string(appendJSON(nil, arr, 0)), one.dt)
		arr.Release()
		empty, _, err := array.FromJSON(mem, one.dt, strings.NewReader(`[null]`))
		require.NoError(t, err, one.dt)
		_, null = cell(empty, 0)
		require.True(t, null, one.dt)
		require.Equal(t, "null", string(appendJSON(nil, empty, 0)))
		empty.Release()
	}
	for value, want := range map[int64]string{0: "PT0S", 1500: "PT1.5S", -1: "-PT0.001S", math.MinInt64: "-PT9223372036854775.808S"} {
		require.Equal(t, want, durationText(value, arrow.Millisecond))
	}
	for value, want := range map[float64]string{math.NaN(): "NaN", math.Inf(-1): "-Infinity", math.Copysign(0, -1): "-0"} {
		text, _ := floatText(value, 64)
		require.Equal(t, want, text)
	}
}

func TestTablesAreAlignedAndFitTheTerminal(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "rest", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(
		`[{"id": 7, "name": "日本", "rest": "x"}, {"id": 1234, "name": null, "rest": "evil\u001b[2J"}]`))
	require.NoError(t, err)
	defer batch.Release()

	var out bytes.Buffer
	table := newTableWriter(&out, schema, 0)
	require.NoError(t, table.write(batch))
	require.NoError(t, table.finish())
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, "    7  日本    x", lines[3])
	require.Contains(t, lines[4], "1234  null")
	require.Contains(t, lines[4], `evil\x1b[2J`)
	require.NotContains(t, out.String(), "\x1b")

	out.Reset()
	table = newTableWriter(&out, schema, 14)
	require.NoError(t, table.write(batch))
	require.NoError(t, table.finish())
	for _, line := range strings.Split(out.String(), "\n")[:5] {
		require.LessOrEqual(t, textWidth(line), 14)
	}
	require.Contains(t, out.String(), "1 column not shown: rest")
	require.Equal(t, "日…", shorten("日本語", 4))
}

func TestProgressSaysRowsSpeedAndTimeLeft(t *testing.T) {
	p := startProgress(&bytes.Buffer{}, false)
	p.total.Store(4_000_000)
	p.add(1_000_000, 250_000_000)
	require.Equal(t, "1,000,000 rows  125 MB/s  25%  ETA 6s", p.line(2*time.Second))
	require.Equal(t, "-1,234,567", grouped(-1_234_567))
	p.end()
}

func TestAnInterruptIsReportedAsOne(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, []string{"tables", "--server", "127.0.0.1:1"}, nil, &out, &errs))
	require.Equal(t, "sheaf: interrupted\n", errs.String())
}
