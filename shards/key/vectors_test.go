package key_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/canonical"
	"github.com/sheaf-db/sheaf/shards/key"
)

// testdata/vectors.json is the truth about keys for every language. Running
// with -update adds what vectorSources has new; what it had before must not
// change.
var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

type vectorFile struct {
	About   []string `json:"about"`
	Vectors []vector `json:"vectors"`
}

// vector is one key. Values are JSON true and false for bool, text for string,
// hex for binary, and the decimal digits of the integer for all other types: of
// days, of the column's unit, of the scaled decimal.
type vector struct {
	Types    []string       `json:"types"`
	Sharding int            `json:"sharding"` // of the columns, how many are the sharding key
	Values   []any          `json:"values"`
	Encoded  string         `json:"encoded"`  // hex
	XXHash64 string         `json:"xxhash64"` // of the sharding part, 16 hex digits
	Slices   map[string]int `json:"slices"`   // slice count to slice
}

var about = []string{
	"Keys of Sheaf tables, pinned for every language: see docs/format.md.",
	"types: Arrow types as pyarrow prints them; sharding: how many of the columns are the sharding key.",
	"values: bool as true or false, string as text, binary as hex, every other type as the digits of its integer (days, units, scaled decimal).",
	"encoded: the key in hex; xxhash64: seed 0, of the encoded sharding columns; slices: slice count to slice, high64(xxhash64 * count).",
}

func loadVectors(t testing.TB) []vector {
	text, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	var file vectorFile
	require.NoError(t, json.Unmarshal(text, &file))
	return file.Vectors
}

func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	vectors := loadVectors(t)
	require.Greater(t, len(vectors), 200)
	for i, v := range vectors {
		t.Run(fmt.Sprintf("%d %s", i, strings.Join(v.Types, ",")), func(t *testing.T) { v.check(t) })
	}
}

func (v vector) check(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	types, columns := v.columns(t, mem)
	defer release(columns)
	keys := &key.Keys{}
	require.NoError(t, key.Encode(keys, columns))
	require.Equal(t, 1, keys.Len())
	require.Equal(t, v.Encoded, hex.EncodeToString(keys.At(0)))

	end, err := key.Prefix(types, keys.At(0), v.Sharding)
	require.NoError(t, err)
	hash := key.Hash(keys.At(0)[:end])
	require.Equal(t, v.XXHash64, fmt.Sprintf("%016x", hash))
	for count, slice := range v.Slices {
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		require.Equal(t, slice, key.SliceOf(hash, n), "of %d slices", n)
		got, err := key.Slices(nil, keys, types, v.Sharding, n)
		require.NoError(t, err)
		require.Equal(t, []uint16{uint16(slice)}, got)
	}

	decoded, err := key.Decode(mem, types, keys)
	require.NoError(t, err)
	defer release(decoded)
	for i, column := range columns {
		require.True(t, arrow.TypeEqual(column.DataType(), decoded[i].DataType()))
		require.True(t, array.Equal(column, decoded[i]), "%s is not %s", decoded[i], column)
	}
}

// TestVectorsOrder compares every two keys of the same types.
func TestVectorsOrder(t *testing.T) {
	vectors := loadVectors(t)
	pairs := 0
	for _, a := range vectors {
		for _, b := range vectors {
			if slices.Equal(a.Types, b.Types) {
				left, err := hex.DecodeString(a.Encoded)
				require.NoError(t, err)
				right, err := hex.DecodeString(b.Encoded)
				require.NoError(t, err)
				require.Equal(t, compareValues(t, a, b), bytes.Compare(left, right), "%v and %v", a.Values, b.Values)
				pairs++
			}
		}
	}
	require.Greater(t, pairs, 1000)
}

// compareValues compares typed values column by column.
func compareValues(t *testing.T, a, b vector) int {
	for i, name := range a.Types {
		left, right := a.Values[i], b.Values[i]
		order := 0
		switch {
		case name == "bool":
			order = map[bool]int{true: 1}[left.(bool)] - map[bool]int{true: 1}[right.(bool)]
		case strings.Contains(name, "string") || strings.Contains(name, "binary"):
			order = strings.Compare(left.(string), right.(string)) // hex compares as its bytes do
		default:
			order = number(t, left).Cmp(number(t, right))
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

func number(t testing.TB, value any) *big.Int {
	n, ok := new(big.Int).SetString(value.(string), 10)
	require.True(t, ok, "%v", value)
	return n
}

// columns are the vector's values in canonical layout, by way of the layout
// that its types declare.
func (v vector) columns(t testing.TB, mem memory.Allocator) ([]arrow.DataType, []arrow.Array) {
	var types []arrow.DataType
	var columns []arrow.Array
	for i, name := range v.Types {
		declared := parseType(t, name)
		require.NoError(t, key.Supported(declared))
		plain := oneValue(t, mem, canonical.Type(declared), v.Values[i])
		restored, err := canonical.Restore(mem, plain, declared)
		require.NoError(t, err)
		column, err := canonical.Normalize(mem, restored)
		require.NoError(t, err)
		restored.Release()
		plain.Release()
		types, columns = append(types, column.DataType()), append(columns, column)
	}
	return types, columns
}

// oneValue is an array of one row of a canonical type.
func oneValue(t testing.TB, mem memory.Allocator, dt arrow.DataType, value any) arrow.Array {
	var buffers []*memory.Buffer
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes([]byte{map[bool]byte{true: 1}[value.(bool)]})}
	case *arrow.StringType:
		buffers = []*memory.Buffer{nil, offsetsOf(len(value.(string))), memory.NewBufferBytes([]byte(value.(string)))}
	case *arrow.BinaryType:
		content, err := hex.DecodeString(value.(string))
		require.NoError(t, err)
		buffers = []*memory.Buffer{nil, offsetsOf(len(content)), memory.NewBufferBytes(content)}
	case *arrow.FixedSizeBinaryType:
		content, err := hex.DecodeString(value.(string))
		require.NoError(t, err)
		require.Len(t, content, dt.ByteWidth)
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes(content)}
	default:
		n, width := number(t, value), dt.(arrow.FixedWidthDataType).Bytes()
		if n.Sign() < 0 {
			n.Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
		}
		content := n.FillBytes(make([]byte, width))
		slices.Reverse(content)
		buffers = []*memory.Buffer{nil, memory.NewBufferBytes(content)}
	}
	data := array.NewData(dt, 1, buffers, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

func offsetsOf(length int) *memory.Buffer {
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, int32(length)}))
}

func release(columns []arrow.Array) {
	for _, column := range columns {
		column.Release()
	}
}

// parseType reads the types of the vectors as pyarrow prints them.
func parseType(t testing.TB, name string) arrow.DataType {
	simple := map[string]arrow.DataType{
		"bool": arrow.FixedWidthTypes.Boolean,
		"int8": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32, "int64": arrow.PrimitiveTypes.Int64,
		"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16, "uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
		"string": arrow.BinaryTypes.String, "large_string": arrow.BinaryTypes.LargeString, "string_view": arrow.BinaryTypes.StringView,
		"binary": arrow.BinaryTypes.Binary, "large_binary": arrow.BinaryTypes.LargeBinary, "binary_view": arrow.BinaryTypes.BinaryView,
		"date32[day]": arrow.FixedWidthTypes.Date32, "date64[ms]": arrow.FixedWidthTypes.Date64,
		"time32[s]": arrow.FixedWidthTypes.Time32s, "time32[ms]": arrow.FixedWidthTypes.Time32ms,
		"time64[us]": arrow.FixedWidthTypes.Time64us, "time64[ns]": arrow.FixedWidthTypes.Time64ns,
	}
	if dt, ok := simple[name]; ok {
		return dt
	}
	units := map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond}
	at := strings.IndexAny(name, "[(<")
	require.Positive(t, at, name)
	base, arguments := name[:at], strings.TrimRight(name[at+1:], "])>")
	first, second, _ := strings.Cut(arguments, ", ")
	integer := func(text string) int {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	switch base {
	case "fixed_size_binary":
		return &arrow.FixedSizeBinaryType{ByteWidth: integer(first)}
	case "timestamp":
		return &arrow.TimestampType{Unit: units[first], TimeZone: strings.TrimPrefix(second, "tz=")}
	case "duration":
		return &arrow.DurationType{Unit: units[first]}
	case "decimal32":
		return &arrow.Decimal32Type{Precision: int32(integer(first)), Scale: int32(integer(second))}
	case "decimal64":
		return &arrow.Decimal64Type{Precision: int32(integer(first)), Scale: int32(integer(second))}
	case "decimal128":
		return &arrow.Decimal128Type{Precision: int32(integer(first)), Scale: int32(integer(second))}
	case "decimal256":
		return &arrow.Decimal256Type{Precision: int32(integer(first)), Scale: int32(integer(second))}
	case "dictionary":
		indices, _, _ := strings.Cut(strings.TrimPrefix(second, "indices="), ",")
		return &arrow.DictionaryType{IndexType: parseType(t, indices), ValueType: parseType(t, strings.TrimPrefix(first, "values="))}
	case "run_end_encoded":
		return arrow.RunEndEncodedOf(parseType(t, strings.TrimPrefix(first, "run_ends: ")), parseType(t, strings.TrimPrefix(second, "values: ")))
	}
	require.Fail(t, "unknown type", name)
	return nil
}

// writeVectors encodes vectorSources. Vectors that were in the file keep their
// place and must come out as they were.
func writeVectors(t *testing.T) {
	var file vectorFile
	if _, err := os.Stat(vectorsFile); err == nil {
		file.Vectors = loadVectors(t)
	}
	known := map[string]bool{}
	id := func(v vector) string { return fmt.Sprintf("%q %d %q", v.Types, v.Sharding, v.Values) }
	for _, v := range file.Vectors {
		known[id(v)] = true
	}
	for _, v := range vectorSources() {
		if known[id(v)] {
			continue
		}
		known[id(v)] = true
		types, columns := v.columns(t, memory.DefaultAllocator)
		keys := &key.Keys{}
		require.NoError(t, key.Encode(keys, columns))
		end, err := key.Prefix(types, keys.At(0), v.Sharding)
		require.NoError(t, err)
		hash := key.Hash(keys.At(0)[:end])
		v.Encoded, v.XXHash64 = hex.EncodeToString(keys.At(0)), fmt.Sprintf("%016x", hash)
		v.Slices = map[string]int{}
		for _, count := range []int{1, 2, 16, 1000, 1024} {
			v.Slices[strconv.Itoa(count)] = key.SliceOf(hash, count)
		}
		file.Vectors = append(file.Vectors, v)
	}
	var out bytes.Buffer
	out.WriteString("{\n \"about\": [")
	line := func(first bool, value any) {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		require.NoError(t, encoder.Encode(value))
		if !first {
			out.WriteString(",")
		}
		out.WriteString("\n  ")
		out.Write(bytes.TrimSpace(text.Bytes()))
	}
	for i, text := range about {
		line(i == 0, text)
	}
	out.WriteString("\n ],\n \"vectors\": [")
	for i, v := range file.Vectors {
		line(i == 0, v)
	}
	out.WriteString("\n ]\n}\n")
	require.NoError(t, os.WriteFile(vectorsFile, out.Bytes(), 0o644))
}
