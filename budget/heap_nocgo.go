//go:build !cgo

package budget

// outsideHeap: without cgo Pebble's caches are Go memory.
const outsideHeap = false
