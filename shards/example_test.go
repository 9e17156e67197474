package shards_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards"
)

// A table is made from a declared schema and the names of its key columns. Its
// schema names them again in its metadata, so that a table is copied by writing
// what was read.
func ExampleStore_CreateTable() {
	ctx := context.Background()
	store, err := shards.Open(ctx, "store", shards.Options{FS: vfs.NewMem()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	name, err := shards.ParseName("plant.readings")
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := store.CreateTable(ctx, name, shards.Spec{
		Schema: arrow.NewSchema([]arrow.Field{
			{Name: "device", Type: arrow.BinaryTypes.String},
			{Name: "at", Type: arrow.FixedWidthTypes.Timestamp_us},
			{Name: "value", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		}, nil),
		Sharding: []string{"device"}, Sorting: []string{"at"}, Slices: 4,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	metadata := table.Schema().Arrow().Metadata()
	for _, key := range metadata.Keys() {
		value, _ := metadata.GetValue(key)
		fmt.Println(key, value)
	}
	_, err = store.Table(shards.Name{Namespace: "plant", Table: "reading"})
	fmt.Println(err)
	// Output:
	// sheaf.sharding_key ["device"]
	// sheaf.sorting_key ["at"]
	// sheaf.slices 4
	// [TABLE_NOT_FOUND] there is no table plant.reading: did you mean plant.readings?
}
