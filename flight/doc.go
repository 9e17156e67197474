// Package flight is Sheaf's wire: the Arrow Flight service over gRPC.
//
// What flows in are Flight calls. A request (a ticket, a descriptor, an action's
// body) is parsed by package request, planned by package pushdown, and answered
// from a snapshot of package shards; a DoPut stream is handed to package ingest
// batch by batch. What flows out are record batches whose Arrow buffers go to
// gRPC as they are (codec.go, outbound.go), and errors: every *fault.Error
// becomes a gRPC status with its reason, everything else INTERNAL without its
// text (errors.go).
//
// Every call passes one interceptor (calls.go) that recovers panics, bounds open
// streams and logs. A read is two goroutines, one that scans and one that sends,
// with a short queue between them (get.go, stream.go): a slow client holds a few
// messages of memory and stops the scan. Tickets and paging markers carry a
// checksum and are checked like any other input (ticket.go, marker.go).
//
// The package knows nothing about storage beyond the API of shards, and keeps
// nothing between calls but queries too large for a ticket (kept.go).
// docs/wire.md is the contract it serves.
package flight
