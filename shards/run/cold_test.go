package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/key"
)

// A lookup that finds nothing in memory reads the root and one leaf of the block
// index, one filter and one block, and no more of a run of a hundred blocks; one
// for a key that is not there leaves out the block.
func TestAColdLookupReadsLittleBesidesItsBlock(t *testing.T) {
	const columns, rows = 6, 200_000
	b := newBed(t)
	b.blockRows, b.leafBlocks = limits.BlockRows, leafBlocks
	r := b.wideRun(rows, columns, false)
	total, err := r.Total(3)
	require.NoError(t, err)
	perBlock := total.Bytes / uint64(total.Blocks)
	lookup := func(shard string) (int, Counters) {
		b.cache = NewCache(1 << 20)
		cold := Open(r.o)
		cold.o.Cache = b.cache
		k := []byte(row{shard: shard, sort: 2}.key())
		return b.drain(Request{Types: wideTypes(columns), Columns: wideIDs(columns), Ranges: []Range{{Low: k, High: key.Next(k)}}}, cold.Source(3))
	}
	n, c := lookup("d023456")
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, c.BlocksRead)
	require.Less(t, c.BytesRead, perBlock+perBlock/10+5000, "a block has %d bytes", perBlock)
	n, c = lookup("d023456x")
	require.Zero(t, n)
	require.Zero(t, c.BlocksRead)
	require.Less(t, c.BytesRead, uint64(5000))
}
