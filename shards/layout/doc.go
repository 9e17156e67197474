// Package layout names every key that Sheaf writes to Pebble, in one place.
//
// Three regions: meta (catalog, manifest), delta (recent small writes), run
// (immutable sorted runs). The run region is last and a run is one contiguous
// range, so that its sstable overlaps nothing and is ingested at the bottom
// level. All numbers are big-endian; ids are never reused.
//
// The package holds names only: no I/O, no values. docs/format-store.md and
// docs/format-runs.md describe them byte by byte.
package layout
