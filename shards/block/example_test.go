package block_test

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/sheaf-db/sheaf/shards/block"
)

func Example() {
	mem := memory.DefaultAllocator
	rows := func(dt arrow.DataType, json string) arrow.Array {
		arr, _, err := array.FromJSON(mem, dt, strings.NewReader(json))
		if err != nil {
			panic(err)
		}
		return arr
	}
	ids := []uint32{1, 2}
	columns := []arrow.Array{
		rows(arrow.PrimitiveTypes.Int64, `[100, 101, 102, 103]`),
		rows(arrow.BinaryTypes.String, `["N14228", null, "N24211", "N619AA"]`),
	}
	data, err := block.NewEncoder().Encode(nil, 4, ids, columns)
	if err != nil {
		panic(err)
	}

	// A scan: rows of several blocks go into one vector, then out as an array.
	r, err := block.Open(data)
	if err != nil {
		panic(err)
	}
	numbers := block.NewVector(mem, arrow.PrimitiveTypes.Int64)
	for range 2 {
		if err := r.Append(numbers, 1, 1, r.Rows()); err != nil {
			panic(err)
		}
	}
	out := numbers.NewArray()
	defer out.Release()
	fmt.Println(out)

	// A lookup: picked rows only.
	tails := block.NewVector(mem, arrow.BinaryTypes.String)
	if err := r.AppendRows(tails, 2, []uint32{3, 1}); err != nil {
		panic(err)
	}
	picked := tails.NewArray()
	defer picked.Release()
	fmt.Println(picked)
	// Output:
	// [101 102 103 101 102 103]
	// ["N619AA" (null)]
}

func ExampleZoneOf() {
	arr, _, err := array.FromJSON(memory.DefaultAllocator, arrow.PrimitiveTypes.Int16, strings.NewReader(`[3, null, -2]`))
	if err != nil {
		panic(err)
	}
	defer arr.Release()
	z := block.ZoneOf(arr)
	fmt.Printf("%d rows, %d nulls, from %x to %x\n", z.Rows, z.Nulls, z.Min, z.Max)
	// Output: 3 rows, 1 nulls, from 7ffe to 8003
}
