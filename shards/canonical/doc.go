// Package canonical is the border between Arrow as clients send it and Arrow as
// the engine keeps it.
//
// A column's declared type is what its schema says; its canonical type is what
// every array inside the engine has, one layout for each kind of value:
//
//	string, large_string, string_view              string
//	binary, large_binary, binary_view              binary
//	list, large_list, list_view, large_list_view   list
//	dictionary<i, v>, run_end_encoded<r, v>        canonical v
//	an extension type                              its canonical storage
//	map, struct, fixed_size_list                   the same of canonical children
//	all other types                                themselves
//
// Nullability, metadata and names of nested fields (but the names in a struct)
// belong to the declared type; canonical types have none, so that
// arrow.TypeEqual of two canonical types says whether values fit.
//
// In flow arrays from outside, which may lie about everything; Normalize checks
// them and makes canonical arrays, without copying where the layout allows.
// Canonical arrays also keep these promises: offset 0; buffers of exactly the
// needed length, none nil but validity; no validity buffer if there is no null,
// else an exact null count; offsets that begin at 0 and end at the last byte or
// child used; children of exactly the needed length. Out flow arrays of the
// declared type, made by Restore just before they are sent.
//
// Unions are refused by name. A null in a dictionary's values or in a run is a
// null. The package does no I/O and never panics on an array it is given.
package canonical
