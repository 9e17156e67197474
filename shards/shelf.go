package shards

import (
	"sync"

	"github.com/sheaf-db/sheaf/shards/block"
)

// payload is one block of the delta, copied out of Pebble.
type payload struct {
	reader block.Reader
	schema *Schema
	size   int
}

// heldPayloads bounds the payloads that a cursor keeps for its next part, and
// those that the cursors of a scan share.
const heldPayloads = 8 << 20

// shelf is payloads that the cursors of one scan share: a slice is cut into many
// pieces, and the rows of one small commit lie all over it. It may be full: then
// it is emptied, and cursors keep what they hold. nil keeps nothing.
type shelf struct {
	mu       sync.Mutex
	payloads map[shelved]*payload
	held     int
}

type shelved struct {
	generation *generation
	version    uint64
}

func (s *shelf) get(g *generation, version uint64) *payload {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payloads[shelved{g, version}]
}

func (s *shelf) put(g *generation, version uint64, p *payload) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held > heldPayloads || s.payloads == nil {
		s.payloads, s.held = map[shelved]*payload{}, 0
	}
	s.payloads[shelved{g, version}] = p
	s.held += p.size
}
