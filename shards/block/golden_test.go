package block

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

var encodingNames = map[byte]string{
	encNulls: "nulls", encConstant: "constant", encRaw: "raw", encRawLZ4: "raw in LZ4", encPacked: "packed",
	encStepped: "stepped", encScaled: "scaled", encText: "text", encTextLZ4: "text in LZ4", encDict: "dictionary",
	encList: "list", encFixedList: "fixed-size list", encStruct: "struct",
}

// goldenTypes are the types that the scripts name.
var goldenTypes = map[string]arrow.DataType{
	"null": arrow.Null, "bool": arrow.FixedWidthTypes.Boolean,
	"int8": arrow.PrimitiveTypes.Int8, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
	"uint16": arrow.PrimitiveTypes.Uint16, "uint64": arrow.PrimitiveTypes.Uint64,
	"float32": arrow.PrimitiveTypes.Float32, "float64": arrow.PrimitiveTypes.Float64,
	"date32": arrow.FixedWidthTypes.Date32, "decimal128": &arrow.Decimal128Type{Precision: 38, Scale: 2},
	"timestamp": &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"},
	"string":    arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary,
	"fixed4":    &arrow.FixedSizeBinaryType{ByteWidth: 4},
	"list":      arrow.ListOf(arrow.PrimitiveTypes.Int32),
	"fixedlist": arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32),
	"struct":    arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}),
	"map":       arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
}

func goldenType(t *testing.T, d *datadriven.TestData) arrow.DataType {
	var name string
	d.ScanArgs(t, "type", &name)
	dt, ok := goldenTypes[name]
	require.True(t, ok, "type %s", name)
	return dt
}

// rowsOf is the rows of a script: JSON, repeated if it says repeat=n.
func rowsOf(t *testing.T, d *datadriven.TestData, dt arrow.DataType) arrow.Array {
	arr, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(d.Input))
	require.NoError(t, err)
	repeat := 1
	d.MaybeScanArgs(t, "repeat", &repeat)
	if repeat == 1 {
		return arr
	}
	many, err := array.Concatenate(slicesRepeat(arr, repeat), memory.DefaultAllocator)
	require.NoError(t, err)
	return many
}

func slicesRepeat(arr arrow.Array, n int) []arrow.Array {
	out := make([]arrow.Array, n)
	for i := range out {
		out[i] = arr
	}
	return out
}

// TestEncode shows what the encoder makes of columns, byte by byte: the
// scripts stand beside docs/format-blocks.md.
func TestEncode(t *testing.T) {
	datadriven.RunTest(t, "testdata/encode", func(t *testing.T, d *datadriven.TestData) string {
		dt := goldenType(t, d)
		arr := rowsOf(t, d, dt)
		defer arr.Release()
		data := encode(t, arr.Len(), []uint32{1}, arr)
		r, err := Open(data)
		require.NoError(t, err)
		return fmt.Sprintf("%s, %d bytes\n%s", describe(data), r.ChunkBytes(1), dump(data))
	})
}

// TestDecode reads blocks written by earlier versions: what stands in the
// script must be read for ever, whatever the encoder writes today.
func TestDecode(t *testing.T) {
	seen := map[byte]bool{}
	datadriven.RunTest(t, "testdata/decode", func(t *testing.T, d *datadriven.TestData) string {
		data, err := hex.DecodeString(strings.Join(strings.Fields(d.Input), ""))
		require.NoError(t, err)
		r, err := Open(data)
		require.NoError(t, err)
		require.Equal(t, []uint32{1}, r.Columns())
		v := NewVector(memory.DefaultAllocator, goldenType(t, d))
		require.NoError(t, r.Append(v, 1, 0, r.Rows()))
		require.NoError(t, r.AppendRows(v, 1, countTo(r.Rows())))
		both := v.NewArray()
		defer both.Release()
		n := r.Rows()
		arr, again := array.NewSlice(both, 0, int64(n)), array.NewSlice(both, int64(n), int64(2*n))
		defer arr.Release()
		defer again.Release()
		require.Equal(t, fmt.Sprint(arr), fmt.Sprint(again), "scan and picks")
		seen[r.chunk(0)[1]&encMask] = true
		return fmt.Sprintf("%s\n%v\n", describe(data), arr)
	})
	for enc, name := range encodingNames {
		require.True(t, seen[enc], "no block with encoding %s", name)
	}
}

func describe(data []byte) string {
	r, err := Open(data)
	if err != nil {
		return err.Error()
	}
	enc := r.chunk(0)[1]
	text := encodingNames[enc&encMask]
	if enc&flagValid != 0 {
		text += ", with nulls"
	}
	return text
}

// dump is a block in hex: header, directory, the chunk in lines of 32 bytes,
// checksum.
func dump(data []byte) string {
	var out strings.Builder
	line := func(b []byte) { fmt.Fprintf(&out, "%x\n", b) }
	line(data[:headerBytes])
	line(data[headerBytes : headerBytes+entryBytes])
	body := data[headerBytes+entryBytes : len(data)-checksumBytes]
	for len(body) > 0 {
		n := min(32, len(body))
		line(body[:n])
		body = body[n:]
	}
	line(data[len(data)-checksumBytes:])
	return out.String()
}
