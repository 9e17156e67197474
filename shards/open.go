package shards

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/semaphore"

	"github.com/sheaf-db/sheaf/budget"
	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
	"github.com/sheaf-db/sheaf/shards/layout"
	"github.com/sheaf-db/sheaf/shards/run"
)

// storeFormat is the version of everything below a store's directory. A store
// with a greater one is refused: it was written by a newer Sheaf.
const storeFormat byte = 1

// Names below a store's directory.
const (
	dbName      = "db"      // Pebble's
	tmpName     = "tmp"     // runs being written; emptied at the start
	ballastName = "ballast" // given up when the disk is full
)

// Open opens or makes the store in a directory. It reads manifests only, never
// rows; what no manifest lists is removed. Errors a user can mend are
// *fault.Error: STORE_LOCKED, FORMAT_TOO_NEW.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Memory == (budget.Shares{}) {
		o.Memory = budget.Split(defaultMemory)
	}
	if o.Logger == nil {
		o.Logger = quiet()
	}
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
	s := &Store{
		failure: newFailure(o.Logger), options: o, logger: o.Logger, fs: o.FS, tmpDir: o.FS.PathJoin(dir, tmpName),
		byName: map[Name]*Table{}, byID: map[uint64]*Table{},
		space:            &diskSpace{fs: o.FS, dir: dir, logger: o.Logger},
		deltaCommitBytes: limits.DeltaCommitBytes,
		writing:          semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))),
	}
	s.cache, s.tails = pebble.NewCache(o.Memory.Blocks), run.NewCache(o.Memory.Tails)
	s.janitor, s.folder, s.pins = newJanitor(s), newFolder(s), newPins(s)
	s.policy, s.pace, s.reads = defaultPolicy(), newPace(o.FoldBytes), newReads()
	s.reads.start()
	if err := s.open(ctx, dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.folder.start()
	return s, nil
}

func (s *Store) open(ctx context.Context, dir string) error {
	dbDir := s.fs.PathJoin(dir, dbName)
	if err := s.makeDirs(dir, dbDir); err != nil {
		return err
	}
	var err error
	if s.lock, err = pebble.LockDirectory(dbDir, s.fs); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return fault.New(fault.NotFound, "STORE_NOT_FOUND", "there is no store in %s", dir)
		}
		return fault.New(fault.FailedPrecondition, "STORE_LOCKED",
			"the store in %s is open in another process (%w): stop that one, or choose another directory", dir, err)
	}
	if !s.options.ReadOnly {
		s.space.ballast = s.fs.PathJoin(dir, ballastName)
		if err := s.space.open(); err != nil {
			return err
		}
	}
	fs := logFS{vfs.OnDiskFull(s.fs, s.space.release), s.failure, s.space}
	opts := pebbleOptions(s.options, fs, s.cache, s.failure, s.corrupt)
	opts.Lock = s.lock
	// Pebble's fatal paths while it opens end the goroutine, so it gets one.
	s.space.opening.Store(true)
	opened := make(chan *pebble.DB, 1)
	err = s.guard("opening the store", func() error {
		db, err := pebble.Open(dbDir, opts)
		opened <- db
		return err
	})
	s.space.opening.Store(false)
	if errors.Is(err, syscall.ENOSPC) {
		return fault.New(fault.ResourceExhausted, "DISK_FULL",
			"the disk of the store in %s is full, and opening it writes what was not flushed: free %d MiB, then start again (%w)",
			dir, maxBallastBytes>>20, syscall.ENOSPC)
	}
	if err != nil {
		return fmt.Errorf("opening the store in %s: %w", dir, err)
	}
	s.db = <-opened
	if err := s.checkFormat(); err != nil {
		return err
	}
	if s.tableIDs, err = s.openIDs(idsTables, stepTables); err != nil {
		return err
	}
	if s.runIDs, err = s.openIDs(idsRuns, stepRuns); err != nil {
		return err
	}
	if s.hiddenIDs, err = s.openIDs(idsHidden, stepHidden); err != nil {
		return err
	}
	if err := s.loadTables(ctx); err != nil {
		return err
	}
	if s.options.ReadOnly {
		return nil
	}
	if err := s.emptyTmp(); err != nil {
		return err
	}
	return s.sweep(s.byID)
}

// makeDirs makes the directories and their entries durable.
func (s *Store) makeDirs(dir, dbDir string) error {
	if s.options.ReadOnly {
		return nil
	}
	for _, d := range []string{dbDir, s.tmpDir} {
		if err := s.fs.MkdirAll(d, 0o755); err != nil {
			return fmt.Errorf("making the store's directory: %w", err)
		}
	}
	for _, d := range []string{dir, s.fs.PathDir(dir)} {
		f, err := s.fs.OpenDir(d)
		if err != nil {
			return fmt.Errorf("opening the store's directory: %w", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("syncing the store's directory: %w", err)
		}
	}
	return nil
}

func (s *Store) emptyTmp() error {
	names, err := s.fs.List(s.tmpDir)
	if err != nil {
		return fmt.Errorf("looking for unfinished runs: %w", err)
	}
	for _, name := range names {
		if err := s.fs.RemoveAll(s.fs.PathJoin(s.tmpDir, name)); err != nil {
			return fmt.Errorf("removing an unfinished run: %w", err)
		}
	}
	return nil
}

// checkFormat reads the store's format version, or writes it into a new store.
func (s *Store) checkFormat() error {
	value, closer, err := s.db.Get(layout.FormatKey())
	if err == pebble.ErrNotFound {
		if s.options.ReadOnly {
			return fault.New(fault.NotFound, "STORE_NOT_FOUND", "the directory holds no Sheaf store")
		}
		return s.guard("writing the store's format", func() error {
			return s.db.Set(layout.FormatKey(), []byte{storeFormat}, pebble.Sync)
		})
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	switch {
	case len(value) != 1 || value[0] == 0:
		return fmt.Errorf("the store's format version %x is not one", value)
	case value[0] > storeFormat:
		return fault.New(fault.FailedPrecondition, "FORMAT_TOO_NEW",
			"the store has format %d, this version of Sheaf knows up to %d: use the newer Sheaf that wrote it", value[0], storeFormat)
	}
	return nil
}

func (s *Store) loadTables(ctx context.Context) error {
	low, high := layout.TablesSpan()
	return s.each(low, high, func(key, value []byte) error {
		id, err := layout.SplitTableKey(key)
		if err != nil {
			return err
		}
		e, err := decodeEntry(value)
		if err != nil {
			return err
		}
		t := newTable(s, id, e)
		if err := t.load(); err != nil {
			return err
		}
		s.byName[t.name], s.byID[t.id] = t, t
		return ctx.Err()
	})
}

// corrupt is told by Pebble of damaged files; the read that met one gets an
// error of its own.
func (s *Store) corrupt(info pebble.DataCorruptionInfo) {
	s.logger.Error("a file of the store is damaged: run sheaf doctor", "file", info.Path, "details", info.Details)
}

// closeWait is how long Close waits for a Pebble that failed: parts of it may
// never end.
const closeWait = 3 * time.Second

// Close ends folds and removals and closes the store. Snapshots and scans must
// be released before. What was acknowledged is on disk with or without Close.
func (s *Store) Close() error {
	s.mu.Lock()
	already := s.closed
	s.closed = true
	s.mu.Unlock()
	if already {
		return nil
	}
	s.folder.close()
	s.reads.close()
	s.pins.close()
	s.janitor.close()
	if s.failure.stuck.Load() {
		return nil // what is left of Pebble keeps its files locked
	}
	var err error
	if s.db != nil {
		var ended bool
		if ended, err = s.closePebble(); !ended {
			return nil
		}
	}
	s.cache.Unref()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

func (s *Store) closePebble() (ended bool, err error) {
	// A failed Pebble, or one that fails now, may hold locks for ever and may
	// panic: it is given a moment and then left behind. Nothing that was
	// acknowledged hangs on it.
	result := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				result <- fmt.Errorf("closing the store: %v", r)
			}
		}()
		result <- s.db.Close()
	}()
	failed := s.failure.failed
	var late <-chan time.Time
	for {
		select {
		case err := <-result:
			if s.failure.get() != nil {
				err = nil // its failure was told to every write
			}
			return true, err
		case <-failed:
			failed, late = nil, time.After(closeWait)
			if s.failure.stuck.Load() {
				return false, nil
			}
		case <-late:
			s.logger.Warn("the failed store could not be closed; its files stay locked until the process ends")
			return false, nil
		}
	}
}
