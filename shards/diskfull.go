package shards

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/fault"
)

// A full disk must not reach Pebble's log or manifest, where a failed write is
// fatal. Four lines of defence: commits are refused while little space is left
// (check); sstables, of Pebble's and of ours, may not take the last of it
// (reserve); what Pebble writes goes through vfs.OnDiskFull, which deletes the
// ballast file and tries again; and what fails all the same latches the store
// (failure.go).
type diskSpace struct {
	fs      vfs.FS // not wrapped
	dir     string
	ballast string // path; empty in a read-only store
	logger  *slog.Logger

	full    atomic.Bool  // ENOSPC was met and space is not back yet
	written atomic.Int64 // since the last look
	every   atomic.Int64 // when to look again

	// While the store opens nothing is reserved: without room for its last
	// writes it could not even be read.
	opening      atomic.Bool
	openFailures atomic.Int64

	mu   sync.Mutex
	size int64 // of the ballast that is wanted
}

const (
	// maxBallastBytes is room for one memtable's flush, which frees its log: what
	// a store needs to open on a full disk. It counts in every store's size.
	maxBallastBytes = memtableBytes
	minBallastBytes = 1 << 20
	// ballastShare of what is free when the ballast is made: small disks get a
	// small one.
	ballastShare = 64
	// checkEveryBytes is how much is committed between two looks at the free
	// space, less with a small ballast.
	checkEveryBytes = 4 << 20
)

// open makes the ballast if there is room for it and none yet.
func (d *diskSpace) open() error {
	usage, err := d.fs.GetDiskUsage(d.dir)
	if err != nil {
		return nil // a file system that does not know its size has no need
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size = int64(min(max(usage.AvailBytes/ballastShare, minBallastBytes), maxBallastBytes))
	if info, err := d.fs.Stat(d.ballast); err == nil {
		d.size = max(d.size, min(info.Size(), maxBallastBytes))
	}
	d.every.Store(min(d.size, checkEveryBytes))
	return d.inflate(usage)
}

// inflate writes the ballast if it is not there; the caller holds mu.
func (d *diskSpace) inflate(usage vfs.DiskUsage) error {
	if info, err := d.fs.Stat(d.ballast); err == nil && info.Size() >= d.size {
		return nil
	}
	if usage.AvailBytes < uint64(d.size)*2 {
		return nil // next time
	}
	f, err := d.fs.Create(d.ballast, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("making the ballast file: %w", err)
	}
	zeros := make([]byte, 1<<20)
	for left := d.size; left > 0 && err == nil; left -= int64(len(zeros)) {
		_, err = f.Write(zeros[:min(left, int64(len(zeros)))])
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		// Without ballast the store works; it only has less to fall back on.
		d.logger.Warn("the ballast file could not be written", "error", err)
		return d.fs.Remove(d.ballast)
	}
	return nil
}

// release is what OnDiskFull calls.
func (d *diskSpace) release() {
	if !d.full.Swap(true) {
		d.logger.Error("the disk is full: commits are refused until space is free again")
	}
	if d.ballast != "" {
		_ = d.fs.Remove(d.ballast) // it may be gone already
	}
}

// reserve refuses a write to an sstable that would leave less than a ballast's
// worth of space: that much is for the log and the manifest.
func (d *diskSpace) reserve(bytes int) error {
	if d.opening.Load() {
		return nil
	}
	usage, err := d.fs.GetDiskUsage(d.dir)
	if err != nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if usage.AvailBytes < uint64(bytes)+uint64(d.size) {
		d.full.Store(true)
		return syscall.ENOSPC
	}
	return nil
}

// reservedFile is an sstable being written.
type reservedFile struct {
	vfs.File
	space *diskSpace
}

func (f reservedFile) Write(p []byte) (int, error) {
	if err := f.space.reserve(len(p)); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

// met notes an ENOSPC that did not come through OnDiskFull.
func (d *diskSpace) met(err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	d.full.Store(true)
	return diskFull()
}

func diskFull() *fault.Error {
	return fault.New(fault.ResourceExhausted, "DISK_FULL",
		"the store's disk is (nearly) full: nothing of this commit was written, reads go on; free space and try again")
}

// check refuses a commit of about so many bytes when space is short. The free
// space is looked at once in a while, and at every commit while it is short.
func (d *diskSpace) check(bytes int64) error {
	short := d.full.Load()
	if !short && d.written.Add(bytes) < d.every.Load() {
		return nil
	}
	d.written.Store(0)
	usage, err := d.fs.GetDiskUsage(d.dir)
	if err != nil {
		d.full.Store(false)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	// Besides the commit itself as much as the ballast must stay free: for the
	// log, for compactions that make room, for the ballast to come back.
	if usage.AvailBytes < uint64(bytes)+2*uint64(d.size) {
		d.full.Store(true)
		return diskFull()
	}
	if short {
		d.logger.Info("there is free space again: commits are taken")
		if err := d.inflate(usage); err != nil {
			return err
		}
		d.full.Store(false)
	}
	return nil
}
