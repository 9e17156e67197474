// Package block holds rows column by column, in memory and encoded.
//
// A Vector is a column that grows: rows are appended from arrays (all of a
// range, picks, picks of several arrays) or decoded from blocks, straight into
// buffers that NewArray then hands over as an Arrow array without a copy. So a
// scan appends a few blocks into one message and sends it, and nothing is
// touched twice.
//
// An Encoder makes a block of some columns: a directory of column ids, one
// chunk a column, a checksum. Chunks are encoded lightly, by cheap exact tests
// on the block itself: one value; numbers as least + step × n bits; floats that
// are short decimals as integers over a power of ten, others over a
// power of two where that saves, to the bit; values that repeat as codes of a
// dictionary; text as lengths and bytes, in LZ4 where that
// helps; anything else as its Arrow buffer. All but LZ4 is random access. The
// same columns always give the same bytes. docs/format-blocks.md describes them
// one by one.
//
// A Reader reads a block in place: a range of rows, or picks that cost what
// they pick. It trusts no byte: damage is an error that wraps ErrCorrupt and
// names the column, never a panic, never more memory than MaxColumnBytes.
//
// A Zone is what pruning knows of a column of a block: bounds in bytes that
// compare like the values.
//
// Everything here is canonical (package canonical): offset-0 arrays of plain
// types. The package does no I/O, knows no keys, tables or schemas, and never
// changes what it is given.
package block
