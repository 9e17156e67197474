package run

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/sheaf-db/sheaf/limits"
)

// Every value of a tail is `version | payload | xxhash64 of both`, so that it is
// told apart from what a later version writes and from damage.
const (
	tailVersion  = 2
	tailOverhead = 1 + 8
)

// errTail is the chain's root of every error about the bytes of a tail.
var errTail = errors.New("corrupt run tail")

func tailError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errTail, fmt.Sprintf(format, args...))
}

// sealTail completes a value whose version byte and payload are dst[start:].
func sealTail(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint64(dst, xxhash.Sum64(dst[start:]))
}

// openTail is the payload of a value; it aliases it.
func openTail(value []byte) ([]byte, error) {
	if len(value) < tailOverhead {
		return nil, tailError("%d bytes are too short", len(value))
	}
	body, sum := value[:len(value)-8], binary.LittleEndian.Uint64(value[len(value)-8:])
	if got := xxhash.Sum64(body); got != sum {
		return nil, tailError("checksum is %016x, should be %016x", got, sum)
	}
	if body[0] != tailVersion {
		return nil, tailError("version %d is not known", body[0])
	}
	return body[1:], nil
}

// scanner reads the numbers and keys of a tail. The first error sticks.
type scanner struct {
	data []byte
	err  error
}

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = tailError(format, args...)
	}
	s.data = nil
}

func (s *scanner) number() uint64 {
	n, size := binary.Uvarint(s.data)
	if size <= 0 {
		s.fail("a number is cut off")
		return 0
	}
	s.data = s.data[size:]
	return n
}

// maxCount bounds numbers of things that take no bytes.
const maxCount = 1 << 20

// count is a number of things that take at least size bytes each.
func (s *scanner) count(size int) int {
	n := s.number()
	if n > maxCount || size > 0 && n > uint64(len(s.data)/size) {
		s.fail("%d entries do not fit into %d bytes", n, len(s.data))
		return 0
	}
	return int(n)
}

func (s *scanner) byte() byte {
	if len(s.data) == 0 {
		s.fail("a byte is missing")
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *scanner) u32() uint32 {
	b := s.take(4)
	if s.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (s *scanner) take(n uint64) []byte {
	if n > uint64(len(s.data)) {
		s.fail("%d bytes are missing", n-uint64(len(s.data)))
		return nil
	}
	b := s.data[:n:n]
	s.data = s.data[n:]
	return b
}

// key reads what appendKey wrote and appends it to dst, behind base.
func (s *scanner) key(dst, base []byte, limit int) []byte {
	shared, rest := s.number(), s.number()
	if shared > uint64(len(base)) || rest > uint64(limit) || shared+rest > uint64(limit) {
		s.fail("a key shares %d of %d bytes and has %d more", shared, len(base), rest)
		return dst
	}
	return append(append(dst, base[:shared]...), s.take(rest)...)
}

// appendKey appends key as the length it shares with base, the length of the
// rest, and the rest.
func appendKey(dst, base, key []byte) []byte {
	shared := 0
	for shared < len(base) && shared < len(key) && base[shared] == key[shared] {
		shared++
	}
	dst = binary.AppendUvarint(dst, uint64(shared))
	dst = binary.AppendUvarint(dst, uint64(len(key)-shared))
	return append(dst, key[shared:]...)
}

// maxKey bounds a key in a tail.
const maxKey = limits.KeyBytes
