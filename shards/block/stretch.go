package block

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// Stretch names rows [Lo, Hi) of one of several arrays.
type Stretch struct{ Batch, Lo, Hi uint32 }

// AppendStretches appends stretches of several arrays of the vector's type, in
// that order: what a merge takes, in pieces of any length. Arrays that no
// stretch names may be nil.
func (v *Vector) AppendStretches(srcs []arrow.Array, list []Stretch) {
	sources := v.openSources(srcs)
	rows := 0
	for _, st := range list {
		v.touch(sources, srcs, st.Batch)
		rows += int(st.Hi - st.Lo)
	}
	switch {
	case rows == 0:
	case v.shape == shapeFixed && v.width > 0:
		v.stretchValid(sources, list, rows)
		v.stretchFixed(sources, list, rows)
		v.rows += rows
	case v.shape == shapeText:
		v.stretchValid(sources, list, rows)
		v.stretchText(sources, list, rows)
		v.rows += rows
	default:
		for _, st := range list {
			v.appendSource(&sources[st.Batch], int(st.Lo), int(st.Hi))
		}
	}
	v.closeSources(sources)
}

// openSources is room for as many sources as there are arrays, none of them
// taken apart yet: there may be thousands, of which few are named.
func (v *Vector) openSources(srcs []arrow.Array) []source {
	pad := v.scratchpad()
	if len(pad.sources) < len(srcs) {
		pad.sources = make([]source, len(srcs))
	}
	pad.touched = pad.touched[:0]
	return pad.sources[:len(srcs)]
}

func (v *Vector) touch(sources []source, srcs []arrow.Array, i uint32) {
	if s := &sources[i]; !s.live {
		v.check(srcs[i])
		*s = sourceOf(v.kind, srcs[i].Data(), 0)
		v.scratch.touched = append(v.scratch.touched, i)
	}
}

func (v *Vector) closeSources(sources []source) {
	for _, i := range v.scratch.touched {
		sources[i] = source{}
	}
}

// anyNull reports whether a source that was touched has nulls.
func (v *Vector) anyNull(sources []source) bool {
	for _, i := range v.scratch.touched {
		if sources[i].valid != nil {
			return true
		}
	}
	return false
}

// stretchValid appends the validity of the rows, which the caller counts.
func (v *Vector) stretchValid(sources []source, list []Stretch, rows int) {
	if !v.anyNull(sources) {
		v.appendValid(rows, true)
		return
	}
	before := v.rows
	for _, st := range list {
		s := &sources[st.Batch]
		n := int(st.Hi - st.Lo)
		v.appendValidBits(s.valid, s.off+int(st.Lo), n)
		v.rows += n
	}
	v.rows = before
}

func (v *Vector) stretchFixed(sources []source, list []Stretch, rows int) {
	dst := v.extend(&v.values, rows*v.width)
	switch v.width {
	case 1:
		stretchWords(dst, sources, list, words[uint8])
	case 2:
		stretchWords(words[uint16](dst), sources, list, words[uint16])
	case 4:
		stretchWords(words[uint32](dst), sources, list, words[uint32])
	case 8:
		stretchWords(words[uint64](dst), sources, list, words[uint64])
	case 16:
		stretchWords(words128(dst), sources, list, words128)
	default:
		for _, st := range list {
			s := &sources[st.Batch]
			dst = dst[copy(dst, s.values[(s.off+int(st.Lo))*v.width:(s.off+int(st.Hi))*v.width]):]
		}
	}
}

// fewWords is up to how many words a loop copies faster than a call of memmove.
const fewWords = 8

func stretchWords[T any](dst []T, sources []source, list []Stretch, see func([]byte) []T) {
	for _, st := range list {
		s := &sources[st.Batch]
		src := see(s.values)[s.off+int(st.Lo) : s.off+int(st.Hi)]
		if len(src) > fewWords {
			dst = dst[copy(dst, src):]
			continue
		}
		to := dst[:len(src)]
		//lint:ignore S1001 a call of memmove costs more than these few words
		for i, value := range src {
			to[i] = value
		}
		dst = dst[len(src):]
	}
}

func (v *Vector) stretchText(sources []source, list []Stretch, rows int) {
	size := int64(0)
	for _, st := range list {
		s := &sources[st.Batch]
		size += int64(s.offs[s.off+int(st.Hi)]) - int64(s.offs[s.off+int(st.Lo)])
	}
	offs := v.extendOffs(rows)
	end := offs[0]
	if int64(end)+size > math.MaxInt32 {
		panic("BUG: more than 2 GiB of text in one vector")
	}
	dst := v.extendText(int(size), 0)
	offs = offs[1:]
	for _, st := range list {
		s := &sources[st.Batch]
		from := s.offs[s.off+int(st.Lo) : s.off+int(st.Hi)+1]
		first, last := from[0], from[len(from)-1]
		delta := end - first
		from = from[1:]
		to := offs[:len(from)]
		for i, off := range from {
			to[i] = off + delta
		}
		offs = offs[len(from):]
		end += last - first
		dst = dst[copy(dst, s.values[first:last]):]
	}
}
