package shards

import (
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS keeps failures of Pebble's log and manifest away from Pebble. It has no
// way back from those: it calls Fatalf or panics, and a panic while the log is
// rotated unlocks a mutex that is not locked, which no recover can catch. So a
// failed write, sync or creation of these files latches the store and then never
// returns. The goroutine that is stuck holds the commit pipeline or the lock of
// the manifest, which only writers need; DB.mu, which readers need, is not held
// at any of these calls.
//
// Failures of other files are passed on, after a pause: Pebble tries a flush or
// a compaction that failed again at once, for ever.
type logFS struct {
	vfs.FS
	failure *failure
	space   *diskSpace
}

// critical reports whether a file is one whose failure Pebble cannot live with.
func (fs logFS) critical(name string) bool {
	base := fs.FS.PathBase(name)
	return strings.HasSuffix(base, ".log") || strings.HasPrefix(base, "MANIFEST-") || strings.HasPrefix(base, "marker.")
}

// stop latches the store and does not return, unless err is nil.
func (f *failure) stop(what string, err error) {
	if err == nil {
		return
	}
	f.stuck.Store(true)
	f.latch(fmt.Errorf("%s: %w", what, err))
	select {}
}

// Unwrap is the file system below.
func (fs logFS) Unwrap() vfs.FS { return fs.FS }

// Create makes a file; of a critical one every failure stops.
func (fs logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	return fs.guarded("creating", name, f, err)
}

// ReuseForWrite renames and reopens a file, as Create.
func (fs logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(oldname, newname, category)
	return fs.guarded("reusing", newname, f, err)
}

func (fs logFS) guarded(doing, name string, f vfs.File, err error) (vfs.File, error) {
	if !fs.critical(name) {
		if err != nil {
			return nil, fs.pause(err)
		}
		return tableFile{reservedFile{f, fs.space}, fs}, nil
	}
	base := fs.FS.PathBase(name)
	fs.failure.stop(doing+" "+base, err)
	return logFile{f, base, fs.failure}, nil
}

const (
	retryPause = 100 * time.Millisecond
	// openRetries is how many failed writes a start puts up with.
	openRetries = 20
)

// pause gives an error back after a while. A start that only ever fails would
// never end, since Pebble waits for its flush: it is stopped.
func (fs logFS) pause(err error) error {
	if err == nil {
		return nil
	}
	if fs.space.opening.Load() && fs.space.openFailures.Add(1) > openRetries {
		fs.failure.stop("opening the store", err)
	}
	time.Sleep(retryPause)
	return err
}

// tableFile is a file whose failed writes pause.
type tableFile struct {
	vfs.File
	fs logFS
}

func (f tableFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.fs.pause(err)
}

func (f tableFile) Sync() error     { return f.fs.pause(f.File.Sync()) }
func (f tableFile) SyncData() error { return f.fs.pause(f.File.SyncData()) }

// OpenDir opens a directory, whose failed sync stops: new logs and manifests
// hang on it.
func (fs logFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return logFile{f, "the directory", fs.failure}, nil
}

type logFile struct {
	vfs.File
	name    string
	failure *failure
}

func (f logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.failure.stop("writing "+f.name, err)
	return n, nil
}

func (f logFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	f.failure.stop("writing "+f.name, err)
	return n, nil
}

func (f logFile) Sync() error {
	f.failure.stop("syncing "+f.name, f.File.Sync())
	return nil
}

func (f logFile) SyncData() error {
	f.failure.stop("syncing "+f.name, f.File.SyncData())
	return nil
}

func (f logFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	f.failure.stop("syncing "+f.name, err)
	return full, nil
}
