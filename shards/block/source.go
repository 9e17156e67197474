package block

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// source is a canonical array taken apart: row i is bit off+i of valid, value
// off+i of values, offsets off+i and off+i+1 of offs. Arrays cut from larger
// ones are welcome.
type source struct {
	live   bool
	off    int
	valid  []byte // nil: no nulls
	values []byte
	offs   []int32
	kids   []source
}

// sourceOf takes array data of kind k apart. shift moves row 0: the rows of a
// struct's children lie at the struct's own offset in theirs.
func sourceOf(k kind, data arrow.ArrayData, shift int) source {
	s := source{live: true, off: data.Offset() + shift}
	buffers := data.Buffers()
	at := func(i int) []byte {
		if i < len(buffers) && buffers[i] != nil {
			return buffers[i].Bytes()
		}
		return nil
	}
	if k.shape != shapeNull && data.NullN() != 0 {
		s.valid = at(0)
	}
	switch k.shape {
	case shapeBool, shapeFixed:
		s.values = at(1)
	case shapeText:
		s.offs, s.values = int32s(at(1)), at(2)
	case shapeList:
		s.offs = int32s(at(1))
	}
	kidShift := 0
	if k.shape == shapeStruct {
		kidShift = s.off
	}
	if kids := data.Children(); len(kids) > 0 {
		s.kids = make([]source, len(kids))
		for i, kid := range kids {
			kk, _ := kindOf(kid.DataType())
			s.kids[i] = sourceOf(kk, kid, kidShift)
		}
	}
	return s
}

// null reports whether row i is null.
func (s *source) null(i int) bool { return s.valid != nil && !bit(s.valid, s.off+i) }

// nulls counts the nulls of rows [lo, hi).
func (s *source) nulls(lo, hi int) int {
	if s.valid == nil {
		return 0
	}
	return countZeros(s.valid, s.off+lo, hi-lo)
}

// text is the value of row i of a text column.
func (s *source) text(i int) []byte { return s.values[s.offs[s.off+i]:s.offs[s.off+i+1]] }

// span is where the text or the child rows of rows [lo, hi) begin and end. An
// array without rows may have no offsets.
func (s *source) span(lo, hi int) (int, int) {
	if lo == hi {
		return 0, 0
	}
	return int(s.offs[s.off+lo]), int(s.offs[s.off+hi])
}
