package key_test

import (
	"bytes"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/key"
)

// exampleColumns are two key columns: tail number, hour.
func exampleColumns() ([]arrow.DataType, []arrow.Array) {
	tails := array.NewStringBuilder(memory.DefaultAllocator)
	hours := array.NewInt16Builder(memory.DefaultAllocator)
	defer tails.Release()
	defer hours.Release()
	tails.AppendValues([]string{"N1", "N1", "N10"}, nil)
	hours.AppendValues([]int16{-1, 5, 0}, nil)
	return []arrow.DataType{arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int16}, []arrow.Array{tails.NewArray(), hours.NewArray()}
}

// Whole columns become one key per row, in the order of the rows' values.
func ExampleEncode() {
	types, columns := exampleColumns()
	keys := &key.Keys{}
	if err := key.Encode(keys, columns); err != nil {
		fmt.Println(err)
		return
	}
	for i := range keys.Len() {
		fmt.Printf("%x  %s\n", keys.At(i), key.String(types, keys.At(i)))
	}
	fmt.Println(bytes.Compare(keys.At(0), keys.At(1)), bytes.Compare(keys.At(1), keys.At(2)))
	// Output:
	// 4e3100017fff  "N1", -1
	// 4e3100018005  "N1", 5
	// 4e313000018000  "N10", 0
	// -1 -1
}

// A row that has no key is named.
func ExampleEncode_null() {
	hours := array.NewInt16Builder(memory.DefaultAllocator)
	defer hours.Release()
	hours.Append(1)
	hours.AppendNull()
	fmt.Println(key.Encode(&key.Keys{}, []arrow.Array{hours.NewArray()}))
	// Output: row 1: key column 0 is null
}

// The keys of one sharding-key value are the keys between its encoding and the
// next.
func ExampleNext() {
	_, columns := exampleColumns()
	low, _ := key.AppendValue(nil, columns[0], 0)
	fmt.Printf("[%x, %x)\n", low, key.Next(low))
	// Output: [4e310001, 4e310002)
}

// The sharding columns come first in a key, and their bytes pick the slice.
func ExampleSliceOf() {
	types, columns := exampleColumns()
	keys := &key.Keys{}
	_ = key.Encode(keys, columns)
	for i := range keys.Len() {
		end, _ := key.Prefix(types, keys.At(i), 1)
		fmt.Println(key.SliceOf(key.Hash(keys.At(i)[:end]), 16))
	}
	// Output:
	// 4
	// 4
	// 5
}

// Keys decode to the columns they were made from.
func ExampleDecode() {
	types, columns := exampleColumns()
	keys := &key.Keys{}
	_ = key.Encode(keys, columns)
	decoded, err := key.Decode(memory.DefaultAllocator, types, keys)
	fmt.Println(decoded, err)
	// Output: [["N1" "N1" "N10"] [-1 5 0]] <nil>
}
