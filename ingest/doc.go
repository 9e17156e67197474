// Package ingest turns record batches that arrived on a stream into commits of
// a table.
//
// What flows in: a schema and record batches from anyone, with columns in any
// order, in any layout, perhaps malformed. Keys says how tables are named and
// made; a binding matches the sent columns with the table's by name and casts
// them; a group keys, splits by slice and sorts the rows of the batches that
// one commit takes; the modes that look first (insert, insert_ignore, merge,
// update) compare with what is there, under exclusive latches. Small commits that
// streams bring to one table at the same time meet in its queue and are written
// as one.
//
// What flows out: shards.Commit values, prepared and published, and Progress:
// how much of the stream is durable. Batches never span commits, rows take
// effect in stream order however batches are grouped, and a mistake in a batch
// is a *fault.Error that names batch, row, column and value, after all batches
// before it have been made durable (unless the stream is atomic).
//
// The package knows nothing of Flight messages and nothing of how rows are
// stored. One stream is one Writer, used by one goroutine.
package ingest
