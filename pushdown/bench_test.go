package pushdown

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards"
)

// benchQueries are filters as clients send them, on a table like events: one
// device; a device and a range of time; a hundred devices; a filter that only
// the rows can answer; a mixture of all.
func benchQueries() map[string]string {
	device := `["device","=","device-00042"]`
	times := `["ts",">=","2024-01-05T00:00:00"],["ts","<","2024-01-06"]`
	residual := `["load","between",[0.25,0.5]],["status","in",["ok","idle","busy"]],["message","starts_with","retried"]`
	devices := `["device","in",["device-00000"`
	for i := range 99 {
		devices += `,"device-0` + string([]byte{'0' + byte(i/10), '0' + byte(i%10)}) + `11"`
	}
	devices += `]]`
	return map[string]string{
		"one key":     "[" + device + "]",
		"key, range":  "[" + device + "," + times + "]",
		"100 keys":    "[" + devices + "]",
		"residual":    "[" + residual + "]",
		"any of four": "[[" + device + "],[" + devices + "," + times + "],[" + residual + `],[["device",">","device-09990"]]]`,
	}
}

func benchEvents() *shards.Schema {
	text, float := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64
	return newTestSchema(
		[]string{"device", "ts", "temperature", "load", "count", "status", "message"},
		[]arrow.DataType{text, &arrow.TimestampType{Unit: arrow.Microsecond}, float, float, arrow.PrimitiveTypes.Int64, text, text},
		[]string{"shard", "sort", "", "", "", "", ""}, 16)
}

// BenchmarkParseWhere: JSON to a predicate tree.
func BenchmarkParseWhere(b *testing.B) {
	schema := benchEvents()
	for name, where := range benchQueries() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseWhere([]byte(where), schema); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlan: predicate tree to ranges, slices, and a filter for the scan.
func BenchmarkPlan(b *testing.B) {
	schema := benchEvents()
	for name, where := range benchQueries() {
		b.Run(name, func(b *testing.B) {
			e, err := ParseWhere([]byte(where), schema)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				p, err := Build(schema, e)
				if err != nil {
					b.Fatal(err)
				}
				p.Filter()
			}
		})
	}
}
