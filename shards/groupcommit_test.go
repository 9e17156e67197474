package shards

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// countedFS counts the syncs of logs and makes them as slow as a disk's.
type countedFS struct {
	vfs.FS
	syncs *atomic.Int64
}

func (fs countedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.counted(name, f), err
}

func (fs countedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.counted(newname, f), err
}

func (fs countedFS) Unwrap() vfs.FS { return fs.FS }

func (fs countedFS) counted(name string, f vfs.File) vfs.File {
	if f == nil || !strings.HasSuffix(name, ".log") {
		return f
	}
	return countedFile{f, fs.syncs}
}

type countedFile struct {
	vfs.File
	syncs *atomic.Int64
}

func (f countedFile) wait() {
	f.syncs.Add(1)
	time.Sleep(time.Millisecond)
}

func (f countedFile) Sync() error     { f.wait(); return f.File.Sync() }
func (f countedFile) SyncData() error { f.wait(); return f.File.SyncData() }
func (f countedFile) SyncTo(n int64) (bool, error) {
	f.wait()
	return f.File.SyncTo(n)
}

// TestWritersShareSyncs: commits of many writers are durable after far fewer
// syncs than commits, and each was visible when its writer heard of it.
func TestWritersShareSyncs(t *testing.T) {
	const writers, each = 64, 10
	b := newBed(t)
	b.close()
	var syncs atomic.Int64
	memory := b.fs.(*vfs.MemFS)
	b.fs = countedFS{memory, &syncs}
	b.open()
	table := b.create("t", "k:string v:int64", "k", "", 4)
	prepared := make([][]*Prepared, writers)
	for w := range writers {
		for i := range each {
			prepared[w] = append(prepared[w], b.prepare(table, []values{{fmt.Sprintf("w%d-%d", w, i), int64(i)}}, false))
		}
	}
	syncs.Store(0)
	var all sync.WaitGroup
	errs := make(chan error, writers*each)
	for _, mine := range prepared {
		all.Go(func() {
			for _, p := range mine {
				commit, err := table.Publish(context.Background(), []*Prepared{p}, PublishOptions{})
				table.mu.Lock()
				visible := table.visible.commit
				table.mu.Unlock()
				if err == nil && visible < commit {
					err = fmt.Errorf("commit %d was acknowledged before it was visible", commit)
				}
				if err != nil {
					errs <- err
				}
			}
		})
	}
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := syncs.Load(); n == 0 || n > writers*each/4 {
		t.Errorf("%d commits took %d syncs", writers*each, n)
	}
	// What is not synced is lost; every commit was acknowledged, so none is.
	crashed := memory.CrashClone(vfs.CrashCloneCfg{})
	b.close()
	b.fs = crashed
	b.open()
	if n := len(b.rows(b.table("t"))); n != writers*each {
		t.Errorf("%d rows after a crash, not %d", n, writers*each)
	}
}
