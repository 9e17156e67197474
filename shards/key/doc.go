// Package key turns the key columns of rows into bytes whose order is the
// order of the rows, and those bytes into slice numbers.
//
// In flow whole Arrow columns (canonical layouts: see package canonical) and
// out flow Keys: one encoded key per row, all in one buffer. bytes.Compare of
// two encoded keys equals comparing the typed values column by column:
//
//	int8 … int64               own width, big-endian, sign bit flipped
//	uint8 … uint64             own width, big-endian
//	bool                       1 byte, 00 or 01
//	date32, time32             4 bytes, as int32
//	date64, time64,
//	timestamp, duration        8 bytes, as int64 (the unit is the column's)
//	decimal32/64/128/256       4/8/16/32 bytes, big-endian two's complement of
//	                           the scaled integer, sign bit flipped
//	fixed_size_binary(n)       its n bytes
//	string, binary             bytes with 00 written as 00 FF, then 00 01
//
// Dictionary, run-end encoded, large and view columns count as their values.
// Within one column type no encoding is a prefix of another, so a key's leading
// columns are a byte prefix of the key, found again by Prefix. Floats (NaN,
// −0.0), intervals, nested types and nulls have no encoding.
//
// The slice of a row is the high 64 bits of xxhash64(sharding part) × slices:
// slices own contiguous hash ranges, and doubling their count splits each one
// in exactly two.
//
// testdata/vectors.json pins all of it for every language. The package does no
// I/O, keeps no state and never panics on bytes it is given.
package key
