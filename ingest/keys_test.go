package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards"
)

const (
	sharding = shards.MetaShardingKey
	sorting  = shards.MetaSortingKey
	slices_  = shards.MetaSlices
)

func TestNamingKeys(t *testing.T) {
	for _, c := range []struct {
		name     string
		metadata []string
		command  Keys
		want     Keys
		reason   string
	}{
		{name: "bare name", metadata: []string{sharding, "k"}, want: Keys{Sharding: []string{"k"}, Sorting: []string{}, Slices: 16}},
		{name: "list", metadata: []string{sharding, `["k", "s"]`, slices_, "4"}, want: Keys{Sharding: []string{"k", "s"}, Sorting: []string{}, Slices: 4}},
		{name: "sorting key", metadata: []string{sharding, ` ["k"]`, sorting, "s"}, want: Keys{Sharding: []string{"k"}, Sorting: []string{"s"}, Slices: 16}},
		{name: "command wins", metadata: []string{sharding, "v", sorting, "k", slices_, "4"}, command: Keys{Sharding: []string{"k"}, Sorting: []string{"s"}, Slices: 2},
			want: Keys{Sharding: []string{"k"}, Sorting: []string{"s"}, Slices: 2}},
		{name: "no key", metadata: []string{sharding, "[]"}, want: Keys{Sharding: []string{}, Sorting: []string{}, Slices: 16}},
		{name: "not named", reason: "TABLE_NOT_FOUND"},
		{name: "only slices", metadata: []string{slices_, "4"}, reason: "TABLE_NOT_FOUND"},
		{name: "sorting key alone", metadata: []string{sorting, "s"}, reason: "KEY_INVALID"},
		{name: "sorting key without key", metadata: []string{sharding, "[]", sorting, "s"}, reason: "KEY_INVALID"},
		{name: "empty text", metadata: []string{sharding, ""}, reason: "KEY_INVALID"},
		{name: "no list", metadata: []string{sharding, `["k"`}, reason: "KEY_INVALID"},
		{name: "list of numbers", metadata: []string{sharding, `[1]`}, reason: "KEY_INVALID"},
		{name: "slices in words", metadata: []string{sharding, "k", slices_, "many"}, reason: "KEY_INVALID"},
		{name: "too many slices", metadata: []string{sharding, "k", slices_, "1025"}, reason: "KEY_INVALID"},
		{name: "unknown column", metadata: []string{sharding, "kk"}, reason: "KEY_COLUMN_MISSING"},
		{name: "float", metadata: []string{sharding, "x"}, reason: "KEY_TYPE"},
		{name: "column twice", metadata: []string{sharding, "k", sorting, "k"}, reason: "KEY_COLUMN_REPEATED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t)
			schema := schemaOf("k:string s:int64 v:int64 x:float64", c.metadata...)
			w, err := Open(t.Context(), b.store, Target{Name: b.name("t"), Keys: c.command}, schema, Options{Mem: b.mem})
			if c.reason != "" {
				require.True(t, fault.Is(err, c.reason), "%v", err)
				if c.reason == "TABLE_NOT_FOUND" {
					require.ErrorContains(t, err, "sheaf.sharding_key")
				}
				_, err = b.store.Table(b.name("t"))
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			w.Abort()
			table, err := b.store.Table(b.name("t"))
			require.NoError(t, err)
			s := table.Schema()
			require.Equal(t, c.want, Keys{Sharding: columnNames(s, s.Sharding), Sorting: columnNames(s, s.Sorting), Slices: s.Slices})
		})
	}
}

func TestKeysThatContradict(t *testing.T) {
	b := newBed(t)
	b.create(ksv)
	for _, c := range []struct {
		metadata []string
		says     []string
	}{
		{nil, nil},
		{[]string{sharding, "k"}, nil},
		{[]string{sharding, `["k"]`, sorting, `["s"]`, slices_, "16"}, nil},
		{[]string{sharding, "v"}, []string{`["k"]`, `["v"]`}},
		{[]string{sharding, "[]"}, []string{`["k"]`, `[]`}},
		{[]string{sorting, "v"}, []string{`["s"]`, `["v"]`}},
		{[]string{sorting, "[]"}, []string{`["s"]`, `[]`}},
		{[]string{slices_, "8"}, []string{"16", "8"}},
	} {
		s, err := b.open(schemaOf(ksv, c.metadata...), Options{})
		if c.says == nil {
			require.NoError(t, err, "%v", c.metadata)
			s.Abort()
			continue
		}
		require.True(t, fault.Is(err, "KEY_CONFLICT"), "%v", err)
		require.Equal(t, fault.FailedPrecondition, fault.Of(err).Kind)
		for _, text := range c.says {
			require.ErrorContains(t, err, text)
		}
	}
	b.wantRows()
}

// A table is copied by writing what was read.
func TestSchemaThatWasReadMakesTheSameTable(t *testing.T) {
	b := newBed(t)
	table := b.create("k:string s:int64 v:dict! w:list")
	copied, err := Open(t.Context(), b.store, Target{Name: b.name("copy")}, table.Schema().Arrow(), Options{Mem: b.mem})
	require.NoError(t, err)
	copied.Abort()
	other, err := b.store.Table(b.name("copy"))
	require.NoError(t, err)
	require.True(t, table.Schema().Arrow().Equal(other.Schema().Arrow()))
	require.Equal(t, table.Schema().Arrow().Metadata().ToMap(), other.Schema().Arrow().Metadata().ToMap())
}
