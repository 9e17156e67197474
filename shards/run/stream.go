package run

import (
	"slices"

	"github.com/sheaf-db/sheaf/shards/key"
)

// stream appends the rows of a part that is alone in its key range: no keys are
// encoded and nothing is decoded but straight onto the output, unless rows have
// to be left out.
func (s *Scan) stream(t *slot) error {
	whole := t.part.Whole && (s.r.Tombstones || t.part.Tombstones == 0)
	if whole && len(s.out) == 0 && s.r.Filter == nil && !s.r.LastKeys {
		s.returned(t.part.Rows) // the index knows the answer
		return nil
	}
	rows, err := s.load(t)
	if err != nil || rows == 0 {
		return err
	}
	masked := s.r.Filter != nil || t.part.Tombstones > 0 && !s.r.Tombstones
	if !masked {
		t.streamed, t.left = 0, rows
		return s.streamOn(t)
	}
	if err := s.choose(t, rows); err != nil {
		return err
	}
	if s.r.Desc {
		slices.Reverse(s.picks)
	}
	s.picks = s.picks[:min(int64(len(s.picks)), s.left)]
	switch {
	case len(s.picks) == 0:
		return nil
	case len(s.picks) == rows && !s.r.Desc:
		return s.streamRange(t, 0, rows)
	}
	return s.streamRows(t, rows)
}

// Where batches are to be this small, parts of more than a few pieceBytes are
// decoded in pieces of these: so many scans that each hold a batch, as those
// merged by key do, hold less than a block of plain rows each.
const (
	smallTarget = 32 << 10
	fewPieces   = 4
)

var pieceBytes = 64 << 10 // tests change it

// streamOn appends the rows of the part that are left, or a piece of them.
func (s *Scan) streamOn(t *slot) error {
	n := t.left
	if s.r.TargetBytes < smallTarget && t.part.Bytes > fewPieces*pieceBytes {
		n = min(n, 1+t.part.Rows*pieceBytes/t.part.Bytes)
	}
	from := t.streamed
	t.streamed, t.left = t.streamed+n, t.left-n
	if s.r.Desc {
		return s.streamRange(t, t.rows-from-n, t.rows-from)
	}
	return s.streamRange(t, from, from+n)
}

// streamRange appends rows [lo, hi) of the part, or as many as are left to
// return, in the scan's direction.
func (s *Scan) streamRange(t *slot, lo, hi int) error {
	take := int(min(int64(hi-lo), s.left))
	if s.r.Desc {
		s.picks = s.picks[:0]
		for row := hi - 1; row >= hi-take; row-- {
			s.picks = append(s.picks, uint32(row))
		}
		return s.streamRows(t, t.rows)
	}
	s.reserve(take)
	for i, v := range s.out {
		id := s.r.Columns[i]
		if arr, ok := t.columns[id]; ok {
			v.AppendArray(arr, lo, lo+take)
		} else if err := t.cur.Append(v, id, lo, lo+take); err != nil {
			return err
		}
	}
	return s.streamed(t, lo+take-1, take)
}

// dense: above one row in so many, a chunk is decoded as a whole and gathered
// from, below the rows are picked one by one.
const dense = 4

// streamRows appends the rows picked.
func (s *Scan) streamRows(t *slot, rows int) error {
	s.reserve(len(s.picks))
	for i, v := range s.out {
		id := s.r.Columns[i]
		if _, ok := t.columns[id]; ok || len(s.picks)*dense >= rows {
			arr, err := s.column(t, id)
			if err != nil {
				return err
			}
			v.AppendRows(arr, s.picks)
		} else if err := t.cur.AppendRows(v, id, s.picks); err != nil {
			return err
		}
	}
	return s.streamed(t, int(s.picks[len(s.picks)-1]), len(s.picks))
}

// streamed counts rows appended; last is the part's row that came last.
func (s *Scan) streamed(t *slot, last, n int) error {
	s.returned(n)
	if !s.r.LastKeys {
		return nil
	}
	defer func() {
		for i, c := range s.cols {
			c.Release()
			s.cols[i] = nil
		}
		s.cols = s.cols[:0]
	}()
	for _, id := range s.r.Key.IDs {
		v := s.vector(id)
		if err := t.cur.AppendRows(v, id, []uint32{uint32(last)}); err != nil {
			v.Reset()
			return err
		}
		s.cols = append(s.cols, v.NewArray())
	}
	var keys key.Keys
	if err := key.Encode(&keys, s.cols); err != nil {
		return err
	}
	s.lastKey = append(s.lastKey[:0], keys.At(0)...)
	return nil
}

func (s *Scan) returned(n int) {
	n = int(min(int64(n), s.left))
	s.rows += n
	s.left -= int64(n)
}
