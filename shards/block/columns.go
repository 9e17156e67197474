package block

// Column ids. A user's columns count from 1 and are never reused; ids from
// FirstReserved on are the engine's own.
const (
	FirstReserved   uint32 = 0xFFFFFF00
	ColumnCommit    uint32 = 0xFFFFFF01 // uint64: commit number of the row
	ColumnTombstone uint32 = 0xFFFFFF02 // bool: the row is a delete
	ColumnExpires   uint32 = 0xFFFFFF03 // when the row expires
	ColumnHiddenID  uint32 = 0xFFFFFF04 // uint64: key of a table without a key
)
