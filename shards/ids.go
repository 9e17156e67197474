package shards

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/shards/layout"
)

// Ids are never reused, over restarts and crashes: before an id is given out, a
// high-water mark above it is on disk. Marks move in steps, so most ids cost no
// write; a restart skips the rest of a step.
type ids struct {
	store *Store
	kind  byte
	step  uint64

	mu    sync.Mutex
	next  uint64
	limit uint64 // ids below this are covered by the mark on disk
}

// Kinds of id and their steps. Hidden ids move in millions: a bulk load takes
// thousands at once.
const (
	idsTables byte = 1
	idsRuns   byte = 2
	idsHidden byte = 3

	stepTables = 16
	stepRuns   = 256
	stepHidden = 1 << 20

	idsFormat byte = 1
)

func (s *Store) openIDs(kind byte, step uint64) (*ids, error) {
	l := &ids{store: s, kind: kind, step: step, next: 1, limit: 1}
	value, closer, err := s.db.Get(layout.IDsKey(kind))
	if err == pebble.ErrNotFound {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the high-water mark of ids: %w", err)
	}
	defer closer.Close()
	r := readRecord("high-water mark of ids", idsFormat, value)
	l.next = r.number()
	l.limit = l.next
	return l, r.done()
}

// take gives out n ids in a row: first, first+1, …
func (l *ids) take(n uint64) (first uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 1<<62 || l.next > 1<<63 {
		return 0, fault.New(fault.ResourceExhausted, "IDS_EXHAUSTED", "%d ids at once are too many", n)
	}
	if l.next+n > l.limit {
		limit := l.next + n + l.step
		value := newRecord(idsFormat).number(limit).seal()
		err := l.store.guard("moving the high-water mark of ids", func() error {
			return l.store.db.Set(layout.IDsKey(l.kind), value, pebble.Sync)
		})
		if err != nil {
			return 0, err
		}
		l.limit = limit
	}
	first = l.next
	l.next += n
	return first, nil
}
