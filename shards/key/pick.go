package key

import (
	"bytes"
	"encoding/binary"
)

// AppendRows appends keys of another list, in the order of rows. Together they
// must take less than 4 GiB.
func (k *Keys) AppendRows(src *Keys, rows []uint32) {
	if len(rows) == 0 {
		return
	}
	total := 0
	for _, row := range rows {
		total += len(src.At(int(row)))
	}
	at := len(k.Data)
	k.Grow(len(rows), total+pickStep)
	data := k.Data[:at+total+pickStep]
	from := src.Data
	for _, row := range rows {
		lo := 0
		if row > 0 {
			lo = int(src.Ends[row-1])
		}
		hi := int(src.Ends[row])
		if hi-lo > pickStep || lo+pickStep > len(from) {
			copy(data[at:], from[lo:hi])
		} else { // two steps of fixed size cost less than a call
			to, key := data[at:at+pickStep], from[lo:lo+pickStep]
			*(*[pickStep / 2]byte)(to) = [pickStep / 2]byte(key)
			*(*[pickStep / 2]byte)(to[pickStep/2:]) = [pickStep / 2]byte(key[pickStep/2:])
		}
		at += hi - lo
		k.Ends = append(k.Ends, uint32(at))
	}
	k.Data = data[:at]
}

// pickStep is how far the copy of a key that is not longer may reach.
const pickStep = 32

// AppendRange appends the keys lo ≤ i < hi of another list.
func (k *Keys) AppendRange(src *Keys, lo, hi int) {
	if lo == hi {
		return
	}
	start := uint32(0)
	if lo > 0 {
		start = src.Ends[lo-1]
	}
	base := uint32(len(k.Data))
	k.Data = append(k.Data, src.Data[start:src.Ends[hi-1]]...)
	first := len(k.Ends)
	k.Ends = grow(k.Ends, hi-lo)[:first+hi-lo]
	to := k.Ends[first:]
	for i, end := range src.Ends[lo:hi] {
		to[i] = end - start + base
	}
}

// Descent is the first key that is not greater than the one before it; the
// number of keys if there is none.
func (k *Keys) Descent() int {
	n := len(k.Ends)
	if n == 0 {
		return 0
	}
	data := k.Data
	at, next := 0, int(k.Ends[0])
	for i, end := range k.Ends[1:] {
		a, b := data[at:next], data[next:end]
		at, next = next, int(end)
		if len(a) >= 8 && len(b) >= 8 {
			x, y := binary.BigEndian.Uint64(a), binary.BigEndian.Uint64(b)
			if x < y {
				continue
			}
			if x > y {
				return i + 1
			}
		}
		if bytes.Compare(a, b) >= 0 {
			return i + 1
		}
	}
	return n
}
