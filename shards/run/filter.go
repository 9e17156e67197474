package run

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// The sharding-key filter is a split block Bloom filter (Putze, Sanders,
// Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007; the salts are
// those of Parquet): blocks of eight 32-bit words, a key sets one bit in each
// word of one block. About 10 bits a key answer wrongly for about 1 key in 80.
const (
	filterBlock      = 32 // bytes
	filterBitsPerKey = 10
)

var filterSalt = [8]uint32{
	0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
	0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
}

// spread mixes a sharding key's hash (the finaliser of MurmurHash3). The slice
// was chosen by the upper bits of the same hash, so all keys of a slice have
// them in common: unmixed, they would crowd into a few blocks.
func spread(hash uint64) uint64 {
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	hash ^= hash >> 33
	hash *= 0xc4ceb9fe1a85ec53
	return hash ^ hash>>33
}

// appendFilter appends the value of a filter over hashes, one for each distinct
// sharding key.
func appendFilter(dst []byte, hashes []uint64) []byte {
	start := len(dst)
	dst = binary.AppendUvarint(append(dst, tailVersion), uint64(len(hashes)))
	words := make([]uint32, (len(hashes)*filterBitsPerKey+8*filterBlock-1)/(8*filterBlock)*8)
	for _, hash := range hashes {
		x := spread(hash)
		blk := words[blockOf(x, len(words)/8)*8:][:8]
		for i, salt := range filterSalt {
			blk[i] |= 1 << (uint32(x) * salt >> 27)
		}
	}
	for _, w := range words {
		dst = binary.LittleEndian.AppendUint32(dst, w)
	}
	return sealTail(dst, start)
}

func blockOf(x uint64, blocks int) int {
	at, _ := bits.Mul64(x, uint64(blocks))
	return int(at)
}

// filter is the sharding-key filter of one block.
type filter struct{ data []byte }

// openFilter opens a filter; the result aliases value.
func openFilter(value []byte) (*filter, error) {
	payload, err := openTail(value)
	if err != nil {
		return nil, err
	}
	s := scanner{data: payload}
	keys := s.number()
	if s.err != nil {
		return nil, s.err
	}
	if len(s.data)%filterBlock != 0 || (len(s.data) == 0) != (keys == 0) {
		return nil, tailError("a filter of %d keys has %d bytes", keys, len(s.data))
	}
	return &filter{data: s.data}, nil
}

// bytes is the memory that the filter takes.
func (f *filter) bytes() int64 { return int64(cap(f.data)) + int64(unsafe.Sizeof(*f)) }

// mayHold is false if no row has a sharding key with this hash. A filter over no
// keys knows nothing.
func (f *filter) mayHold(hash uint64) bool {
	if len(f.data) == 0 {
		return true
	}
	x := spread(hash)
	blk := f.data[blockOf(x, len(f.data)/filterBlock)*filterBlock:][:filterBlock]
	for i, salt := range filterSalt {
		if binary.LittleEndian.Uint32(blk[4*i:])&(1<<(uint32(x)*salt>>27)) == 0 {
			return false
		}
	}
	return true
}
