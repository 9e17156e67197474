package shards

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/sheaf-db/sheaf/limits"
)

// TestLargeRowsInDelta: many small commits of few large rows are read in
// batches as bounded as everything else.
func TestLargeRowsInDelta(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:string", "k", "", 1)
	const rows, size = 40, 600 << 10
	for i := range rows {
		b.put(table, values{string(rune('A' + i)), strings.Repeat(string(rune('a'+i)), size)})
	}
	s := b.snapshot(table)
	defer s.Release()
	scan, err := s.Scan(context.Background(), all(s))
	if err != nil {
		t.Fatal(err)
	}
	defer scan.Close()
	total := 0
	for {
		batch, err := scan.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if batch.Rows*size > 2*limits.TargetBytes+size {
			t.Errorf("a batch of %d rows of %d bytes", batch.Rows, size)
		}
		total += batch.Rows
		batch.Release()
	}
	if total != rows {
		t.Fatalf("%d rows", total)
	}
}

// TestDamagedRowNumber: numbers that no payload has are refused, not used.
func TestDamagedRowNumber(t *testing.T) {
	for _, row := range []int{1 << 31, 1 << 40} {
		if got, _, err := rowNumber(appendRowNumber(nil, row)); err == nil {
			t.Errorf("row %d was read as %d, which is %d", row, got, int32(got))
		}
	}
}

// TestScatteredDelta: neighbours in key order come from many commits, some of which
// delete, some of which were written before a column was widened or added.
func TestScatteredDelta(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "g:string k:int64 s:string n:int32 f:float64", "g", "k", 2)
	rng := rand.New(rand.NewPCG(1, 2))
	const commits, each = 30, 40
	want := map[string]values{}
	for c := range commits {
		if c == commits/2 {
			for _, change := range []Change{
				{Widen: arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)},
				{AddColumns: arrow.NewSchema([]arrow.Field{{Name: "late", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)},
			} {
				if _, err := table.Alter(context.Background(), change); err != nil {
					t.Fatal(err)
				}
			}
		}
		var rows, gone []values
		for i := range each {
			g, k := fmt.Sprint("g", i%3), int64(i*commits+(c+i)%commits)
			r := values{g, k, strings.Repeat(fmt.Sprintf("text %d ", i%7), 1+c%4), int64(c), float64(i) / 4}
			if c >= commits/2 {
				r = append(r, fmt.Sprint("late ", c))
			}
			for column := 2; column < len(r); column++ {
				if rng.IntN(10) == 0 {
					r[column] = nil
				}
			}
			rows = append(rows, r)
			id := fmt.Sprint(g, k)
			want[id] = append(slices.Clone(r), make(values, 6-len(r))...)
			if rng.IntN(8) == 0 {
				gone = append(gone, values{g, k})
				delete(want, id)
			}
		}
		b.put(table, rows...)
		if len(gone) > 0 {
			b.delete(table, gone...)
		}
	}
	if n := len(want); n < commits*each*3/4 {
		t.Fatalf("%d rows are left", n)
	}
	sorted := slices.SortedFunc(maps.Values(want), func(x, y values) int {
		if c := strings.Compare(x[0].(string), y[0].(string)); c != 0 {
			return c
		}
		return int(x[1].(int64) - y[1].(int64))
	})
	check := func(when string) {
		t.Helper()
		s := b.snapshot(table)
		defer s.Release()
		for _, order := range []Order{Asc, Desc} {
			r := all(s)
			r.Order = order
			got := b.scan(s, r)
			if order == Desc {
				slices.Reverse(got)
			}
			if format(got) != format(sorted) {
				t.Fatalf("%s, order %v:\n%s\nwant\n%s", when, order, format(got), format(sorted))
			}
		}
	}
	check("in the delta")
	if err := table.Fold(context.Background()); err != nil {
		t.Fatal(err)
	}
	check("folded")
}

// TestPlaces: rows are brought together by place, in their order, and back.
func TestPlaces(t *testing.T) {
	var p places
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		p.reset()
		n := 1 + rng.IntN(200)
		commits := make([]uint64, n)
		for i := range commits {
			commits[i] = uint64(rng.IntN(1 + n/4))
			p.add(commits[i])
		}
		var rows []uint32
		for row := range n {
			if rng.IntN(3) > 0 {
				rows = append(rows, uint32(row))
			}
		}
		sorted, back := p.sort(rows)
		stretches := 0
		last := map[uint64]uint32{}
		for i, row := range sorted {
			if i == 0 || commits[sorted[i-1]] != commits[row] {
				stretches++
			}
			if before, ok := last[commits[row]]; ok && before >= row {
				t.Fatalf("row %d of a place comes before row %d", before, row)
			}
			last[commits[row]] = row
		}
		if stretches != len(last) {
			t.Fatalf("%d places lie in %d stretches", len(last), stretches)
		}
		for i, row := range rows {
			if sorted[back[i]] != row {
				t.Fatalf("row %d is said to be at %d, where %d is", row, back[i], sorted[back[i]])
			}
		}
	}
	if p.scattered([]uint32{0}) {
		t.Error("one row is scattered")
	}
}
