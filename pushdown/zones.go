package pushdown

import (
	"bytes"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
)

// zoneSpan is a span as zones compare values: [low, high), high nil if there is
// no end.
type zoneSpan struct{ low, high []byte }

// zoneSet is a set as zones compare values, in order.
type zoneSet []zoneSpan

// zonesOf turns a set into a zoneSet when it is first asked for. It is nil, and
// nothing is pruned, for a type whose zones have no order.
func zonesOf(c *column, s set) func() zoneSet {
	return sync.OnceValue(func() zoneSet {
		if len(s) == 0 {
			return nil
		}
		cuts := make([]string, 0, 2*len(s))
		for _, span := range s {
			high := span.high
			if !span.bounded {
				high = span.low
			}
			cuts = append(cuts, span.low, high)
		}
		values := c.domain.newArray(c.canonical, cuts)
		defer values.Release()
		out := make(zoneSet, len(s))
		for i, span := range s {
			low, ok := block.ZoneValue(values, 2*i)
			if !ok {
				return nil
			}
			out[i].low = bytes.Clone(low)
			if span.bounded {
				high, ok := block.ZoneValue(values, 2*i+1)
				if !ok {
					return nil
				}
				out[i].high = bytes.Clone(high)
			}
		}
		return out
	})
}

// meets reports whether some value from least to most may be in the set. The
// ends may be wider than the values they stand for.
func (z zoneSet) meets(least, most []byte) bool {
	// The first span that does not end at or below least.
	at, _ := slices.BinarySearchFunc(z, least, func(s zoneSpan, least []byte) int {
		if s.high != nil && bytes.Compare(s.high, least) <= 0 {
			return -1
		}
		return 1
	})
	return at < len(z) && bytes.Compare(z[at].low, most) <= 0
}

// covers reports whether every value from least to most is in the set.
func (z zoneSet) covers(least, most []byte) bool {
	return slices.ContainsFunc(z, func(s zoneSpan) bool {
		return bytes.Compare(s.low, least) <= 0 && (s.high == nil || bytes.Compare(most, s.high) < 0)
	})
}

// prune uses the zone's ends as bounds only: they may be rounded outwards, and
// no end at all says nothing.
func (m *setMask) prune(zone zones) bool {
	z, ok := zone(m.column.id)
	if !ok {
		return false
	}
	if allNull(z) {
		return true
	}
	spans := m.zones()
	if spans == nil || z.Max == nil {
		return false
	}
	if m.except {
		return !z.NaN && z.Min != nil && spans.covers(z.Min, z.Max)
	}
	return !spans.meets(z.Min, z.Max)
}

// allNull reports whether a block has no value of the column. A zone without
// rows says nothing.
func allNull(z block.Zone) bool { return z.Rows > 0 && z.Nulls >= z.Rows }

// newArray is an array of the canonical type with the values written in order.
func (d domain) newArray(dt arrow.DataType, values []string) arrow.Array {
	buffers := []*memory.Buffer{nil}
	switch {
	case d.kind == boolean:
		bitmap := make([]byte, len(values)/8+1)
		for i, value := range values {
			bitmap[i/8] |= value[0] << (i % 8)
		}
		buffers = append(buffers, memory.NewBufferBytes(bitmap))
	case d.kind == fixedBinary:
		var joined []byte
		for _, value := range values {
			joined = append(joined, value...)
		}
		buffers = append(buffers, memory.NewBufferBytes(joined))
	case d.bytewise():
		offsets, joined := make([]int32, 1, len(values)+1), []byte(nil)
		for _, value := range values {
			joined = append(joined, value...)
			offsets = append(offsets, int32(len(joined)))
		}
		buffers = append(buffers, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(joined))
	default:
		joined := make([]byte, 0, len(values)*d.width)
		for _, value := range values {
			joined = d.appendNative(joined, value)
		}
		buffers = append(buffers, memory.NewBufferBytes(joined))
	}
	data := array.NewData(dt, len(values), buffers, nil, 0, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// appendNative appends a number as Arrow stores it: little-endian.
func (d domain) appendNative(dst []byte, order string) []byte {
	if d.kind == float {
		bits := d.float.bitsAt(fromBigEndian(order))
		for i := range d.width {
			dst = append(dst, byte(bits>>(8*i)))
		}
		return dst
	}
	start := len(dst)
	for i := range len(order) {
		dst = append(dst, order[len(order)-1-i])
	}
	if d.kind != unsignedInteger {
		dst[start+d.width-1] ^= 0x80
	}
	return dst
}
