//go:build cgo

package budget

// outsideHeap: with cgo Pebble's caches are C memory, which Go's limit does not
// count.
const outsideHeap = true
