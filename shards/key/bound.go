package key

// Next is the least key greater than every key that begins with prefix, in new
// memory; nil if there is none, which stands for the end of all keys.
func Next(prefix []byte) []byte {
	for end := len(prefix); end > 0; end-- {
		if prefix[end-1] != 0xFF {
			next := append(make([]byte, 0, end), prefix[:end]...)
			next[end-1]++
			return next
		}
	}
	return nil
}
