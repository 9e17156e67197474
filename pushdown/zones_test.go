package pushdown

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
)

// zonesOfRows are the zones of rows [from, to) of a table.
func (t *testTable) zonesOfRows(from, to int) zones {
	return func(id uint32) (block.Zone, bool) {
		part := array.NewSlice(t.arrays[id], int64(from), int64(to))
		defer part.Release()
		return block.ZoneOf(part), true
	}
}

// TestPruneNeverLosesARow cuts random tables into blocks: a block is pruned
// only if the mask keeps none of its rows.
func TestPruneNeverLosesARow(t *testing.T) {
	pruned, kept, missed := 0, 0, 0
	for seed := range 150 {
		m := &maker{Rand: rand.New(rand.NewPCG(uint64(seed), 5))}
		table, _ := m.table(t, 40)
		for range 40 {
			text, _ := m.where()
			e, err := ParseWhere([]byte(text), m.schema)
			require.NoError(t, err)
			for _, e := range []Expr{e, Not(e)} {
				f := newFilter(e)
				keep := table.mask(f, 1000)
				for from := 0; from < table.rows; from += 3 {
					to := min(from+3, table.rows)
					some := false
					for _, k := range keep[from:to] {
						some = some || k
					}
					switch gone := f.Prune(table.zonesOfRows(from, to)); {
					case gone && some:
						t.Fatalf("seed %d: rows %d to %d match and are pruned: %s", seed, from, to, String(e))
					case gone:
						pruned++
					case some:
						kept++
					default:
						missed++
					}
					if f.root != constMask(false) {
						unknown := f.Prune(func(uint32) (block.Zone, bool) { return block.Zone{}, false })
						require.False(t, unknown, "unknown zones prune nothing: %s", String(e))
					}
				}
			}
		}
	}
	t.Logf("%d blocks pruned, %d kept, %d without a match not pruned", pruned, kept, missed)
	require.Greater(t, pruned, missed)
}

// TestPruneByRoundedEnds: zones of long strings end in rounded bounds.
func TestPruneByRoundedEnds(t *testing.T) {
	long := "a long name that does not fit into thirty-two bytes"
	schema := newTestSchema([]string{"k", "x"}, []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String}, []string{"shard", ""}, 4)
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues([]string{long + "1", long + "3"}, nil)
	zone := block.ZoneOf(b.NewArray())
	require.False(t, zone.MaxExact)
	for _, c := range []struct {
		op, text string
		prune    bool
	}{
		{"=", long + "2", false}, {"=", long + "3", false}, {"=", "b", true}, {"=", "a", true}, {">", long + "9", false},
		{">", "a longer", true}, {"<", "a", true}, {"starts_with", "a long", false}, {"starts_with", "c", true}, {"!=", long + "1", false},
	} {
		op := comparisons[c.op]
		e, err := Compare(schema, "x", op, Text(c.text))
		if c.op == "starts_with" {
			e, err = StartsWith(schema, "x", Text(c.text))
		}
		require.NoError(t, err)
		require.Equal(t, c.prune, newFilter(e).Prune(func(uint32) (block.Zone, bool) { return zone, true }), "%s %s", c.op, c.text)
	}
}

// TestPruneByNullsAndNaN: what is not ordered counts too.
func TestPruneByNullsAndNaN(t *testing.T) {
	schema := newTestSchema([]string{"k", "x"}, []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64}, []string{"shard", ""}, 4)
	ones := block.Zone{Rows: 2, Min: one64, Max: one64, MinExact: true, MaxExact: true}
	withNaN := ones
	withNaN.NaN = true
	nulls := block.Zone{Rows: 2, Nulls: 2}
	onlyNaN := block.Zone{Rows: 2, NaN: true}
	for _, c := range []struct {
		where string
		zone  block.Zone
		prune bool
	}{
		{`[["x","!=",1]]`, ones, true}, {`[["x","!=",1]]`, withNaN, false}, {`[["x","not in",[1,2]]]`, ones, true},
		{`[["x","!=",2]]`, ones, false}, {`[["x","=",2]]`, ones, true}, {`[["x","<",1]]`, ones, true}, {`[["x",">=",1]]`, ones, false},
		{`[["x","is null"]]`, ones, true}, {`[["x","is not null"]]`, ones, false},
		{`[["x","is null"]]`, nulls, false}, {`[["x","is not null"]]`, nulls, true}, {`[["x","!=",1]]`, nulls, true},
		{`[["x","=",1]]`, onlyNaN, false}, {`[["x","!=","NaN"]]`, onlyNaN, false}, {`[["x","!=","NaN"]]`, nulls, true},
		{`[[["x","k"],"in",[[2,2],[3,3]]]]`, ones, true}, {`[[["x","k"],"in",[[2,2],[1,1]]]]`, ones, false},
		{`[[["x","=",2]],[["x","=",1]]]`, ones, false}, {`[[["x","=",2]],[["x","is null"]]]`, ones, true},
	} {
		e, err := ParseWhere([]byte(c.where), schema)
		require.NoError(t, err)
		require.Equal(t, c.prune, newFilter(e).Prune(func(id uint32) (block.Zone, bool) { return c.zone, id == 2 }), "%s %+v", c.where, c.zone)
	}
}

// one64 is 1.0 as zones write it.
var one64 = func() []byte {
	bits := math.Float64bits(1) | 1<<63
	return bigEndian(bits, 8)
}()

// TestZonesOfSignedZeros: 0.0 and −0.0 are one value to zones and masks.
func TestZonesOfSignedZeros(t *testing.T) {
	schema := newTestSchema([]string{"k", "x"}, []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64}, []string{"shard", ""}, 4)
	for _, stored := range []float64{0, math.Copysign(0, -1)} {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.Append(stored)
		zone := block.ZoneOf(b.NewArray())
		for where, prune := range map[string]bool{
			`[["x","=",0]]`: false, `[["x","=",-0.0]]`: false, `[["x",">=",0]]`: false, `[["x","<=",-0.0]]`: false,
			`[["x","<",0]]`: true, `[["x",">",-0.0]]`: true, `[["x","!=",0]]`: true,
		} {
			e, err := ParseWhere([]byte(where), schema)
			require.NoError(t, err)
			require.Equal(t, prune, newFilter(e).Prune(func(uint32) (block.Zone, bool) { return zone, true }), "%v %s", stored, where)
		}
	}
}
