// Package ipcread decodes the messages of an Arrow IPC stream that a stranger
// sends.
//
// In flow the parts of a message as Flight carries them: its header, a
// flatbuffer, and its body. Out flow the schema and record batches. Everything a
// header says is checked before anything is allocated or followed: places in
// the flatbuffer, nesting, the number of fields, lengths of buffers, what
// compressed buffers will take. What does not hold is a *fault.Error of kind
// INVALID_ARGUMENT, or RESOURCE_EXHAUSTED where a limit is met; no input panics.
//
// Buffers alias the body where they can. Values of arrays are not checked: the
// offsets, indices and bitmaps in them are canonical.Normalize's part. Only
// dictionaries are normalized here, once, since many batches refer to them.
package ipcread
