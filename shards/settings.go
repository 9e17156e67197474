package shards

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sheaf-db/sheaf/shards/layout"
)

// pebbleFormat is the newest of Pebble's formats below value separation, which
// would move blocks out of the sstables that runs are. It is named, never "the
// newest", so that an upgrade of Pebble does not upgrade stores by itself.
const pebbleFormat = pebble.FormatTableFormatV6

const (
	defaultMemory = 512 << 20

	// memtableBytes: above Pebble's 4 MiB, so that a burst of small commits does
	// not stall on flushes; memtables of them may wait. What they hold is read
	// again at the start after a crash. With little memory they are smaller.
	memtableBytes      = 16 << 20
	leastMemtableBytes = 1 << 20
	memtables          = 4

	// maxOpenFiles: a run is a file, and a scan may touch thousands.
	maxOpenFiles = 8192

	// deltaBlockBytes: delta payloads are blocks of a slice's rows; Pebble's
	// 4 KiB would make an index entry for every few keys.
	deltaBlockBytes = 32 << 10
)

// memtableSize is the size of one memtable, if all may take total bytes.
func memtableSize(total int64) uint64 {
	return uint64(min(max(total/memtables, leastMemtableBytes), memtableBytes))
}

// pebbleOptions are the settings of docs/design.md.
func pebbleOptions(o Options, fs vfs.FS, cache *pebble.Cache, f *failure, corrupt func(pebble.DataCorruptionInfo)) *pebble.Options {
	opts := &pebble.Options{
		FS:                 fs,
		Cache:              cache,
		ReadOnly:           o.ReadOnly,
		FormatMajorVersion: pebbleFormat,
		MemTableSize:       memtableSize(o.Memory.Memtables),
		// Stalling writes is better than memory without bound.
		MemTableStopWritesThreshold: memtables,
		MaxOpenFiles:                maxOpenFiles,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		Logger:                      pebbleLogger{f},
		EventListener: &pebble.EventListener{
			// The default ends the process.
			DataCorruption: corrupt,
			BackgroundError: func(err error) {
				f.logger.Warn("pebble: background work failed and will be tried again", "error", err)
			},
		},
	}
	for i := range opts.Levels {
		opts.Levels[i].BlockSize = deltaBlockBytes
		// Payloads are encoded already; LZ-like compression of keys costs more
		// than it saves at the size of a delta.
		opts.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	// No sstable crosses a region: a flush of meta and delta keys must not
	// overlap the runs.
	opts.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		var end []byte
		switch {
		case len(start) == 0 || start[0] < layout.RegionDelta:
			end = []byte{layout.RegionDelta}
		case start[0] < layout.RegionRun:
			end = []byte{layout.RegionRun}
		}
		return pebble.SpanPolicy{}, end, nil
	}
	// A run overlaps no memtable, so an ingest never needs this; and its fatal
	// path unlocks a mutex that is not locked when the goroutine ends there.
	opts.Experimental.DisableIngestAsFlushable = func() bool { return true }
	return opts
}

// quiet is a logger for stores opened without one.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
