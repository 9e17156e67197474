package shards

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/fault"
)

// smallDisk is a file system with so many bytes.
type smallDisk struct {
	vfs.FS
	mu   sync.Mutex
	size int64
}

// used adds up all files.
func (d *smallDisk) used(dir string) int64 {
	names, err := d.FS.List(dir)
	if err != nil {
		return 0
	}
	var n int64
	for _, name := range names {
		path := d.FS.PathJoin(dir, name)
		info, err := d.FS.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			n += d.used(path)
		default:
			n += info.Size()
		}
	}
	return n
}

// take fails if so many bytes more do not fit.
func (d *smallDisk) take(n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.used("/store")+int64(n) > d.size {
		return syscall.ENOSPC
	}
	return nil
}

func (d *smallDisk) resize(size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size = size
}

func (d *smallDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	used := d.used("/store")
	return vfs.DiskUsage{TotalBytes: uint64(d.size), UsedBytes: uint64(used), AvailBytes: uint64(max(d.size-used, 0))}, nil
}

func (d *smallDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)
	return smallFile{f, d}, err
}

func (d *smallDisk) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := d.FS.OpenReadWrite(name, c, o...)
	return smallFile{f, d}, err
}

func (d *smallDisk) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, c)
	return smallFile{f, d}, err
}

type smallFile struct {
	vfs.File
	disk *smallDisk
}

func (f smallFile) Write(p []byte) (int, error) {
	if err := f.disk.take(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// TestDiskFull: writers run until the disk is full, with commits of both kinds.
// They are refused by name before anything breaks, reads go on, freed space is
// used again without a restart, and nothing acknowledged is missing.
func TestDiskFull(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewCrashableMem(), size: 24 << 20}
	b := newBedOn(t, disk)
	table := b.create("t", "k:int64 v:string", "k", "", 2)
	rng := rand.New(rand.NewPCG(1, 1))
	text := func() string { // nothing that compresses
		letters := make([]byte, 1500)
		for i := range letters {
			letters[i] = byte(' ' + rng.IntN(90))
		}
		return string(letters)
	}
	var content []values
	write := func() error {
		var rows []values
		for i := range 300 {
			k := int64(len(content) + i)
			rows = append(rows, values{k, text()})
		}
		b.s.deltaCommitBytes = int64(len(content)/300%2) << 20
		c, release := commitOf(t, b.mem, table.Schema(), rows, false)
		defer release()
		p, err := table.Prepare(context.Background(), c)
		if err != nil {
			return err
		}
		if _, err = table.Publish(context.Background(), []*Prepared{p}, PublishOptions{}); err != nil {
			p.Discard()
			return err
		}
		content = append(content, rows...)
		return nil
	}
	fill := func() {
		for {
			err := write()
			if err == nil {
				continue
			}
			if found := fault.Of(err); found == nil || found.Kind != fault.ResourceExhausted || found.Reason != "DISK_FULL" {
				t.Fatalf("a full disk gives %v", err)
			}
			return
		}
	}
	check := func() {
		t.Helper()
		if err := b.s.Err(); err != nil {
			t.Fatalf("the store is %v", err)
		}
		if got := b.rows(table); format(got) != format(content) {
			t.Fatalf("%d rows, want %d", len(got), len(content))
		}
	}
	fill()
	if len(content) == 0 {
		t.Fatal("nothing fits")
	}
	check()
	full := len(content)
	disk.resize(40 << 20)
	fill()
	if len(content) <= full {
		t.Fatal("freed space is not used")
	}
	check()
	disk.resize(100 << 20)
	b.reopen()
	table = b.table("t")
	check()
	if err := write(); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestOpenOnFullDisk: a store that was closed on a disk now full is opened with
// the ballast's space; where that is not enough the start ends and says so. It
// can be read either way.
func TestOpenOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		size   int64 // of the disk, which the ballast goes by
		opened bool
	}{{512 << 20, true}, {64 << 20, false}} {
		mem := vfs.NewCrashableMem()
		disk := &smallDisk{FS: mem, size: c.size}
		b := newBedOn(t, disk)
		table := b.create("t", "k:int64 v:string", "k", "", 2)
		for i := range int64(8) {
			b.put(table, values{i, strings.Repeat("x", 500<<10)})
		}
		disk.resize(disk.used("/store"))
		b.close()

		b.o.ReadOnly = true
		b.open()
		if rows := b.rows(b.table("t")); len(rows) != 8 {
			t.Fatalf("%d rows, read only", len(rows))
		}
		b.close()

		b.o.ReadOnly = false
		s, err := Open(context.Background(), "/store", b.o)
		if opened := err == nil; opened != c.opened || !opened && !fault.Is(err, "DISK_FULL") {
			t.Fatalf("opened a full disk of %d bytes: %v", c.size, err)
		}
		if !c.opened { // with space, as after a restart
			b.fs = mem.CrashClone(vfs.CrashCloneCfg{})
			b.open()
			s = b.s
		}
		b.s = s
		if rows := b.rows(b.table("t")); len(rows) != 8 {
			t.Fatalf("%d rows", len(rows))
		}
	}
}

// TestBallast: what Pebble writes when the disk is full all the same finds the
// ballast's space.
func TestBallast(t *testing.T) {
	disk := &smallDisk{FS: vfs.NewCrashableMem(), size: 64 << 20}
	b := newBedOn(t, disk)
	table := b.create("t", "k:int64 v:int64", "k", "", 2)
	b.put(table, values{int64(1), int64(1)})
	if _, err := disk.Stat(b.s.space.ballast); err != nil {
		t.Fatal(err)
	}
	p := b.prepare(table, []values{{int64(2), int64(2)}}, false)
	// Somebody else fills the disk behind the store's back.
	disk.resize(disk.used("/store") + 10)
	b.publish(table, PublishOptions{}, p)
	if _, err := disk.Stat(b.s.space.ballast); err == nil {
		t.Fatal("the ballast is still there: the disk was not full")
	}
	c, release := commitOf(t, b.mem, table.Schema(), []values{{int64(3), int64(3)}}, false)
	defer release()
	if _, err := table.Prepare(context.Background(), c); !fault.Is(err, "DISK_FULL") {
		t.Fatalf("the next commit: %v", err)
	}
	if got := format(b.rows(table)); got != "1 1\n2 2\n" {
		t.Fatalf("got\n%s", got)
	}
	disk.resize(64 << 20)
	b.put(table, values{int64(3), int64(3)})
	if _, err := disk.Stat(b.s.space.ballast); err != nil {
		t.Fatal("the ballast is not made again")
	}
}
