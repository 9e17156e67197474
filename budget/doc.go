// Package budget is how the memory of a gateway, --memory, is shared out, and
// how reads wait for their share.
//
// Split says what each user of memory may take: the cache of encoded blocks, the
// cache of run tails, memtables, messages being received, rows being read, and
// what is left to Go's collector. Default is the share of the machine that a
// gateway takes when nobody says otherwise.
//
// A Gate counts what an allocator has handed out for reads and lets them wait:
// a read may always go on with the piece that its client waits for, as long as
// its blocks are small; what it would prepare ahead, and blocks that are large,
// wait until there is room.
//
// The package knows neither tables nor wire: it imports fault only.
package budget
