package run

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/shards/block"
	"github.com/sheaf-db/sheaf/shards/key"
)

// world makes random sources over a small key space.
type world struct {
	rng  *rand.Rand
	bed  *bed
	size int  // rows of a source, at most
	keys int  // sorting keys of a sharding key
	few  bool // numbers and notes repeat: their chunks have codes
	rows [][]row
	srcs []Source
}

// fewNumbers have no common step: they are cheapest as codes.
var fewNumbers = []int64{-2_000_000_011, 0, 3, 1_000_003, 2_000_000_089}

func (w *world) row(version uint64) row {
	r := row{
		shard:   string(rune('a' + w.rng.IntN(6))),
		sort:    int64(w.rng.IntN(w.keys) - w.keys/2),
		price:   w.rng.Int64N(1e9),
		version: version,
		dead:    w.rng.IntN(5) == 0,
	}
	if w.rng.IntN(4) > 0 {
		r.num = ptr(w.rng.Int64N(100))
	}
	if w.rng.IntN(4) > 0 {
		r.note = ptr(fmt.Sprintf("note %d", w.rng.IntN(1000)))
	}
	if w.few {
		if r.num != nil {
			r.num = ptr(fewNumbers[*r.num%5])
		}
		if r.note != nil {
			r.note = ptr(fmt.Sprintf("note %d", w.rng.IntN(7)))
		}
	}
	if w.rng.IntN(4) > 0 {
		r.later = ptr(w.rng.Float64())
	}
	return r
}

// source adds a source: a run of one version or of many, of the present or an
// older schema, or parts in memory with loose bounds.
func (w *world) source(newest uint64) {
	perRow := w.rng.IntN(2) == 0
	old := w.rng.IntN(3) == 0
	byKey := map[string]row{}
	narrow := w.rng.IntN(2) == 0 // few keys side by side, else all over
	from := w.rng.IntN(6)
	for range 1 + w.rng.IntN(w.size) {
		version := newest
		if perRow {
			version = 1 + w.rng.Uint64N(newest)
		}
		r := w.row(version)
		if narrow {
			r.shard = string(rune('a' + from))
		}
		if old {
			r.later = nil
		}
		byKey[r.key()] = r
	}
	var rows []row
	for _, r := range byKey {
		if r.dead {
			r.num, r.note, r.later = nil, nil, nil
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.key(), b.key()) })
	w.rows = append(w.rows, rows)
	stored := Types(typesNow)
	if old {
		stored = typesOld
	}
	if !old && w.rng.IntN(4) == 0 {
		w.srcs = append(w.srcs, &memSource{rows: rows, part: 1 + w.rng.IntN(1+w.size/8)})
		return
	}
	w.bed.blockRows, w.bed.leafBlocks = 1+w.rng.IntN(1+w.size/8), 1+w.rng.IntN(4)
	w.srcs = append(w.srcs, w.bed.run(rows, stored, perRow).Source(3))
}

// ranges are disjoint and sorted; some are single keys or sharding keys.
func (w *world) ranges() []Range {
	if w.rng.IntN(3) == 0 {
		return nil
	}
	var bounds [][]byte
	for range 2 * (1 + w.rng.IntN(4)) {
		k := []byte(w.row(0).key())
		switch w.rng.IntN(4) {
		case 0: // a key
			bounds = append(bounds, k, key.Next(k))
		case 1: // a sharding key
			n, _ := key.Prefix(testKey.Types, k, 1)
			bounds = append(bounds, k[:n], key.Next(k[:n]))
		default:
			bounds = append(bounds, k)
		}
	}
	slices.SortFunc(bounds, slices.Compare)
	ranges := []Range{}
	for i := 0; i+1 < len(bounds); i += 2 {
		ranges = append(ranges, Range{Low: bounds[i], High: bounds[i+1]})
	}
	if w.rng.IntN(4) == 0 {
		ranges[0].Low = nil
	}
	if w.rng.IntN(4) == 0 {
		ranges[len(ranges)-1].High = nil
	}
	return ranges
}

func (w *world) filter() Filter {
	switch w.rng.IntN(8) {
	case 0, 1, 2, 3:
		return w.leaf()
	case 4, 5:
		f := allOf{w.leaf(), w.leaf()}
		if w.rng.IntN(3) == 0 {
			f = append(f, w.leaf())
		}
		return f
	}
	return nil
}

func (w *world) leaf() matcher {
	low := w.rng.Int64N(100)
	if w.few {
		low = fewNumbers[low%5]
	}
	switch w.rng.IntN(8) {
	case 0:
		return between{colNum, low, low + w.rng.Int64N(40)}
	case 1:
		return between{colNum, low, low}
	case 2:
		return between{colSort, w.row(0).sort, w.row(0).sort}
	case 3:
		return between{colSort, int64(-w.keys / 2), w.row(0).sort}
	case 4:
		return between{block.ColumnCommit, low % 100 / 20, low % 100 / 10}
	case 5:
		return noteBelow{"note 5", w.rng.IntN(2) == 0}
	}
	return noteBelow{fmt.Sprintf("note %d", w.rng.IntN(9)), w.rng.IntN(2) == 0}
}

func newWorld(t *testing.T, seed, size, keys int) *world {
	return &world{rng: rand.New(rand.NewPCG(uint64(seed), uint64(size))), bed: newBed(t), size: size, keys: keys, few: seed%2 == 0}
}

func (w *world) request() Request {
	r := Request{
		Ranges: w.ranges(), Desc: w.rng.IntN(2) == 0, Filter: w.filter(),
		Tombstones: w.rng.IntN(4) == 0, LastKeys: w.rng.IntN(2) == 0,
		TargetBytes: 1 + w.rng.IntN(40*w.size), TargetRows: 1 + w.rng.IntN(w.size),
	}
	if r.Tombstones {
		r.Filter = nil
	}
	if w.rng.IntN(3) == 0 {
		r.Limit = int64(1 + w.rng.IntN(w.size/2))
	}
	return r
}

func TestScansAgreeWithAPlainMap(t *testing.T) {
	for _, world := range []struct {
		name               string
		size, keys, worlds int
	}{
		{"dense small parts", 60, 12, 60},
		{"large parts", 3000, 1500, 10},
	} {
		if testing.Short() {
			world.worlds /= 6
		}
		for seed := range world.worlds {
			t.Run(fmt.Sprint(world.name, " ", seed), func(t *testing.T) {
				w := newWorld(t, seed, world.size, world.keys)
				if seed%3 == 0 { // parts are streamed in pieces
					defer func(before int) { pieceBytes = before }(pieceBytes)
					pieceBytes = 100
				}
				for n := w.rng.IntN(7); len(w.srcs) < n; {
					w.source(uint64(1 + w.rng.IntN(8)))
				}
				for range 30 {
					w.compare(w.request())
				}
			})
		}
	}
}

// compare scans and expects what a plain map gives.
func (w *world) compare(r Request) {
	t := w.bed.t
	var matches func(row) bool
	if r.Filter != nil {
		matches = r.Filter.(matcher).matches
	}
	want := expect(w.rows, r, matches)
	got, _ := w.bed.scan(r, w.srcs...)
	require.Equal(t, want, got, "%+v", r)

	r.Columns, r.LastKeys = []uint32{}, false
	counted, _ := w.bed.scan(r, w.srcs...)
	require.Len(t, counted, len(want), "rows without columns: %+v", r)
}

func TestFoldsAgreeWithAPlainMap(t *testing.T) {
	for seed := range 30 {
		w := newWorld(t, seed, []int{60, 2000}[seed%2], 500)
		for n := 1 + w.rng.IntN(5); len(w.srcs) < n; {
			w.source(uint64(1 + w.rng.IntN(8)))
		}
		drop := w.rng.IntN(2) == 0
		folded := w.fold(drop)
		want := expect(w.rows, Request{Tombstones: !drop}, nil)
		got, _ := w.bed.scan(Request{Tombstones: true}, folded...)
		require.Equal(t, want, got, "seed %d", seed)
		var wrong []string
		for _, src := range folded {
			require.NoError(t, src.(*source).run.Verify(t.Context(), 3, func(what string) { wrong = append(wrong, what) }))
		}
		require.Empty(t, wrong)
	}
}

// fold merges all sources into runs of about 2 KiB.
func (w *world) fold(drop bool) []Source {
	var writers []*Writer
	infos, err := Fold(w.bed.t.Context(), FoldRequest{
		Mem: w.bed.mem, Key: testKey, Types: typesNow, Columns: allColumns, Slice: 3,
		DropTombstones: drop, MaxBytes: 2 << 10,
		Create: func() (*Writer, error) {
			writers = append(writers, w.bed.writer())
			return writers[len(writers)-1], nil
		},
	}, w.srcs)
	require.NoError(w.bed.t, err)
	require.Len(w.bed.t, infos, len(writers))
	var folded []Source
	for i, info := range infos {
		file := w.bed.file(writers[i].o.Run)
		require.NoError(w.bed.t, w.bed.db.Ingest(w.bed.t.Context(), []string{file}))
		require.True(w.bed.t, info.PerRow)
		folded = append(folded, w.bed.open(writers[i].o.Run, info, typesNow, 0).Source(3))
	}
	return folded
}
