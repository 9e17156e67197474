package budget

// Shares is what each user of memory may take, in bytes.
type Shares struct {
	Total     int64
	Blocks    int64 // Pebble's cache of encoded blocks, outside Go's heap
	Memtables int64 // Pebble's memtables, all of them, outside Go's heap
	Tails     int64 // decoded indexes, zone maps and filters of runs
	Receiving int64 // messages on their way in, until they are durable
	Reading   int64 // rows on their way out
	Heap      int64 // Go's soft limit: Tails, Receiving, Reading, and garbage
}

// Least is the smallest total that a gateway works with.
const Least = 64 << 20

// mostMemtables: more of them would only make a restart replay more.
const mostMemtables = 64 << 20

// Split shares out total, which is at least Least. At most half of it is live on
// Go's heap, so that the collector, which keeps the heap below Heap, has room.
func Split(total int64) Shares {
	total = max(total, Least)
	s := Shares{
		Total:     total,
		Blocks:    total / 4,
		Memtables: min(total/16, mostMemtables),
		Tails:     total / 10,
		Receiving: total / 5,
		Reading:   total / 5,
	}
	s.Heap = total - s.Blocks - s.Memtables
	if !outsideHeap {
		s.Heap = total
	}
	return s
}
