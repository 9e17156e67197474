package shards

import (
	"context"
	"io"
	"strings"
	"testing"

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
