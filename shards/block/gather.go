package block

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// AppendArray appends rows [lo, hi) of an array of the vector's type.
func (v *Vector) AppendArray(arr arrow.Array, lo, hi int) {
	v.check(arr)
	if lo < 0 || hi < lo || hi > arr.Len() {
		panic(fmt.Sprintf("BUG: rows [%d, %d) of an array of %d", lo, hi, arr.Len()))
	}
	s := sourceOf(v.kind, arr.Data(), 0)
	v.appendSource(&s, lo, hi)
}

// AppendRows appends rows of an array of the vector's type, in that order.
func (v *Vector) AppendRows(arr arrow.Array, rows []uint32) {
	v.check(arr)
	s := sourceOf(v.kind, arr.Data(), 0)
	v.pick(&s, rows)
}

// AppendRefs appends rows of several arrays of the vector's type, in that
// order.
func (v *Vector) AppendRefs(srcs []arrow.Array, refs []Ref) {
	if len(refs) == 0 {
		return
	}
	if len(srcs) == 1 {
		rows := grown(&v.scratchpad().codes, len(refs))
		for i, ref := range refs {
			rows[i] = ref.Row
		}
		v.AppendRows(srcs[0], rows)
		return
	}
	pad := v.scratchpad()
	if len(pad.sources) < len(srcs) {
		pad.sources = make([]source, len(srcs))
	}
	sources := pad.sources[:len(srcs)]
	pad.touched = pad.touched[:0]
	for _, ref := range refs { // only the arrays that are named: there may be thousands
		if s := &sources[ref.Batch]; !s.live {
			v.check(srcs[ref.Batch])
			*s = sourceOf(v.kind, srcs[ref.Batch].Data(), 0)
			pad.touched = append(pad.touched, ref.Batch)
		}
	}
	v.pickRefs(sources, refs)
	for _, i := range pad.touched {
		sources[i] = source{}
	}
}

func (v *Vector) check(arr arrow.Array) {
	if arr.DataType().ID() != v.dt.ID() {
		panic(fmt.Sprintf("BUG: %s appended to a vector of %s", arr.DataType(), v.dt))
	}
}

// appendSource appends rows [lo, hi) of a source.
func (v *Vector) appendSource(s *source, lo, hi int) {
	n := hi - lo
	if n == 0 {
		return
	}
	v.appendValidBits(s.valid, s.off+lo, n)
	switch v.shape {
	case shapeNull:
		v.nulls += n
	case shapeBool:
		v.extendBits(n)
		copyBits(v.values.Bytes(), v.rows, s.values, s.off+lo, n)
	case shapeFixed:
		copy(v.extend(&v.values, n*v.width), s.values[(s.off+lo)*v.width:(s.off+hi)*v.width])
	case shapeText:
		first, last := v.appendOffs(s, lo, n)
		copy(v.extendText(last-first, 0), s.values[first:last])
	case shapeList:
		first, last := v.appendOffs(s, lo, n)
		v.kids[0].appendSource(&s.kids[0], first, last)
	case shapeFixedList:
		v.kids[0].appendSource(&s.kids[0], (s.off+lo)*v.size, (s.off+hi)*v.size)
	case shapeStruct:
		for i, kid := range v.kids {
			kid.appendSource(&s.kids[i], lo, hi)
		}
	}
	v.rows += n
}

// appendOffs appends the offsets of n rows and returns where in the source
// their bytes or child rows lie.
func (v *Vector) appendOffs(s *source, lo, n int) (first, last int) {
	from := s.offs[s.off+lo : s.off+lo+n+1]
	offs := v.extendOffs(n)
	if int64(offs[0])+int64(from[n])-int64(from[0]) > math.MaxInt32 {
		panic("BUG: more than 2 GiB of text or list elements in one vector")
	}
	delta := offs[0] - from[0]
	to := offs[1 : n+1]
	for i, off := range from[1:] {
		to[i] = off + delta
	}
	return int(from[0]), int(from[n])
}

// extendBits makes room for n more bits of values.
func (v *Vector) extendBits(n int) {
	v.extend(&v.values, bitmapBytes(v.rows+n)-bitmapBytes(v.rows))
}

// pick appends rows of one source.
func (v *Vector) pick(s *source, rows []uint32) {
	n := len(rows)
	if n == 0 {
		return
	}
	switch v.shape {
	case shapeList, shapeFixedList:
		for i := 0; i < n; { // in pieces of neighbouring rows
			end := neighbours(rows, i)
			v.appendSource(s, int(rows[i]), int(rows[end-1])+1)
			i = end
		}
		return
	}
	v.pickValid(s, rows)
	switch v.shape {
	case shapeNull:
		v.nulls += n
	case shapeBool:
		v.extendBits(n)
		pickBits(v.values.Bytes(), v.rows, s.values, s.off, rows)
	case shapeFixed:
		pickFixed(v.extend(&v.values, n*v.width), s.values[s.off*v.width:], v.width, rows)
	case shapeText:
		v.pickText(s, rows)
	case shapeStruct:
		for i, kid := range v.kids {
			kid.pick(&s.kids[i], rows)
		}
	}
	v.rows += n
}

// neighbours is the end of the longest piece rows[i:end] that counts up by 1.
func neighbours(rows []uint32, i int) int {
	end := i + 1
	for end < len(rows) && rows[end] == rows[end-1]+1 {
		end++
	}
	return end
}

func (v *Vector) pickValid(s *source, rows []uint32) {
	n := len(rows)
	nulls := 0
	if s.valid != nil {
		for _, row := range rows {
			if !bit(s.valid, s.off+int(row)) {
				nulls++
			}
		}
	}
	if nulls == 0 {
		v.appendValid(n, true)
		return
	}
	v.extendValid(n)
	pickBits(v.valid.Bytes(), v.rows, s.valid, s.off, rows)
	v.nulls += nulls
}

// pickFixed copies values of width bytes; src holds row 0 first.
func pickFixed(dst, src []byte, width int, rows []uint32) {
	switch width {
	case 1:
		pickWords(dst, src, rows)
	case 2:
		pickWords(words[uint16](dst), words[uint16](src), rows)
	case 4:
		pickWords(words[uint32](dst), words[uint32](src), rows)
	case 8:
		pickWords(words[uint64](dst), words[uint64](src), rows)
	case 16:
		pickWords(words128(dst), words128(src), rows)
	default:
		for i, row := range rows {
			copy(dst[i*width:(i+1)*width], src[int(row)*width:])
		}
	}
}

func pickWords[T any](dst, src []T, rows []uint32) {
	dst = dst[:len(rows)]
	for i, row := range rows {
		dst[i] = src[row]
	}
}

func (v *Vector) pickText(s *source, rows []uint32) {
	n := len(rows)
	from := s.offs[s.off:]
	offs := v.extendOffs(n)[:n+1]
	start := int64(offs[0])
	end := start
	for i, row := range rows {
		end += int64(from[row+1] - from[row])
		offs[i+1] = int32(end)
	}
	if end > math.MaxInt32 {
		panic("BUG: more than 2 GiB of text in one vector")
	}
	dst := v.extendText(int(end-start), textSpare)
	src := s.values
	at := 0
	for _, row := range rows {
		lo, hi := int(from[row]), int(from[row+1])
		size := hi - lo
		if size > textSpare || lo+textSpare > len(src) {
			copy(dst[at:], src[lo:hi])
		} else { // in two steps of fixed size, which cost less than a call
			to, text := dst[at:at+textSpare], src[lo:lo+textSpare]
			*(*[textSpare / 2]byte)(to) = [textSpare / 2]byte(text)
			if size > textSpare/2 {
				*(*[textSpare / 2]byte)(to[textSpare/2:]) = [textSpare / 2]byte(text[textSpare/2:])
			}
		}
		at += size
	}
}

// textSpare is how far the copy of a text that is not longer may reach.
const textSpare = 32

// pickRefs appends rows of several sources.
func (v *Vector) pickRefs(sources []source, refs []Ref) {
	n := len(refs)
	switch v.shape {
	case shapeList, shapeFixedList, shapeStruct, shapeNull:
		for i := 0; i < n; {
			end := i + 1
			for end < n && refs[end].Batch == refs[i].Batch && refs[end].Row == refs[end-1].Row+1 {
				end++
			}
			v.appendSource(&sources[refs[i].Batch], int(refs[i].Row), int(refs[end-1].Row)+1)
			i = end
		}
		return
	}
	v.pickRefsValid(sources, refs)
	switch v.shape {
	case shapeBool:
		v.extendBits(n)
		bits := v.values.Bytes()
		for i, ref := range refs {
			s := &sources[ref.Batch]
			putBit(bits, v.rows+i, bit(s.values, s.off+int(ref.Row)))
		}
	case shapeFixed:
		v.pickRefsFixed(sources, refs)
	case shapeText:
		v.pickRefsText(sources, refs)
	}
	v.rows += n
}

func (v *Vector) pickRefsValid(sources []source, refs []Ref) {
	nulls := 0
	for _, i := range v.scratch.touched {
		if sources[i].valid != nil {
			nulls = -1
		}
	}
	if nulls == 0 {
		v.appendValid(len(refs), true)
		return
	}
	nulls = 0
	for _, ref := range refs {
		if sources[ref.Batch].null(int(ref.Row)) {
			nulls++
		}
	}
	if nulls == 0 {
		v.appendValid(len(refs), true)
		return
	}
	v.extendValid(len(refs))
	bits := v.valid.Bytes()
	for i, ref := range refs {
		putBit(bits, v.rows+i, !sources[ref.Batch].null(int(ref.Row)))
	}
	v.nulls += nulls
}

func (v *Vector) pickRefsFixed(sources []source, refs []Ref) {
	dst := v.extend(&v.values, len(refs)*v.width)
	switch v.width {
	case 1:
		refWords(dst, sources, refs)
	case 2:
		refWords(words[uint16](dst), sources, refs)
	case 4:
		refWords(words[uint32](dst), sources, refs)
	case 8:
		refWords(words[uint64](dst), sources, refs)
	case 16:
		for i, ref := range refs {
			s := &sources[ref.Batch]
			at := (s.off + int(ref.Row)) * 16
			*(*[16]byte)(dst[i*16:]) = [16]byte(s.values[at:])
		}
	default:
		w := v.width
		for i, ref := range refs {
			s := &sources[ref.Batch]
			copy(dst[i*w:(i+1)*w], s.values[(s.off+int(ref.Row))*w:])
		}
	}
}

func refWords[T word](dst []T, sources []source, refs []Ref) {
	dst = dst[:len(refs)]
	for i, ref := range refs {
		s := &sources[ref.Batch]
		dst[i] = words[T](s.values)[s.off+int(ref.Row)]
	}
}

func (v *Vector) pickRefsText(sources []source, refs []Ref) {
	offs := v.extendOffs(len(refs))
	start := int64(offs[0])
	end := start
	for i, ref := range refs {
		s := &sources[ref.Batch]
		at := s.off + int(ref.Row)
		end += int64(s.offs[at+1] - s.offs[at])
		offs[i+1] = int32(end)
	}
	if end > math.MaxInt32 {
		panic("BUG: more than 2 GiB of text in one vector")
	}
	dst := v.extendText(int(end-start), 0)
	for _, ref := range refs {
		dst = dst[copy(dst, sources[ref.Batch].text(int(ref.Row))):]
	}
}
