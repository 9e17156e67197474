package run

import "github.com/sheaf-db/sheaf/shards/block"

// resolve decides what becomes of the unread part at the top: every key that is
// still to come anywhere lies behind its near bound.
func (s *Scan) resolve(t *slot) error {
	if t.left > 0 { // it is being streamed
		if s.tooLarge(min(t.part.Bytes, pieceBytes)) {
			return nil
		}
		return s.endStream(t, s.streamOn(t))
	}
	far := t.part.Last
	if s.r.Desc {
		far = t.part.First
	}
	alone := true
	if second := s.heap.second(); second != nil {
		alone = s.heap.compare(far, second.head) < 0
	}
	skip, err := s.skip(t, far, alone)
	if err != nil {
		return err
	}
	if skip {
		s.heap.pop()
		return s.advance(t)
	}
	if alone && s.pass != nil {
		if done, err := s.pass(t); done || err != nil {
			return err
		}
	}
	if alone {
		if s.tooLarge(t.part.Bytes) {
			return nil
		}
		return s.endStream(t, s.stream(t))
	}
	rows, err := s.load(t)
	if err != nil {
		return err
	}
	s.heap.pop()
	if rows == 0 {
		return s.advance(t)
	}
	if err := t.prepareMerge(s); err != nil {
		return err
	}
	s.heap.push(t)
	return nil
}

// endStream moves on when the part has been streamed to its end.
func (s *Scan) endStream(t *slot, err error) error {
	if err != nil || t.left > 0 {
		return err
	}
	s.heap.pop()
	return s.advance(t)
}

func (s *Scan) load(t *slot) (int, error) {
	if err := s.makeRoom(t); err != nil {
		return 0, err
	}
	rows, err := t.cur.Load()
	if err != nil {
		return 0, err
	}
	t.rows = rows
	s.counters.RowsScanned += uint64(rows)
	return rows, nil
}

// makeRoom asks for room for the part, which drop gives back.
func (s *Scan) makeRoom(t *slot) error {
	if s.r.Room == nil {
		return nil
	}
	done, err := s.r.Room(s.ctx, int64(t.part.Bytes), s.holding > 0)
	if err != nil {
		return err
	}
	s.holding++
	t.done = func() { s.holding--; done() }
	return nil
}

// skip is true if the part need not be read. Zones tell that no row of it
// matches the filter; but a row that does not match may hide an older one that
// does. So the part is skipped only
//
//   - if no other source has keys in its range,
//   - or if whatever has is newer than all of it: then it hides nothing,
//   - or if the zones of key columns alone tell it: then hidden rows, which have
//     the same key, do not match either.
//
// Else its keys are read, to hide others, and nothing else of it.
func (s *Scan) skip(t *slot, far []byte, alone bool) (bool, error) {
	if alone && !s.r.Tombstones && t.part.Whole && t.part.Tombstones == t.part.Rows {
		return true, nil
	}
	if s.r.Filter == nil {
		return false, nil
	}
	none, err := s.prune(t, func(uint32) bool { return true })
	if err != nil || !none {
		return false, err
	}
	if !alone && !s.oldest(t, far) {
		if none, err = s.prune(t, s.isKey); err != nil {
			return false, err
		}
		if !none {
			t.masked = true
			return false, nil
		}
	}
	s.counters.BlocksPruned++
	return true, nil
}

func (s *Scan) prune(t *slot, known func(id uint32) bool) (none bool, err error) {
	none = s.r.Filter.Prune(func(id uint32) (block.Zone, bool) {
		if err != nil || !known(id) {
			return block.Zone{}, false
		}
		z, ok, failed := t.cur.Zone(id)
		if failed != nil {
			err = failed
		}
		return z, ok && failed == nil
	})
	return none && err == nil, err
}

func (s *Scan) isKey(id uint32) bool {
	for _, k := range s.r.Key.IDs {
		if k == id {
			return true
		}
	}
	return false
}

// oldest is true if every source with keys in the part's range is newer than
// all of its rows.
func (s *Scan) oldest(t *slot, far []byte) bool {
	for _, other := range s.heap.slots {
		if other != t && s.heap.compare(far, other.head) >= 0 && other.least <= t.part.Greatest {
			return false
		}
	}
	return true
}
