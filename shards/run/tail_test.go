package run

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
)

func someEntries(n int, root bool) []entry {
	entries := make([]entry, n)
	for i := range entries {
		entries[i] = entry{
			first: fmt.Appendf(nil, "key %04d a", i), last: fmt.Appendf(nil, "key %04d b", i), blocks: 1,
			rows: uint64(i + 1), tombstones: uint64(i % 2), encoded: 100, plain: 300, least: 5, greatest: uint64(5 + i),
		}
		entries[i].all = !root
		if root {
			entries[i].blocks = uint64(i + 1)
		}
	}
	return entries
}

func TestIndexComesBackAsItWasWritten(t *testing.T) {
	for _, root := range []bool{false, true} {
		for _, n := range []int{1, 2, 128} {
			entries := someEntries(n, root)
			x, err := parseIndex(appendIndex(nil, root, &grouping{}, entries))
			require.NoError(t, err)
			require.Equal(t, entries, x.entries)
			require.Equal(t, root, x.root)
		}
	}
}

func TestIndexSeeks(t *testing.T) {
	x := &index{entries: someEntries(3, false)}
	require.Equal(t, 0, x.seek(nil))
	require.Equal(t, 0, x.seek([]byte("a")))
	require.Equal(t, 1, x.seek([]byte("key 0001 b")))
	require.Equal(t, 2, x.seek([]byte("key 0001 b\x00")))
	require.Equal(t, 3, x.seek([]byte("z")))
	require.Equal(t, 2, x.seekBack(nil))
	require.Equal(t, -1, x.seekBack([]byte("key 0000 a")))
	require.Equal(t, 0, x.seekBack([]byte("key 0001 a")))
	require.Equal(t, 1, x.seekBack([]byte("key 0001 a\x00")))
}

func TestIndexOfOtherRulesIsRefused(t *testing.T) {
	good := someEntries(3, false)
	for name, change := range map[string]func(e []entry){
		"out of order":           func(e []entry) { e[0], e[1] = e[1], e[0] },
		"overlapping":            func(e []entry) { e[1].first = e[0].last },
		"first behind last":      func(e []entry) { e[2].first, e[2].last = e[2].last, e[2].first },
		"no rows":                func(e []entry) { e[1].rows = 0 },
		"more deletes than rows": func(e []entry) { e[1].tombstones = 99 },
	} {
		entries := append([]entry(nil), good...)
		change(entries)
		_, err := parseIndex(appendIndex(nil, false, &grouping{}, entries))
		require.ErrorIs(t, err, errTail, name)
	}
	_, err := parseIndex(appendIndex(nil, false, &grouping{}, nil))
	require.ErrorIs(t, err, errTail)
}

func TestZonesComeBackAsTheyWereWritten(t *testing.T) {
	leaf := &index{entries: someEntries(3, false)}
	a := []block.Zone{
		{Rows: 1, Min: []byte("a"), Max: []byte("ab"), MinExact: true, MaxExact: true},
		{Rows: 2, Nulls: 2},
		{Rows: 3, Nulls: 1, NaN: true, Min: []byte{}, Max: []byte("zz"), MaxExact: true},
	}
	late := block.Zone{Rows: 3, Nulls: 3}
	var w zoneWriter
	w.add([]uint32{9, 2}, []block.Zone{a[0], {Rows: 1}})
	w.add([]uint32{9}, []block.Zone{a[1]})
	w.add([]uint32{9, 7}, []block.Zone{a[2], late})
	m, err := openZones(w.take(&grouping{})[0])
	require.NoError(t, err)
	got, err := m.column(nil, 9, leaf)
	require.NoError(t, err)
	require.Equal(t, a, got)
	got, err = m.column(nil, 7, leaf)
	require.NoError(t, err)
	require.Equal(t, []block.Zone{{}, {}, late}, got, "blocks without the column are not known")
	got, err = m.column(nil, 100, leaf)
	require.NoError(t, err)
	require.Equal(t, make([]block.Zone, 3), got)
	_, err = m.column(nil, 9, &index{entries: leaf.entries[:2]})
	require.ErrorIs(t, err, errTail)
}

// Keys of one slice have the upper bits of their hash in common: the filter must
// be as good for them as for any.
func TestFilterKnowsItsKeysAndFewOthers(t *testing.T) {
	for _, slices := range []int{1, 1024} {
		rng := rand.New(rand.NewPCG(1, uint64(slices)))
		inSlice := func() uint64 { return rng.Uint64() / uint64(slices) }
		hashes := make([]uint64, 10_000)
		for i := range hashes {
			hashes[i] = inSlice()
		}
		value := appendFilter(nil, hashes)
		require.Less(t, len(value)*8, 11*len(hashes))
		f, err := openFilter(value)
		require.NoError(t, err)
		for _, h := range hashes {
			require.True(t, f.mayHold(h))
		}
		wrong := 0
		for range 100_000 {
			if f.mayHold(inSlice()) {
				wrong++
			}
		}
		require.Less(t, wrong, 2_000, "%d slices: more than 2%% wrong answers", slices)
	}
	f, err := openFilter(appendFilter(nil, nil))
	require.NoError(t, err)
	require.True(t, f.mayHold(1))
}

func TestEveryFlippedBitOfATailIsFound(t *testing.T) {
	var zones zoneWriter
	zones.add([]uint32{1}, []block.Zone{{Rows: 1, Min: []byte("a"), Max: []byte("b")}})
	for name, tail := range map[string]struct {
		value []byte
		open  func([]byte) error
	}{
		"index":  {appendIndex(nil, false, &grouping{}, someEntries(2, false)), func(b []byte) error { _, err := parseIndex(b); return err }},
		"zones":  {zones.take(&grouping{})[0], func(b []byte) error { _, err := openZones(b); return err }},
		"filter": {appendFilter(nil, []uint64{1, 2, 3}), func(b []byte) error { _, err := openFilter(b); return err }},
	} {
		require.NoError(t, tail.open(tail.value), name)
		for bit := range len(tail.value) * 8 {
			broken := bytes.Clone(tail.value)
			broken[bit/8] ^= 1 << (bit % 8)
			require.ErrorIs(t, tail.open(broken), errTail, "%s bit %d", name, bit)
		}
		for n := range len(tail.value) {
			require.ErrorIs(t, tail.open(tail.value[:n]), errTail, "%s cut to %d bytes", name, n)
		}
	}
}

// sealed gives arbitrary bytes a right version and checksum, so that fuzzing
// gets behind them.
func sealed(payload []byte) []byte {
	value := append([]byte{tailVersion}, payload...)
	return binary.LittleEndian.AppendUint64(value, xxhash.Sum64(value))
}

func FuzzTails(f *testing.F) {
	payload := func(value []byte) []byte { return value[1 : len(value)-8] }
	var zones zoneWriter
	zones.add([]uint32{1, 2}, []block.Zone{{Rows: 1, Min: []byte("a"), Max: []byte("b")}, {Rows: 1, Nulls: 1}})
	zones.add([]uint32{1}, []block.Zone{{Rows: 2, NaN: true}})
	f.Add(payload(appendIndex(nil, false, &grouping{}, someEntries(2, false))))
	f.Add(payload(appendIndex(nil, true, &grouping{}, someEntries(2, true))))
	several := grouping{key: []uint32{1}, starts: []uint32{2, 7, 300}}
	f.Add(payload(appendIndex(nil, false, &several, someEntries(3, false))))
	f.Add(payload(appendIndex(nil, true, &several, someEntries(3, true))))
	f.Add(payload(zones.take(&grouping{})[0]))
	f.Add(payload(appendFilter(nil, []uint64{1, 2, 3})))
	leaf := &index{entries: someEntries(2, false)}
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, errTail) {
				t.Fatal(err)
			}
		}
		if x, err := parseIndex(sealed(data)); err == nil {
			again, err := parseIndex(appendIndex(nil, x.root, &x.groups, x.entries))
			require.NoError(t, err)
			require.Equal(t, x.entries, again.entries)
		} else {
			check(err)
		}
		if z, err := openZones(sealed(data)); err == nil {
			for id := range z.columns {
				_, err := z.column(nil, id, leaf)
				check(err)
			}
		} else {
			check(err)
		}
		if fl, err := openFilter(sealed(data)); err == nil {
			fl.mayHold(42)
		} else {
			check(err)
		}
	})
}

func TestCacheKeepsToItsBudget(t *testing.T) {
	c := NewCache(cacheShards * 1000)
	const bytes = 100 // of a value
	key := func(i int) tailKey { return tailKey{table: 1, run: uint64(i), kind: tailZones} }
	for i := range 1000 {
		c.put(key(i), i, bytes)
		require.LessOrEqual(t, c.Bytes(), int64(cacheShards*1000))
	}
	require.Equal(t, 999, c.get(key(999)))
	require.Nil(t, c.get(key(0)), "the oldest went first")
	c.put(key(5000), "large", 1001)
	require.Nil(t, c.get(key(5000)))
	held := 0
	for i := range 1000 {
		if c.get(key(i)) != nil {
			held++
		}
	}
	require.EqualValues(t, int64(held)*(bytes+itemBytes), c.Bytes())
}
