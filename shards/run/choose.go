package run

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/sheaf-db/sheaf/shards/block"
)

// filterPart is a filter, or one of those of which all must be true.
type filterPart struct {
	Filter
	columns []uint32
}

func partsOf(f Filter) []filterPart {
	list := []Filter{f}
	if c, ok := f.(conjunction); ok {
		list = c.Parts()
	}
	parts := make([]filterPart, len(list))
	for i, part := range list {
		parts[i] = filterPart{part, part.Columns()}
	}
	return parts
}

// choose makes s.picks the rows of a part that are wanted: neither deleted nor
// refused by the filter. A part of the filter is asked
//
//   - for the values of its column instead of the rows, where these are codes,
//   - for the rows that are left alone, once these are few,
//   - else for all rows, whose columns stay decoded with the slot.
func (s *Scan) choose(t *slot, rows int) error {
	s.keep = slices.Grow(s.keep[:0], rows)[:rows]
	fill(s.keep)
	left := rows
	if t.part.Tombstones > 0 && !s.r.Tombstones {
		arr, err := s.column(t, block.ColumnTombstone)
		if err != nil {
			return err
		}
		for i := range s.keep {
			s.keep[i] = !arr.(*array.Boolean).Value(i)
		}
		left = count(s.keep)
	}
	picked := false
	for i := range s.parts {
		part := &s.parts[i]
		if left == 0 {
			break
		}
		if !picked {
			decided, err := s.maskByCodes(t, part)
			if err != nil {
				return err
			}
			if decided {
				left = count(s.keep)
				continue
			}
		}
		if !picked && left*dense < rows {
			s.picks = pick(s.picks, s.keep)
			picked = true
		}
		var err error
		if picked {
			err = s.maskPicks(t, part)
			left = len(s.picks)
		} else {
			err = s.maskRows(t, part)
			left = count(s.keep)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case left == 0:
		s.picks = s.picks[:0]
	case !picked:
		s.picks = pick(s.picks, s.keep)
	}
	return nil
}

// maskByCodes asks a part of one column about the values of the column's list.
func (s *Scan) maskByCodes(t *slot, part *filterPart) (decided bool, err error) {
	c, ok := t.cur.(coder)
	if !ok || len(part.columns) != 1 {
		return false, nil
	}
	id := part.columns[0]
	if _, decoded := t.columns[id]; decoded {
		return false, nil
	}
	v := s.vector(id)
	if s.codes, ok, err = c.Codes(v, s.codes, id); err != nil || !ok {
		v.Reset()
		return false, err
	}
	list := v.NewArray()
	defer list.Release()
	s.cols = append(s.cols[:0], list)
	s.ask(part, list.Len())
	s.cols = s.cols[:0]
	switch count(s.some) {
	case 0:
		clear(s.keep)
	case len(s.some):
	default:
		narrow(s.keep, s.some, s.codes)
	}
	return true, nil
}

// ask makes s.some say for which rows of s.cols a part is true.
func (s *Scan) ask(part *filterPart, rows int) {
	s.some = slices.Grow(s.some[:0], rows)[:rows]
	fill(s.some)
	part.Mask(s.cols, rows, s.some)
}

// maskRows asks about all rows.
func (s *Scan) maskRows(t *slot, part *filterPart) error {
	defer func() { s.cols = s.cols[:0] }()
	for _, id := range part.columns {
		arr, err := s.column(t, id)
		if err != nil {
			return err
		}
		s.cols = append(s.cols, arr)
	}
	part.Mask(s.cols, len(s.keep), s.keep)
	return nil
}

// maskPicks asks about the rows picked.
func (s *Scan) maskPicks(t *slot, part *filterPart) error {
	defer func() {
		for _, c := range s.cols {
			c.Release()
		}
		s.cols = s.cols[:0]
	}()
	for _, id := range part.columns {
		v := s.vector(id)
		if arr, ok := t.columns[id]; ok {
			v.AppendRows(arr, s.picks)
		} else if err := t.cur.AppendRows(v, id, s.picks); err != nil {
			v.Reset()
			return err
		}
		s.cols = append(s.cols, v.NewArray())
	}
	s.ask(part, len(s.picks))
	n := 0
	for i, row := range s.picks {
		s.picks[n] = row
		if s.some[i] {
			n++
		}
	}
	s.picks = s.picks[:n]
	return nil
}

// Masks are bools, whose bytes are 0 and 1: they are counted and read eight at
// a time.

func maskBytes(mask []bool) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(mask))), len(mask))
}

func fill(mask []bool) {
	for i := range mask {
		mask[i] = true
	}
}

// count is how many are true.
func count(mask []bool) int {
	b := maskBytes(mask)
	n := 0
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, one := range b {
		n += int(one)
	}
	return n
}

// pick is the places of those that are true.
func pick(dst []uint32, mask []bool) []uint32 {
	dst = dst[:0]
	b := maskBytes(mask)
	row := uint32(0)
	for ; len(b) >= 8; b = b[8:] {
		for word := binary.LittleEndian.Uint64(b); word != 0; word &= word - 1 {
			dst = append(dst, row+uint32(bits.TrailingZeros64(word)>>3))
		}
		row += 8
	}
	for i, one := range b {
		if one != 0 {
			dst = append(dst, row+uint32(i))
		}
	}
	return dst
}

// narrow leaves those true whose code's value is.
func narrow(mask, values []bool, codes []uint32) {
	b, of := maskBytes(mask), maskBytes(values)
	codes = codes[:len(b)]
	for i, code := range codes {
		b[i] &= of[code]
	}
}
