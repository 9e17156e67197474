package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/pushdown"
	"github.com/sheaf-db/sheaf/shards"
)

func planOf(t *testing.T, table *shards.Table, where string) *pushdown.Plan {
	t.Helper()
	filter, err := pushdown.ParseWhere([]byte(where), table.Schema())
	require.NoError(t, err)
	plan, err := pushdown.Build(table.Schema(), filter)
	require.NoError(t, err)
	return plan
}

func TestDeleteByFilter(t *testing.T) {
	for _, c := range []struct {
		where string
		rows  uint64
		left  []string
	}{
		{`[["k","=","a"]]`, 2, []string{"b 1 20", "b 2 21"}},
		{`[["k","=","a"],["s",">=",2]]`, 1, []string{"a 1 10", "b 1 20", "b 2 21"}},
		{`[["v",">",10]]`, 3, []string{"a 1 10"}},
		{`[["v",">",100]]`, 0, []string{"a 1 10", "a 2 11", "b 1 20", "b 2 21"}},
		{`[["k","in",[]]]`, 0, []string{"a 1 10", "a 2 11", "b 1 20", "b 2 21"}},
		{`[]`, 4, []string{}},
	} {
		t.Run(c.where, func(t *testing.T) {
			b := newBed(t)
			table := b.create(ksv)
			b.mustPut(ModeUpsert, ksv, row("a", 1, 10)+","+row("a", 2, 11)+","+row("b", 1, 20)+","+row("b", 2, 21))
			rows, commit, err := Delete(t.Context(), table, planOf(t, table, c.where))
			require.NoError(t, err)
			require.Equal(t, c.rows, rows)
			require.Equal(t, c.rows > 0, commit > 0)
			b.wantSorted(c.left...)
			require.NoError(t, table.Fold(t.Context()))
			b.wantSorted(c.left...)
		})
	}
}

// Many rows are deleted as of the moment of the search: what is written after
// it stays, whether the key existed or not.
func TestLargeDeleteSparesWhatIsNewer(t *testing.T) {
	b := newBed(t)
	table := b.create(ksv)
	var rows []string
	for i := range 2*smallDelete + 5 {
		rows = append(rows, row(fmt.Sprintf("k%06d", i), 1, i%2))
	}
	b.mustPut(ModeUpsert, ksv, strings.Join(rows, ","))
	snapshot, err := table.Snapshot()
	require.NoError(t, err)
	d := &deletion{table: table, plan: planOf(t, table, `[["s","=",1]]`), asOf: snapshot.Commit()}
	require.NoError(t, d.search(t.Context(), snapshot))
	snapshot.Release()
	require.Equal(t, uint64(len(rows)), d.rows)
	b.mustPut(ModeUpsert, ksv, row("k000003", 1, 77)+","+row("new", 1, 78))
	require.NoError(t, d.cut(t.Context()))
	_, err = table.Publish(t.Context(), d.prepared, shards.PublishOptions{})
	require.NoError(t, err)
	b.wantSorted("k000003 1 77", "new 1 78")
	require.NoError(t, table.Fold(t.Context()))
	b.wantSorted("k000003 1 77", "new 1 78")

	b.mustPut(ModeUpsert, ksv, strings.Join(rows, ","))
	n, commit, err := Delete(t.Context(), table, planOf(t, table, `[["v","=",1]]`))
	require.NoError(t, err)
	require.Equal(t, uint64(len(rows)/2), n)
	require.NotZero(t, commit)
	require.Len(t, b.rows(), len(rows)-len(rows)/2+1)
}

func TestDeleteSaysThatTheSchemaChanged(t *testing.T) {
	b := newBed(t)
	table := b.create(ksv)
	b.mustPut(ModeUpsert, ksv, row("a", 1, 1))
	snapshot, err := table.Snapshot()
	require.NoError(t, err)
	d := &deletion{table: table, plan: planOf(t, table, `[]`), asOf: snapshot.Commit()}
	require.NoError(t, d.search(t.Context(), snapshot))
	snapshot.Release()
	_, err = table.Alter(t.Context(), shards.Change{AddColumns: schemaOf("n:int64")})
	require.NoError(t, err)
	_, _, err = d.deleteSmall(t.Context())
	require.True(t, fault.Is(err, "SCHEMA_CHANGED"), "%v", err)
	require.Len(t, b.rows(), 1)
}
