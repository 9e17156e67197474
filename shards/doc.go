// Package shards keeps tables: slices of key-sorted runs and recent small
// writes on one Pebble database.
//
// What flows in: prepared commits, that is canonical Arrow columns with the
// encoded primary keys of their rows, already split by slice and sorted
// (package ingest does that). Prepare encodes them, as a run when they are
// large and as delta pieces when they are small; Publish gives the commit its
// number, makes it durable by one synced batch and visible in number order.
//
// What flows out: batches of canonical columns, from a Scan over a Snapshot: a
// pinned version of the table that stays as it is while commits and folds go
// on. Folds merge the delta and overlapping runs of a slice in the background.
//
// One file a concept: Schema (schema.go), the catalog entry on disk
// (catalog.go), version and manifest (version.go, manifest.go), Prepare and
// Publish (prepare.go, publish.go), the delta (delta.go), snapshots and what
// they keep alive (snapshot.go, garbage.go), scans (scan.go and its
// neighbours), folds (foldplan.go decides, fold.go does), failure (failure.go).
// docs/format-store.md describes the meta and delta regions byte by byte; the
// sub-packages hold keys, blocks, runs and the names of all Pebble keys.
//
// The package never reads a clock into what it stores, never draws random
// numbers, knows nothing of Flight and never ends the process: a write that
// failed below latches the store read-only, and reads go on.
package shards
