package canonical_test

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/canonical"
)

// A slice of a dictionary column becomes plain strings; Restore makes a
// dictionary of just the values used.
func ExampleNormalize() {
	declared := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	builder := array.NewDictionaryBuilder(memory.DefaultAllocator, declared).(*array.BinaryDictionaryBuilder)
	defer builder.Release()
	for _, carrier := range []string{"UA", "DL", "UA", "9E", "UA"} {
		if err := builder.AppendString(carrier); err != nil {
			fmt.Println(err)
			return
		}
	}
	sent := array.NewSlice(builder.NewArray(), 2, 5)
	defer sent.Release()

	plain, err := canonical.Normalize(memory.DefaultAllocator, sent)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer plain.Release()
	fmt.Println(plain.DataType(), plain)

	restored, err := canonical.Restore(memory.DefaultAllocator, plain, declared)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer restored.Release()
	fmt.Println(restored.(*array.Dictionary).Dictionary())
	// Output:
	// utf8 ["UA" "9E" "UA"]
	// ["UA" "9E"]
}

// An array whose offsets lead out of its data is refused, not read.
func ExampleNormalize_hostile() {
	offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, 5, 0}))
	data := array.NewData(arrow.BinaryTypes.String, 2, []*memory.Buffer{nil, offsets, memory.NewBufferBytes(nil)}, nil, 0, 0)
	sent := array.NewStringData(data)
	_, err := canonical.Normalize(memory.DefaultAllocator, sent)
	fmt.Println(err)
	// Output: [BAD_ARRAY] the offsets of utf8 run backwards at row 1, from 5 to 0
}

// Types that only differ in layout have one canonical type.
func ExampleType() {
	views := arrow.LargeListViewOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.StringView})
	fmt.Println(canonical.Type(views))
	fmt.Println(canonical.CheckType(arrow.SparseUnionOf(nil, nil)))
	// Output:
	// list<item: utf8, nullable>
	// [TYPE_UNSUPPORTED] sparse_union<> cannot be stored: unions have no place in a table; use a struct with one nullable field per alternative
}
