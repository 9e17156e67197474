package canonical

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const benchRows = 8192

func benchStrings(distinct int) arrow.Array {
	builder := array.NewStringBuilder(memory.DefaultAllocator)
	defer builder.Release()
	for i := range benchRows {
		builder.Append(fmt.Sprintf("value-%d", i*7919%distinct))
	}
	return builder.NewArray()
}

func benchInts(distinct int) arrow.Array {
	builder := array.NewInt64Builder(memory.DefaultAllocator)
	defer builder.Release()
	for i := range benchRows {
		builder.Append(int64(i * 7919 % distinct))
	}
	return builder.NewArray()
}

func dictionaryOfType(values arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: values}
}

var benchLayouts = []struct {
	name     string
	arr      arrow.Array
	declared arrow.DataType
}{
	{"int64", benchInts(benchRows), arrow.PrimitiveTypes.Int64},
	{"string", benchStrings(benchRows), arrow.BinaryTypes.String},
	{"large_string", benchStrings(benchRows), arrow.BinaryTypes.LargeString},
	{"string_view", benchStrings(benchRows), arrow.BinaryTypes.StringView},
	{"dictionary of 20 strings", benchStrings(20), dictionaryOfType(arrow.BinaryTypes.String)},
	{"dictionary of 5000 strings", benchStrings(5000), dictionaryOfType(arrow.BinaryTypes.String)},
	{"dictionary of 20 ints", benchInts(20), dictionaryOfType(arrow.PrimitiveTypes.Int64)},
	{"run-end encoded", benchInts(20), arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64)},
}

func BenchmarkRestore(b *testing.B) {
	for _, layout := range benchLayouts {
		b.Run(layout.name, func(b *testing.B) {
			for b.Loop() {
				restored, err := Restore(memory.DefaultAllocator, layout.arr, layout.declared)
				if err != nil {
					b.Fatal(err)
				}
				restored.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}

func BenchmarkNormalize(b *testing.B) {
	for _, layout := range benchLayouts {
		b.Run(layout.name, func(b *testing.B) {
			foreign, err := Restore(memory.DefaultAllocator, layout.arr, layout.declared)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				normal, err := Normalize(memory.DefaultAllocator, foreign)
				if err != nil {
					b.Fatal(err)
				}
				normal.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
		})
	}
}
