package run

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/layout"
)

var update = flag.Bool("update", false, "write testdata/run-v2.txt anew: only for a format that was never released")

const goldenRun = "testdata/run-v2.txt"

func goldenRows() []row {
	var rows []row
	for i := range 40 {
		r := row{shard: string(rune('a' + i/15)), sort: int64(i - 20), price: int64(i * i), version: uint64(7 + i%3), dead: i%11 == 3}
		if !r.dead && i%4 > 0 {
			r.num, r.note, r.later = ptr(int64(100*i)), ptr(strings.Repeat("é", i%5)), ptr(float64(i)/8)
		}
		rows = append(rows, r)
	}
	return rows
}

// Every later version must read the runs of format version 2: key and value of
// each entry are checked in.
func TestARunOfFormatVersion2IsRead(t *testing.T) {
	b := newBed(t)
	b.leafBlocks = 4
	if *update {
		r := b.run(goldenRows(), typesNow, true)
		var text bytes.Buffer
		for _, at := range b.values(r) {
			fmt.Fprintf(&text, "%x %x\n", at.key, at.value)
		}
		require.NoError(t, os.WriteFile(goldenRun, text.Bytes(), 0o666))
		low, high := layout.RunSpan(r.o.Table, r.o.Run)
		require.NoError(t, b.db.Excise(t.Context(), pebble.KeyRange{Start: low, End: high}))
	}
	f, err := os.Open(goldenRun)
	require.NoError(t, err)
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		k, v, ok := strings.Cut(lines.Text(), " ")
		require.True(t, ok)
		key, err := hex.DecodeString(k)
		require.NoError(t, err)
		value, err := hex.DecodeString(v)
		require.NoError(t, err)
		require.NoError(t, b.db.Set(key, value, nil))
	}
	require.NoError(t, lines.Err())
	r := b.open(1, Info{PerRow: true, Least: 7, Greatest: 9}, typesNow, 0)
	for _, request := range []Request{{Tombstones: true}, {Desc: true}} {
		got, _ := b.scan(request, r.Source(3))
		require.Equal(t, expect([][]row{goldenRows()}, request, nil), got)
	}
	var wrong []string
	require.NoError(t, r.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
	require.Empty(t, wrong)
}
