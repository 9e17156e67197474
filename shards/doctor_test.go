package shards

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/shards/layout"
)

func (b *bed) doctor() string {
	b.t.Helper()
	var found []string
	if err := b.s.Doctor(context.Background(), func(f Finding) { found = append(found, f.What) }); err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(found, "\n")
}

// TestDoctorReadsLists: a list that does not say what is there is found.
func TestDoctorReadsLists(t *testing.T) {
	for name, change := range map[string]func(*listing){
		"rows":       func(l *listing) { l.slices[0].Rows++ },
		"tombstones": func(l *listing) { l.slices[0].Tombstones++ },
		"blocks":     func(l *listing) { l.slices[0].Blocks++ },
		"first key":  func(l *listing) { l.slices[0].First = l.slices[0].Last },
		"last key":   func(l *listing) { l.slices[0].Last = append(l.slices[0].Last, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			table := b.create("t", "k:string v:int64", "k", "", 1)
			b.asRun(func() { b.put(table, values{"a", int64(1)}, values{"b", int64(2)}) })
			if found := b.doctor(); found != "" {
				t.Fatalf("a sound store: %s", found)
			}
			l := *table.head.runs.list[0].listing
			l.slices = append(l.slices[:0:0], l.slices...)
			change(&l)
			if err := b.s.db.Set(layout.RunKey(table.id, l.id), l.encode(), pebble.Sync); err != nil {
				t.Fatal(err)
			}
			b.reopen()
			if found := b.doctor(); !strings.Contains(found, "manifest") {
				t.Fatalf("found %q", found)
			}
		})
	}
}

// TestDoctorFindsLostDelta: delta that belongs to no table is found, as runs are.
func TestDoctorFindsLostDelta(t *testing.T) {
	b := newBed(t)
	prefix := layout.GenerationPrefix(77, 0, 1)
	if err := b.s.db.Set(layout.AppendDeltaRow(nil, prefix, []byte("k"), 1), nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if found := b.doctor(); !strings.Contains(found, "table 77") {
		t.Fatalf("found %q", found)
	}
}

// TestManifestOfAnotherTable: an entry that names slices the table has not is an
// error of the start, not a panic of the first read.
func TestManifestOfAnotherTable(t *testing.T) {
	b := newBed(t)
	table := b.create("t", "k:string v:int64", "k", "", 1)
	b.asRun(func() { b.put(table, values{"a", int64(1)}) })
	l := *table.head.runs.list[0].listing
	l.slices = append(l.slices[:0:0], l.slices...)
	l.slices[0].Slice = 5
	if err := b.s.db.Set(layout.RunKey(table.id, l.id), l.encode(), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	b.close()
	if s, err := Open(context.Background(), "/store", Options{FS: b.fs, FoldConcurrency: -1}); err == nil {
		_ = s.Close()
		t.Fatal("opened")
	}
}
