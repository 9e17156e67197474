package block

import "errors"

// Column ids. A user's columns count from 1 and are never reused; ids from
// FirstReserved on are the engine's own.
const (
	FirstReserved   uint32 = 0xFFFFFF00
	ColumnCommit    uint32 = 0xFFFFFF01 // uint64: commit number of the row
	ColumnTombstone uint32 = 0xFFFFFF02 // bool: the row is a delete
	ColumnExpires   uint32 = 0xFFFFFF03 // when the row expires
	ColumnHiddenID  uint32 = 0xFFFFFF04 // uint64: key of a table without a key
)

// Bounds of a block, so that a damaged one cannot ask for more memory.
const (
	// MaxRows bounds the rows of a block; blocks of runs hold limits.BlockRows.
	MaxRows = 1 << 20
	// MaxColumnBytes bounds one column of a block as plain Arrow: a block holds
	// about 1 MiB, or one row of limits.RowBytes.
	MaxColumnBytes = 64 << 20
	// maxChildRows bounds the child rows of a list column that need no bytes.
	maxChildRows = 1<<31 - 1
)

// ErrCorrupt is wrapped by every error about bytes that no Encoder wrote.
var ErrCorrupt = errors.New("corrupt block")

// Ref names one row of several batches.
type Ref struct{ Batch, Row uint32 }
