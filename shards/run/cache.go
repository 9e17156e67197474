package run

import (
	"container/list"
	"sync"
	"unsafe"
)

// cacheShards spreads the cache over locks: scans on all cores look up tails at
// once.
const cacheShards = 16

// tailKey names one part of one slice's tail.
type tailKey struct {
	table, run uint64
	slice      uint16
	kind       tailKind
	part       uint32
	sub        uint32 // zone maps: column group; filters: block of the leaf
}

type tailKind uint8

const (
	tailIndex tailKind = iota
	tailZones
	tailFilter
)

func (k tailKey) shard() uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := (k.table*odd ^ k.run) * odd
	h = (h ^ uint64(k.slice)<<40 ^ uint64(k.kind)<<32 ^ uint64(k.part)) * odd
	h = (h ^ uint64(k.sub)) * odd
	return h >> 60
}

// Cache holds decoded tails (block indexes, zone maps, filters) of all runs of
// a store, least recently used out first. It is safe for concurrent use.
type Cache struct{ shards [cacheShards]cacheShard }

type cacheShard struct {
	mu     sync.Mutex
	budget int64
	bytes  int64
	items  map[tailKey]*list.Element
	recent list.List // front: used last
}

type cacheItem struct {
	key   tailKey
	value any
	bytes int64 // with itemBytes
}

// itemBytes is what the cache itself takes for an item: the item, its place in
// the list, and its slot in the map at two thirds of its slots in use.
const itemBytes = int64(unsafe.Sizeof(cacheItem{})+unsafe.Sizeof(list.Element{})) +
	int64(unsafe.Sizeof(tailKey{})+unsafe.Sizeof((*list.Element)(nil))+1)*3/2

// NewCache makes a cache of at most so many bytes of decoded run tails, what it
// takes for itself among them.
func NewCache(bytes int64) *Cache {
	c := &Cache{}
	for i := range c.shards {
		c.shards[i].budget = bytes / cacheShards
		c.shards[i].items = map[tailKey]*list.Element{}
	}
	return c
}

// Bytes is what the cache holds now.
func (c *Cache) Bytes() int64 {
	var total int64
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		total += s.bytes
		s.mu.Unlock()
	}
	return total
}

func (c *Cache) get(k tailKey) any {
	s := &c.shards[k.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.items[k]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(at)
	return at.Value.(*cacheItem).value
}

// put takes a value that is never changed any more. What is larger than the
// whole budget of a shard is not kept.
func (c *Cache) put(k tailKey, value any, bytes int64) {
	bytes += itemBytes
	s := &c.shards[k.shard()]
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.items[k]; ok || bytes > s.budget {
		return
	}
	s.items[k] = s.recent.PushFront(&cacheItem{k, value, bytes})
	s.bytes += bytes
	for s.bytes > s.budget {
		oldest := s.recent.Back()
		item := s.recent.Remove(oldest).(*cacheItem)
		delete(s.items, item.key)
		s.bytes -= item.bytes
	}
}
