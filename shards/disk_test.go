package shards

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/budget"
)

// onRealDisk is a store in a directory of the file system.
func onRealDisk(t *testing.T) *bed {
	b := &bed{t: t, fs: vfs.Default, mem: memory.NewCheckedAllocator(memory.DefaultAllocator)}
	s, err := Open(context.Background(), t.TempDir(), Options{
		FS: b.fs, FoldConcurrency: -1, Allocator: b.mem, Memory: budget.Shares{Blocks: 8 << 20, Tails: 4 << 20, Memtables: 64 << 20}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.s = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		b.mem.AssertSize(t, 0)
	})
	return b
}

// diskBytes is what the store's files take, but for the ballast; logs apart, since
// Pebble keeps some to be written over.
func (b *bed) diskBytes() (n, logs int64) {
	b.t.Helper()
	err := filepath.WalkDir(filepath.Dir(b.s.tmpDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ballastName {
			return nil // files come and go
		}
		info, err := d.Info()
		switch {
		case err != nil: // it is gone
		case filepath.Ext(path) == ".log":
			logs += info.Size()
		default:
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n, logs
}

// settledBytes folds everything and waits until the disk is down to most, or for
// some seconds.
func (b *bed) settledBytes(table *Table, most int64) (n int64) {
	b.t.Helper()
	if err := table.Fold(context.Background()); err != nil {
		b.t.Fatal(err)
	}
	b.s.janitor.wait()
	var logs int64
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if n, logs = b.diskBytes(); n <= most {
			break
		}
	}
	if most := int64(6 * memtableBytes); logs > most { // of any store
		b.t.Errorf("the logs take %d bytes, at most %d are kept", logs, most)
	}
	return n
}

// diskRows are rows from first on, the version-th time they are written, some
// 100 bytes each that do not compress.
func diskRows(first, n, stride, version int) []values {
	rows := make([]values, n)
	for i := range rows {
		k := (first + i) * stride
		x := uint64(k+1) * 0x9e3779b97f4a7c15 * uint64(version*2+1)
		rows[i] = values{fmt.Sprintf("k%d", k%97), int64(k), int64(x), fmt.Sprintf("%016x%016x%016x", x, x*x, x*x*x)}
	}
	return rows
}

// TestDeletedRowsLeaveTheDisk: after nine rows of ten are deleted and folded the
// store takes at most 1.3 times what one takes that was only ever given the rest;
// so after every row was written twenty times over.
func TestDeletedRowsLeaveTheDisk(t *testing.T) {
	const total, commit = 60_000, 6_000
	create := func(b *bed) *Table {
		return b.create("t", "k:string s:int64 v:int64 w:string", "k", "s", 4)
	}
	fresh := onRealDisk(t)
	table := create(fresh)
	for at := 0; at < total/10; at += commit {
		fresh.put(table, diskRows(at, commit, 10, 0)...)
	}
	want := fresh.settledBytes(table, 1<<40)

	t.Run("nine of ten deleted", func(t *testing.T) {
		for _, small := range []bool{false, true} {
			b := onRealDisk(t)
			table := create(b)
			for at := 0; at < total; at += commit {
				b.put(table, diskRows(at, commit, 1, 0)...)
			}
			before := b.settledBytes(table, 1<<40)
			size := commit
			if small { // deletes go to the delta
				size = 1000
			}
			for at := 0; at < total; at += size {
				var gone []values
				for _, row := range diskRows(at, size, 1, 0) {
					if row[1].(int64)%10 != 0 {
						gone = append(gone, row)
					}
				}
				b.delete(table, gone...)
			}
			got := b.settledBytes(table, want*13/10)
			t.Logf("%d KiB before, %d KiB after; %d KiB a store of the rest only", before>>10, got>>10, want>>10)
			if got > want*13/10 {
				t.Errorf("the store takes %d bytes, one of the rest %d", got, want)
			}
		}
	})
	t.Run("written twenty times", func(t *testing.T) {
		for _, size := range []int{commit, 500} {
			b := onRealDisk(t)
			table := create(b)
			for version := range 20 {
				for at := 0; at < total/10; at += size {
					b.put(table, diskRows(at, min(size, total/10), 10, version)...)
				}
				b.foldAll(table)
			}
			got := b.settledBytes(table, want*13/10)
			t.Logf("%d KiB; %d KiB a store of the rows once", got>>10, want>>10)
			if got > want*13/10 {
				t.Errorf("the store takes %d bytes, one that was given the rows once %d", got, want)
			}
		}
	})
}
