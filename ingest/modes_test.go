package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
)

const ksv = "k:string s:int64 v:int64"

func TestModes(t *testing.T) {
	before := []string{`{"k":"a","s":1,"v":10},{"k":"b","s":1,"v":20}`}
	for _, c := range []struct {
		name    string
		mode    Mode
		columns string
		batches []string
		want    []string
		reason  string
		says    string
	}{
		{name: "upsert replaces and inserts", mode: ModeUpsert, columns: ksv,
			batches: []string{row("a", 1, 11) + "," + row("c", 1, 30)},
			want:    []string{"a 1 11", "b 1 20", "c 1 30"}},
		{name: "upsert without a column makes it null", mode: ModeUpsert, columns: "k:string s:int64",
			batches: []string{`{"k":"a","s":1}`}, want: []string{"a 1 null", "b 1 20"}},
		{name: "insert of new keys", mode: ModeInsert, columns: ksv,
			batches: []string{row("c", 1, 30)}, want: []string{"a 1 10", "b 1 20", "c 1 30"}},
		{name: "insert of a key that exists", mode: ModeInsert, columns: ksv,
			batches: []string{row("c", 1, 30) + "," + row("b", 1, 21)},
			want:    []string{"a 1 10", "b 1 20"}, reason: "KEY_EXISTS", says: `batch 0, row 1: the key "b", 1 exists`},
		{name: "insert of a key twice in one batch", mode: ModeInsert, columns: ksv,
			batches: []string{row("c", 1, 30) + "," + row("d", 1, 1) + "," + row("c", 1, 31)},
			want:    []string{"a 1 10", "b 1 20"}, reason: "KEY_EXISTS", says: "batch 0, row 2"},
		{name: "insert of a key twice in two batches", mode: ModeInsert, columns: ksv,
			batches: []string{row("c", 1, 30), row("c", 1, 31)},
			want:    []string{"a 1 10", "b 1 20", "c 1 30"}, reason: "KEY_EXISTS", says: "batch 1, row 0"},
		{name: "insert keeps the batches before the refused one", mode: ModeInsert, columns: ksv,
			batches: []string{row("c", 1, 1), row("d", 1, 2), row("e", 1, 3) + "," + row("a", 1, 4), row("f", 1, 5)},
			want:    []string{"a 1 10", "b 1 20", "c 1 1", "d 1 2"}, reason: "KEY_EXISTS", says: "batch 2, row 1"},
		{name: "insert_ignore keeps what exists, and the first", mode: ModeInsertIgnore, columns: ksv,
			batches: []string{row("a", 1, 11) + "," + row("c", 1, 1) + "," + row("c", 1, 2), row("c", 1, 3)},
			want:    []string{"a 1 10", "b 1 20", "c 1 1"}},
		{name: "merge changes the columns sent", mode: ModeMerge, columns: "v:int64 k:string s:int64",
			batches: []string{`{"k":"a","s":1,"v":null},{"k":"c","s":1,"v":3}`},
			want:    []string{"a 1 null", "b 1 20", "c 1 3"}},
		{name: "merge keeps the columns not sent", mode: ModeMerge, columns: "k:string s:int64",
			batches: []string{`{"k":"a","s":1},{"k":"c","s":1}`},
			want:    []string{"a 1 10", "b 1 20", "c 1 null"}},
		{name: "update changes", mode: ModeUpdate, columns: ksv,
			batches: []string{row("b", 1, 21)}, want: []string{"a 1 10", "b 1 21"}},
		{name: "update refuses a new key", mode: ModeUpdate, columns: ksv,
			batches: []string{row("b", 1, 21), row("b", 1, 22) + "," + row("b", 2, 0)},
			want:    []string{"a 1 10", "b 1 21"}, reason: "ROW_NOT_FOUND", says: `batch 1, row 1: there is no row with the key "b", 2`},
		{name: "delete", mode: ModeDelete, columns: "k:string s:int64",
			batches: []string{`{"k":"a","s":1},{"k":"zz","s":1}`}, want: []string{"b 1 20"}},
		{name: "delete ignores other columns, whatever they hold", mode: ModeDelete, columns: "k:string s:int64 v:string",
			batches: []string{`{"k":"a","s":1,"v":"x"}`}, want: []string{"b 1 20"}},
		{name: "replace_table", mode: ModeReplaceTable, columns: ksv,
			batches: []string{row("z", 1, 1), row("z", 1, 2) + "," + row("y", 1, 1)}, want: []string{"y 1 1", "z 1 2"}},
		{name: "replace_table by nothing", mode: ModeReplaceTable, columns: ksv, want: []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			b.create(ksv)
			b.mustPut(ModeUpsert, ksv, before...)
			_, err := b.put(c.mode, c.columns, c.batches...)
			if c.reason == "" {
				require.NoError(t, err)
			} else {
				require.True(t, fault.Is(err, c.reason), "%v", err)
				require.ErrorContains(t, err, c.says)
			}
			b.wantRows(c.want...)
		})
	}
}

// The outcome never depends on how batches are grouped into commits.
func TestOneKeyTwice(t *testing.T) {
	a1, a2, a3 := row("a", 1, 1), row("a", 1, 2), row("a", 1, 3)
	shapes := map[string][][]string{
		"one batch":     {{a1 + "," + a2 + "," + a3}},
		"three batches": {{a1, a2, a3}},
		"three streams": {{a1}, {a2}, {a3}},
		"with others":   {{a1 + "," + row("b", 1, 9), a2 + "," + a3}},
	}
	for mode, want := range map[Mode]string{ModeUpsert: "a 1 3", ModeMerge: "a 1 3", ModeInsertIgnore: "a 1 1"} {
		for shape, streams := range shapes {
			t.Run(mode.String()+" "+shape, func(t *testing.T) {
				b := newBed(t)
				table := b.create(ksv)
				for _, batches := range streams {
					b.mustPut(mode, ksv, batches...)
				}
				require.Equal(t, want, b.rows()[0])
				require.NoError(t, table.Fold(t.Context()))
				require.Equal(t, want, b.rows()[0])
			})
		}
	}
	for shape, streams := range shapes {
		t.Run("insert "+shape, func(t *testing.T) {
			b := newBed(t)
			b.create(ksv)
			var err error
			for _, batches := range streams {
				if err == nil {
					_, err = b.put(ModeInsert, ksv, batches...)
				}
			}
			require.True(t, fault.Is(err, "KEY_EXISTS"), "%v", err)
		})
	}
}

func TestMergeWithSomeColumns(t *testing.T) {
	b := newBed(t)
	b.create("k:string a:int64 b:int64 c:string")
	b.mustPut(ModeUpsert, "k:string a:int64 b:int64 c:string", `{"k":"x","a":1,"b":2,"c":"old"}`)
	b.mustPut(ModeMerge, "k:string b:int64", `{"k":"x","b":null}`)
	b.wantRows("x 1 null old")
	b.mustPut(ModeMerge, "k:string a:int64", `{"k":"x","a":5}`)
	b.wantRows("x 5 null old")
	b.mustPut(ModeMerge, "k:string a:int64", `{"k":"n","a":7}`)
	b.wantSorted("n 7 null null", "x 5 null old")
	// A key twice merges in order, with a new key between.
	b.mustPut(ModeMerge, "k:string c:string", `{"k":"x","c":"1"},{"k":"m","c":"2"},{"k":"x","c":"3"}`)
	b.wantSorted("m null null 2", "n 7 null null", "x 5 null 3")
	_, err := b.put(ModeUpdate, "k:string a:int64", `{"k":"x","a":1},{"k":"q","a":1}`)
	require.True(t, fault.Is(err, "ROW_NOT_FOUND"), "%v", err)
	b.mustPut(ModeUpdate, "k:string a:int64", `{"k":"x","a":6}`)
	b.wantSorted("m null null 2", "n 7 null null", "x 6 null 3")
}

func TestMergeNeedsNotNullColumnsOfNewRows(t *testing.T) {
	b := newBed(t)
	b.create("k:string a:int64! b:int64")
	b.mustPut(ModeMerge, "k:string a:int64 b:int64", `{"k":"x","a":1,"b":2}`)
	_, err := b.put(ModeMerge, "k:string b:int64", `{"k":"x","b":3}`, `{"k":"x","b":4},{"k":"y","b":5}`)
	require.True(t, fault.Is(err, "NULL_VALUE"), "%v", err)
	require.ErrorContains(t, err, `batch 1, row 1, column "a"`)
	b.wantRows("x 1 3")
}

func TestTableWithoutKeyAppends(t *testing.T) {
	b := newBed(t)
	schema := schemaOf("v:int64", "sheaf.sharding_key", "[]")
	for range 2 {
		s := b.mustOpen(schema, Options{})
		require.NoError(t, s.write(`{"v":1},{"v":1}`, ``, `{"v":2}`))
		require.NoError(t, s.finish())
		require.Equal(t, uint64(3), s.Progress().Rows)
	}
	s := b.mustOpen(schemaOf("v:int64"), Options{Mode: ModeInsert})
	require.NoError(t, s.write(`{"v":3}`))
	require.NoError(t, s.finish())
	b.wantSorted("1", "1", "1", "1", "2", "2", "3")
	for _, mode := range []Mode{ModeInsertIgnore, ModeMerge, ModeUpdate, ModeDelete, ModeReplaceTable} {
		_, err := b.open(schemaOf("v:int64"), Options{Mode: mode})
		require.True(t, fault.Is(err, "MODE_NEEDS_KEY"), "%s: %v", mode, err)
	}
}
