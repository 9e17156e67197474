package shards

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestFoldsTakeTurns: a table that always wants a fold does not keep the folder
// from the others.
func TestFoldsTakeTurns(t *testing.T) {
	var onRun func()
	disk := errorfs.Wrap(vfs.NewCrashableMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "/"+tmpName+"/") && onRun != nil {
			onRun()
		}
		return nil
	}))
	b := newBedOn(t, disk)
	deletes := func(table *Table) {
		b.asRun(func() {
			b.put(table, values{"k1", int64(1)}, values{"k2", int64(1)})
			b.delete(table, values{"k1", nil}, values{"k3", nil})
		})
	}
	var tables []*Table
	for _, name := range []string{"a", "b"} {
		table := b.create(name, "k:string v:int64", "k", "", 1)
		deletes(table)
		tables = append(tables, table)
	}
	// Each fold of a table makes new deletes in it, which want another.
	var folded []string
	busy := false
	onRun = func() {
		if busy || len(folded) == 20 {
			return
		}
		busy = true
		defer func() { busy = false }()
		for _, table := range tables {
			if !table.folds.latches[0].TryAcquire(1) {
				folded = append(folded, table.name.Table)
				deletes(table)
				continue
			}
			table.folds.latches[0].Release(1)
		}
	}
	b.s.folder.round(false)
	if n := slices.Index(folded, "b"); n < 0 || n > 2 {
		t.Fatalf("the tables were folded in the order %v", folded)
	}
}
