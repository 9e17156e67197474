// Package block holds rows column by column: growable vectors in canonical
// Arrow layout, the light encodings of a chunk (one column of one block), the
// block around them, and zone values.
package block
