package key

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"
)

// Hash is xxhash64 with seed 0 of an encoded sharding key.
func Hash(sharding []byte) uint64 { return xxhash.Sum64(sharding) }

// SliceOf is the slice that owns a hash: the high 64 bits of hash × slices, so
// 0 ≤ SliceOf < slices, and slice s of n becomes 2s and 2s+1 of 2n.
func SliceOf(hash uint64, slices int) int {
	slice, _ := bits.Mul64(hash, uint64(slices))
	return int(slice)
}

// Slices appends the slice of every key to dst. The keys have the given column
// types, of which the first sharding ones are hashed. A malformed key is an
// error that wraps ErrMalformed.
func Slices(dst []uint16, keys *Keys, types []arrow.DataType, sharding, slices int) ([]uint16, error) {
	dst = grow(dst, keys.Len())
	fixed := 0
	for _, dt := range types[:sharding] {
		shape := shapeOf(dt)
		if shape.width == 0 {
			fixed = -1
			break
		}
		fixed += shape.width
	}
	for i := range keys.Len() {
		key := keys.At(i)
		end := fixed
		if fixed < 0 {
			var err error
			if end, err = Prefix(types, key, sharding); err != nil {
				return dst, err
			}
		} else if end > len(key) {
			return dst, malformed("key of %d bytes is shorter than its sharding part of %d", len(key), end)
		}
		dst = append(dst, uint16(SliceOf(xxhash.Sum64(key[:end]), slices)))
	}
	return dst, nil
}
