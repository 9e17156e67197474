package pushdown

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
)

// wide is a decimal's integer with the sign bit flipped, highest word first:
// it compares as its words do, unsigned.
type wide [4]uint64

// wideAt is the value written in order, of 16 or 32 bytes, in the last words.
func wideAt(order string) wide {
	var w wide
	for i := range len(order) / 8 {
		w[4-len(order)/8+i] = binary.BigEndian.Uint64([]byte(order[8*i : 8*i+8]))
	}
	return w
}

// less is 1 if w < v.
func (w *wide) less(v *wide) byte {
	_, borrow := bits.Sub64(w[3], v[3], 0)
	_, borrow = bits.Sub64(w[2], v[2], borrow)
	_, borrow = bits.Sub64(w[1], v[1], borrow)
	_, borrow = bits.Sub64(w[0], v[0], borrow)
	return byte(borrow)
}

// decimalKernel is for one span of decimals of 128 bits.
func decimalKernel(s span, flip byte) kernel {
	low, high, unbounded := wideAt(s.low), wide{}, byte(1)
	if s.bounded {
		high, unbounded = wideAt(s.high), 0
	}
	return func(column arrow.Array, keep []byte) {
		raw := valuesOf[[2]uint64](column, 16)
		for i := range keep {
			v := &raw[i]
			_, below := bits.Sub64(v[0], low[3], 0)
			_, below = bits.Sub64(v[1]^signBit, low[2], below)
			_, within := bits.Sub64(v[0], high[3], 0)
			_, within = bits.Sub64(v[1]^signBit, high[2], within)
			keep[i] &= (byte(within)|unbounded)&byte(1-below) ^ flip
		}
	}
}

const signBit = 1 << 63

// wideKernel is for decimals of 128 and 256 bits.
func wideKernel(d domain, s set, flip byte) kernel {
	words := d.width / 8
	lows, highs := make([]wide, len(s)), make([]wide, len(s))
	for i, span := range s {
		lows[i] = wideAt(span.low)
		if span.bounded {
			highs[i] = wideAt(span.high)
		}
	}
	return func(column arrow.Array, keep []byte) {
		raw := valuesOf[uint64](column, d.width)
		for i := range keep {
			var v wide
			if words == 2 {
				v = wide{2: raw[2*i+1] ^ signBit, 3: raw[2*i]}
			} else {
				v = wide{raw[4*i+3] ^ signBit, raw[4*i+2], raw[4*i+1], raw[4*i]}
			}
			at, end := 0, len(lows)
			for at < end { // the first span that begins above v
				middle := (at + end) / 2
				if v.less(&lows[middle]) == 0 {
					at = middle + 1
				} else {
					end = middle
				}
			}
			member := byte(0)
			if at > 0 {
				member = v.less(&highs[at-1])
				if !s[at-1].bounded {
					member = 1
				}
			}
			keep[i] &= member ^ flip
		}
	}
}
