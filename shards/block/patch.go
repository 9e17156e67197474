package block

import "github.com/apache/arrow-go/v18/arrow"

// Patch names rows [Lo, Hi) of one of several arrays, and the row of a vector
// that the first of them replaces.
type Patch struct{ Batch, Lo, Hi, At uint32 }

// Patches reports whether rows of the vector can be replaced: if its values have
// a fixed width.
func (v *Vector) Patches() bool { return v.shape == shapeFixed && v.width > 0 }

// Patch replaces rows of a vector for which Patches is true, counted from row
// first on, by those of arrays of its type. Arrays that no patch names may be nil.
func (v *Vector) Patch(first int, srcs []arrow.Array, list []Patch) {
	sources := v.openSources(srcs)
	for _, p := range list {
		v.touch(sources, srcs, p.Batch)
	}
	if len(list) > 0 {
		dst := v.values.Bytes()[first*v.width:]
		switch v.width {
		case 1:
			patchWords(dst, sources, list, words[uint8])
		case 2:
			patchWords(words[uint16](dst), sources, list, words[uint16])
		case 4:
			patchWords(words[uint32](dst), sources, list, words[uint32])
		case 8:
			patchWords(words[uint64](dst), sources, list, words[uint64])
		case 16:
			patchWords(words128(dst), sources, list, words128)
		default:
			for _, p := range list {
				s := &sources[p.Batch]
				copy(dst[int(p.At)*v.width:], s.values[(s.off+int(p.Lo))*v.width:(s.off+int(p.Hi))*v.width])
			}
		}
		if v.nulls > 0 || v.anyNull(sources) {
			v.patchValid(first, sources, list)
		}
	}
	v.closeSources(sources)
}

func patchWords[T any](dst []T, sources []source, list []Patch, see func([]byte) []T) {
	for _, p := range list {
		s := &sources[p.Batch]
		src := see(s.values)[s.off+int(p.Lo) : s.off+int(p.Hi)]
		to := dst[p.At:][:len(src)]
		//lint:ignore S1001 a call of memmove costs more than these few words
		for i, value := range src {
			to[i] = value
		}
	}
}

func (v *Vector) patchValid(first int, sources []source, list []Patch) {
	if v.nulls == 0 {
		if v.valid != nil {
			v.valid.ResizeNoShrink(0)
		}
		v.extend(&v.valid, bitmapBytes(v.rows))
		fillBits(v.valid.Bytes(), 0, v.rows, true)
	}
	bitmap := v.valid.Bytes()
	for _, p := range list {
		s := &sources[p.Batch]
		for i := range int(p.Hi - p.Lo) {
			at := first + int(p.At) + i
			mask := byte(1) << (at & 7)
			if s.null(int(p.Lo) + i) {
				bitmap[at>>3] &^= mask
			} else {
				bitmap[at>>3] |= mask
			}
		}
	}
	v.nulls = countZeros(bitmap, 0, v.rows)
}
