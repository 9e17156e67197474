package pushdown

import (
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
)

// byteValues are the values of a string or binary column, without copies: of
// fixed width if there are no offsets.
type byteValues struct {
	data    string
	offsets []int32
	width   int
}

func bytesOf(d domain, column arrow.Array) byteValues {
	data := column.Data()
	if d.kind == fixedBinary {
		return byteValues{data: viewOf(valuesOf[byte](column, d.width)), width: d.width}
	}
	v := byteValues{}
	offsets := data.Buffers()[1].Bytes()
	v.offsets = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(offsets))), len(offsets)/4)[data.Offset() : data.Offset()+column.Len()+1]
	if buffer := data.Buffers()[2]; buffer != nil {
		v.data = viewOf(buffer.Bytes())
	}
	return v
}

// viewOf is bytes as a string of the same memory.
func viewOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (v *byteValues) at(i int) string {
	if v.offsets != nil {
		return v.data[v.offsets[i]:v.offsets[i+1]]
	}
	return v.data[i*v.width : (i+1)*v.width]
}

func (s *span) has(value string) bool {
	return value >= s.low && (!s.bounded || value < s.high)
}

func bytesKernel(d domain, s set, flip byte) kernel {
	switch {
	case len(s) == 1 && d.point(s[0]):
		equal := s[0].low
		return func(column arrow.Array, keep []byte) {
			values := bytesOf(d, column)
			for i, k := range keep {
				if k != 0 {
					keep[i] = one(values.at(i) == equal) ^ flip
				}
			}
		}
	case len(s) == 1 && s[0].bounded && prefixEnd(s[0].low).at == s[0].high:
		prefix := s[0].low
		return func(column arrow.Array, keep []byte) {
			values := bytesOf(d, column)
			for i, k := range keep {
				if k != 0 {
					keep[i] = one(strings.HasPrefix(values.at(i), prefix)) ^ flip
				}
			}
		}
	case len(s) <= fewSpans:
		return func(column arrow.Array, keep []byte) {
			values := bytesOf(d, column)
			for i, k := range keep {
				if k == 0 {
					continue
				}
				value, member := values.at(i), byte(0)
				for j := range s {
					member |= one(s[j].has(value))
				}
				keep[i] = member ^ flip
			}
		}
	case d.points(s):
		members := make(map[string]struct{}, len(s))
		for _, span := range s {
			members[span.low] = struct{}{}
		}
		return func(column arrow.Array, keep []byte) {
			values := bytesOf(d, column)
			for i, k := range keep {
				if k != 0 {
					_, member := members[values.at(i)]
					keep[i] = one(member) ^ flip
				}
			}
		}
	}
	return func(column arrow.Array, keep []byte) {
		values := bytesOf(d, column)
		for i, k := range keep {
			if k == 0 {
				continue
			}
			value := values.at(i)
			at, end := 0, len(s)
			for at < end { // the first span that begins above value
				middle := (at + end) / 2
				if s[middle].low <= value {
					at = middle + 1
				} else {
					end = middle
				}
			}
			keep[i] = one(at > 0 && s[max(at, 1)-1].has(value)) ^ flip
		}
	}
}
