package shards

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

// A column whose nulls are large would make much of little: the rows that a
// table has get one each whenever they are read.
func TestColumnsOfLargeNullsAreNotAdded(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:int64 v:int64", "k", "", 4)
	add := func(items int32) error {
		dt := arrow.FixedSizeListOf(items, arrow.PrimitiveTypes.Int8)
		_, err := table.Alter(context.Background(), Change{
			AddColumns: arrow.NewSchema([]arrow.Field{{Name: "wide", Type: dt, Nullable: true}}, nil),
		})
		return err
	}
	require.True(t, fault.Is(add(1<<20), "TYPE_UNSUPPORTED"))
	require.NoError(t, add(32<<10))
}
