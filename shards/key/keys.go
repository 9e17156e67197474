package key

// Keys is a list of encoded keys in one buffer: key i is
// Data[Ends[i-1]:Ends[i]], key 0 begins at 0. The zero value is an empty list.
// It is plain Go memory; one goroutine writes, any number read.
type Keys struct {
	Data []byte
	Ends []uint32
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.Ends) }

// At is key i. It aliases the list and must not be appended to or changed.
func (k *Keys) At(i int) []byte {
	var start uint32
	if i > 0 {
		start = k.Ends[i-1]
	}
	end := k.Ends[i]
	return k.Data[start:end:end]
}

// Append adds a copy of one encoded key.
func (k *Keys) Append(key []byte) {
	k.Data = append(k.Data, key...)
	k.Ends = append(k.Ends, uint32(len(k.Data)))
}

// Reset empties the list and keeps its memory.
func (k *Keys) Reset() {
	k.Data, k.Ends = k.Data[:0], k.Ends[:0]
}

// Grow makes room for n more keys of together the given bytes.
func (k *Keys) Grow(n, bytes int) {
	k.Ends = grow(k.Ends, n)
	k.Data = grow(k.Data, bytes)
}

// grow is slices.Grow without its panic on a negative count.
func grow[T any](s []T, n int) []T {
	if free := cap(s) - len(s); n > free {
		larger := make([]T, len(s), max(len(s)+n, 2*cap(s)))
		copy(larger, s)
		return larger
	}
	return s
}
