// Package run writes and reads runs: immutable sorted pieces of the slices of
// one table, each an sstable of blocks with a tail of block index, zone maps
// and sharding-key filter for every slice. docs/format-runs.md describes the
// bytes.
//
// Writing: [NewWriter] makes the sstable, Writer.Add and Writer.AddRefs take
// rows in key order and cut them into blocks, Writer.Finish writes the tails,
// syncs the file and says what is in it. The caller ingests and lists it.
//
// Reading: a [Source] is the sorted rows of one slice from one place, no key
// twice: Run.Source, or the delta (package shards). A Source opens a [Cursor],
// which is moved from [Part] to Part: a piece of rows with bounds that are
// known before anything is read. [NewScan] merges the cursors of one slice:
//
//	sources (newest first) ─ Cursor.Next ─ Part{First, Last} ─┬─ alone in its key range: zones, filter, straight to output vectors
//	                                                          └─ overlapping others: Load, Keys, k-way merge, newest version, filter, output
//
// A row hides another of the same key if its version is greater; of equal
// versions the tombstone wins, then the source earlier in the list. A part is
// skipped by its zone maps only where that cannot lift an old version over a
// newer one.
//
// [Fold] is the same merge, versions and (unless told otherwise) tombstones
// kept, into Writers.
//
// Around that: Run.Pieces cuts and estimates by block indexes alone, Run.Verify
// holds everything of a slice against everything else, [Cache] keeps tails in
// memory within a budget, and [Widener] reads columns that the schema has widened
// since ([Widens]).
//
// The package never takes a commit number, never lists or removes a run, and no
// goroutine outlives a call (only Writer.AddSlices starts any); one Scan, Cursor or Writer belongs to one goroutine, Run
// and Source to all.
package run
