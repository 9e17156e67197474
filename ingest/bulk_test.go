package ingest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards"
)

// bulkColumns are of every shape that is dealt out slice by slice in another way.
const bulkColumns = "k:string s:int64 v:int32 f:float64 d:dict l:list b:bool w:large u:uint64 n:null"

// bulkBatch is a batch of random rows, cut from a larger one.
func (b *bed) bulkBatch(rng *rand.Rand, schema *arrow.Schema, rows, keys, version int) arrow.RecordBatch {
	before, behind := rng.IntN(9), rng.IntN(9)
	builder := array.NewRecordBuilder(b.mem, schema)
	defer builder.Release()
	start, ordered := rng.IntN(keys), rng.IntN(3) == 0
	for i := range before + rows + behind {
		k := rng.IntN(keys)
		if ordered {
			k = (start + i) % keys
		}
		for c, f := range schema.Fields() {
			appendBulk(rng, builder.Field(c), f.Name, k, version*1_000_000+i)
		}
	}
	whole := builder.NewRecordBatch()
	defer whole.Release()
	return whole.NewSlice(int64(before), int64(before+rows))
}

func appendBulk(rng *rand.Rand, to array.Builder, name string, k, n int) {
	switch name {
	case "k":
		to.(*array.StringBuilder).Append(fmt.Sprintf("key %d", k/5))
		return
	case "s":
		to.(*array.Int64Builder).Append(int64(k % 5))
		return
	}
	if rng.IntN(7) == 0 {
		to.AppendNull()
		return
	}
	switch to := to.(type) {
	case *array.Int32Builder:
		to.Append(int32(n))
	case *array.Uint64Builder:
		to.Append(math.MaxUint64 - uint64(n))
	case *array.Float64Builder:
		to.Append([]float64{float64(n) / 100, math.NaN(), math.Ldexp(float64(n), -30), math.Inf(-1), math.Copysign(0, -1)}[rng.IntN(5)])
	case *array.BinaryDictionaryBuilder:
		_ = to.AppendString(fmt.Sprint("d", n%50))
	case *array.ListBuilder:
		to.Append(true)
		for i := range rng.IntN(4) {
			to.ValueBuilder().(*array.Int64Builder).Append(int64(n + i))
		}
	case *array.BooleanBuilder:
		to.Append(n%3 == 0)
	case *array.LargeStringBuilder:
		to.Append(strings.Repeat("text ", n%9) + fmt.Sprint(n))
	default:
		to.AppendNull()
	}
}

// bulkRows is the rows of a batch, key and the rest.
func bulkRows(columns []arrow.Array, rows int) (keys, rest []string) {
	for i := range rows {
		var texts []string
		for _, c := range columns {
			text := "null"
			if c.IsValid(i) {
				text = c.ValueStr(i)
			}
			texts = append(texts, text)
		}
		keys = append(keys, texts[0]+"|"+texts[1])
		rest = append(rest, strings.Join(texts[2:], "|"))
	}
	return keys, rest
}

// bulkContent reads the table in its batches' columns.
func (b *bed) bulkContent(table *shards.Table, columns int) map[string]string {
	content := map[string]string{}
	snapshot, err := table.Snapshot()
	require.NoError(b.t, err)
	defer snapshot.Release()
	scan, err := snapshot.Scan(context.Background(), shards.ScanRequest{Columns: snapshot.Schema().IDs()[:columns], Limit: -1, Mem: b.mem})
	require.NoError(b.t, err)
	defer scan.Close()
	for {
		batch, err := scan.Next()
		if err != nil {
			require.EqualError(b.t, err, "EOF")
			return content
		}
		keys, rest := bulkRows(batch.Columns, batch.Rows)
		for i, k := range keys {
			if _, twice := content[k]; twice {
				b.t.Fatalf("row %s is there twice", k)
			}
			content[k] = rest[i]
		}
		batch.Release()
	}
}

// TestBulkStreamsDoWhatTheirRowsDo: of commits that are dealt out slice by slice and
// prepared while those before them are published, the last row of a key stays,
// whatever the columns, and though the schema moves on in between. SHEAF_SOAK sets the
// number of streams, SHEAF_SEED the seed.
func TestBulkStreamsDoWhatTheirRowsDo(t *testing.T) {
	rounds, seed := 14, uint64(21)
	if testing.Short() {
		rounds = 5
	}
	if n, err := strconv.Atoi(os.Getenv("SHEAF_SOAK")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SHEAF_SEED"), 10, 64); err == nil {
		seed = n
	}
	rng := rand.New(rand.NewPCG(seed, 22))
	b := newBed(t)
	table := b.create(bulkColumns)
	schema := schemaOf(bulkColumns)
	want := map[string]string{}
	for round := range rounds {
		mode := []Mode{ModeUpsert, ModeUpsert, ModeUpsert, ModeDelete, ModeReplaceTable, ModeInsertIgnore}[rng.IntN(6)]
		options := Options{Mode: mode, Atomic: mode != ModeReplaceTable && rng.IntN(3) == 0}
		stream := schema
		if mode == ModeDelete {
			stream = schemaOf("k:string s:int64")
		}
		keys := []int{3_000, 60_000}[rng.IntN(2)]
		if mode == ModeReplaceTable {
			want = map[string]string{}
		}
		s := b.mustOpen(stream, options)
		dealt := false
		for write := range 1 + rng.IntN(4) {
			var batches []arrow.RecordBatch
			bytes := int64(0)
			for range 1 + rng.IntN(4) {
				batch := b.bulkBatch(rng, stream, rng.IntN(12_000), keys, round*10+write)
				batches = append(batches, batch)
				for _, c := range batch.Columns() {
					bytes += int64(c.Data().SizeInBytes())
				}
				names, rest := bulkRows(batch.Columns(), int(batch.NumRows()))
				for i, k := range names {
					_, exists := want[k]
					switch {
					case mode == ModeDelete:
						delete(want, k)
					case mode != ModeInsertIgnore || !exists:
						want[k] = rest[i]
					}
				}
			}
			dealt = dealt || bytes > 2*limits.DeltaCommitBytes
			require.NoError(t, s.Write(t.Context(), batches), "round %d", round)
			for _, batch := range batches {
				batch.Release()
			}
			if rng.IntN(3) == 0 && !s.isStaged() {
				_, err := table.Alter(t.Context(), shards.Change{
					AddColumns: arrow.NewSchema(fields(fmt.Sprintf("later%d%d:int64", round, write)), nil),
				})
				require.NoError(t, err)
			}
			if rng.IntN(4) == 0 {
				require.NoError(t, table.Fold(t.Context()))
			}
		}
		require.NoError(t, s.finish(), "round %d, mode %s", round, mode)
		s.Abort()
		got := b.bulkContent(table, schema.NumFields())
		for k, row := range want {
			if got[k] != row {
				t.Fatalf("round %d, mode %s, dealt out %t: row %s is\n%s, should be\n%s", round, mode, dealt, k, got[k], row)
			}
		}
		require.Len(t, got, len(want), "round %d, mode %s", round, mode)
	}
}

// TestBulkAppends: a table without key has every row that was sent once, in an order
// of its own where the schema moves on while commits are on their way, since these
// get other ids then.
func TestBulkAppends(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	b := newBed(t)
	schema := schemaOf("k:string s:int64 v:int32 w:large")
	table, err := Create(t.Context(), b.store, b.name("t"), schema, Keys{Sharding: []string{}, Slices: 3})
	require.NoError(t, err)
	sent := int64(0)
	for round := range 5 {
		s := b.mustOpen(schema, Options{Atomic: round == 3, Mode: []Mode{ModeUpsert, ModeInsert}[round%2]})
		for write := range 3 {
			builder := array.NewRecordBuilder(b.mem, schema)
			for range 9_000 + rng.IntN(9_000) {
				builder.Field(0).(*array.StringBuilder).Append(fmt.Sprint("key ", rng.IntN(100)))
				builder.Field(1).(*array.Int64Builder).Append(sent)
				appendBulk(rng, builder.Field(2), "v", 0, int(sent))
				appendBulk(rng, builder.Field(3), "w", 0, int(sent))
				sent++
			}
			whole := builder.NewRecordBatch()
			cut := rng.Int64N(whole.NumRows())
			batches := []arrow.RecordBatch{whole.NewSlice(0, cut), whole.NewSlice(cut, whole.NumRows())}
			require.NoError(t, s.Write(t.Context(), batches))
			for _, batch := range append(batches, whole) {
				batch.Release()
			}
			builder.Release()
			if write == 1 && round != 3 {
				_, err := table.Alter(t.Context(), shards.Change{
					AddColumns: arrow.NewSchema(fields(fmt.Sprintf("later%d:int64", round)), nil),
				})
				require.NoError(t, err)
			}
		}
		require.NoError(t, s.finish())
		s.Abort()
		if round == 2 {
			require.NoError(t, table.Fold(t.Context()))
		}
	}
	require.NoError(t, table.Fold(t.Context())) // a commit may have been small: only then the count is exact
	snapshot, err := table.Snapshot()
	require.NoError(t, err)
	defer snapshot.Release()
	rows, exact := snapshot.Rows()
	require.True(t, exact)
	require.EqualValues(t, sent, rows)
	id := snapshot.Schema().Columns[2].ID // behind _sheaf_id and k
	scan, err := snapshot.Scan(t.Context(), shards.ScanRequest{Columns: []uint32{id}, Order: shards.Asc, Limit: -1, Mem: b.mem})
	require.NoError(t, err)
	defer scan.Close()
	seen := make([]bool, sent)
	for {
		batch, err := scan.Next()
		if err != nil {
			require.EqualError(t, err, "EOF")
			break
		}
		for _, n := range batch.Columns[0].(*array.Int64).Int64Values() {
			if n < 0 || n >= sent || seen[n] {
				t.Errorf("row %d is there twice, or was never sent", n)
				break
			}
			seen[n] = true
		}
		batch.Release()
	}
	require.NotContains(t, seen, false)
}
