package pushdown

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
)

// rowMask tests row values against a list of rows. Each column's values become
// codes, the places of the literals that they equal; the rows of the list are a
// trie over codes.
type rowMask struct {
	columns []rowColumn
	except  bool
	rows    map[uint64]uint32 // node and code to node; node 0 is the root
	listed  [][]int32         // codes of every row
	odd     [][]int32         // those with a null or a value that nothing equals
}

// Codes of values that are no literal of the list.
const (
	otherCode int32 = -1 // equals no literal; as a literal: no value equals it
	nullCode  int32 = -2
)

// rowColumn gives the codes of one column's values.
type rowColumn struct {
	slot    int
	column  *column
	numbers map[uint64]int32
	texts   map[string]int32
	zones   func() zoneSet
}

func (e *rowIn) compile(c *compiler) mask {
	m := &rowMask{except: e.except, rows: map[uint64]uint32{}, columns: make([]rowColumn, len(e.columns))}
	m.listed = make([][]int32, len(e.rows))
	for i := range e.rows {
		m.listed[i] = make([]int32, len(e.columns))
	}
	for at, column := range e.columns {
		rc := rowColumn{slot: c.slot(column), column: column, numbers: map[uint64]int32{}, texts: map[string]int32{}}
		var spans []span
		for i, row := range e.rows {
			code := nullCode
			if !column.unknown(row[at]) {
				code = otherCode
				if s := column.domain.compared(Equal, row[at]); len(s) == 1 {
					code = rc.code(s[0].low)
					spans = append(spans, s[0])
				}
			}
			m.listed[i][at] = code
		}
		rc.zones = zonesOf(column, normalise(spans))
		m.columns[at] = rc
	}
	nodes := uint32(1)
	for _, row := range m.listed {
		node, whole := uint32(0), true
		for _, code := range row {
			whole = whole && code >= 0
		}
		if !whole {
			m.odd = append(m.odd, row)
			continue
		}
		for _, code := range row {
			edge := uint64(node)<<32 | uint64(code)
			next, ok := m.rows[edge]
			if !ok {
				next = nodes
				nodes++
				m.rows[edge] = next
			}
			node = next
		}
	}
	return m
}

// code is the code of a literal, new ones counted from 0.
func (rc *rowColumn) code(order string) int32 {
	next := int32(len(rc.numbers) + len(rc.texts))
	if rc.column.domain.numeric() {
		at := rc.column.domain.numberAt(order)
		if code, ok := rc.numbers[at]; ok {
			return code
		}
		rc.numbers[at] = next
		return next
	}
	if rc.column.domain.width > 8 && !rc.column.domain.bytewise() {
		order = string(rc.column.domain.appendNative(nil, order))
	}
	if code, ok := rc.texts[order]; ok {
		return code
	}
	rc.texts[order] = next
	return next
}

// numeric is true for values of at most 64 bits other than strings.
func (d domain) numeric() bool { return !d.bytewise() && d.width <= 8 }

// numberAt is the value written in order as it comes out of numbers.
func (d domain) numberAt(order string) uint64 {
	switch d.kind {
	case boolean:
		return uint64(order[0])
	case float:
		return d.float.bitsAt(fromBigEndian(order))
	}
	return d.integerAt(fromBigEndian(order))
}

// numbers is the column's values as 64 bits, −0.0 as 0.0.
func (d domain) numbers(column arrow.Array) []uint64 {
	out := make([]uint64, column.Len())
	switch {
	case d.kind == boolean:
		values, offset := column.Data().Buffers()[1].Bytes(), column.Data().Offset()
		for i := range out {
			at := offset + i
			out[i] = uint64(values[at>>3] >> (at & 7) & 1)
		}
	case d.kind == float && d.width == 2:
		for i, v := range values[uint16](column) {
			if v != 1<<15 {
				out[i] = uint64(v)
			}
		}
	case d.kind == float && d.width == 4:
		for i, v := range values[float32](column) {
			out[i] = uint64(math.Float32bits(v + 0))
		}
	case d.kind == float:
		for i, v := range values[float64](column) {
			out[i] = math.Float64bits(v + 0)
		}
	case d.kind == unsignedInteger && d.width == 1:
		widen[uint8](out, column)
	case d.kind == unsignedInteger && d.width == 2:
		widen[uint16](out, column)
	case d.kind == unsignedInteger && d.width == 4:
		widen[uint32](out, column)
	case d.width == 1:
		widen[int8](out, column)
	case d.width == 2:
		widen[int16](out, column)
	case d.width == 4:
		widen[int32](out, column)
	default:
		widen[uint64](out, column)
	}
	return out
}

func widen[T integer](out []uint64, column arrow.Array) {
	for i, v := range values[T](column) {
		out[i] = uint64(v)
	}
}

// codes are the codes of the column's values.
func (rc *rowColumn) codes(column arrow.Array) []int32 {
	out := make([]int32, column.Len())
	if column.NullN() == column.Len() {
		for i := range out {
			out[i] = nullCode
		}
		return out
	}
	d := rc.column.domain
	if d.numeric() {
		for i, v := range d.numbers(column) {
			out[i] = otherCode
			if code, ok := rc.numbers[v]; ok {
				out[i] = code
			}
		}
	} else {
		values := byteValues{}
		if d.bytewise() {
			values = bytesOf(d, column)
		} else {
			values = byteValues{data: viewOf(valuesOf[byte](column, d.width)), width: d.width}
		}
		for i := range out {
			out[i] = otherCode
			if code, ok := rc.texts[values.at(i)]; ok {
				out[i] = code
			}
		}
	}
	if valid, offset, some := validity(column); some {
		for i := range out {
			if at := offset + i; valid[at>>3]>>(at&7)&1 == 0 {
				out[i] = nullCode
			}
		}
	}
	return out
}

func (m *rowMask) apply(columns []arrow.Array, keep []byte) {
	codes := make([][]int32, len(m.columns))
	for i := range m.columns {
		codes[i] = m.columns[i].codes(columns[m.columns[i].slot])
	}
	row := make([]int32, len(codes))
	for i, k := range keep {
		if k == 0 {
			continue
		}
		nulls := false
		for c := range codes {
			row[c] = codes[c][i]
			nulls = nulls || row[c] == nullCode
		}
		if !m.except {
			keep[i] = one(!nulls && m.has(row))
			continue
		}
		// NOT IN is TRUE only where no row of the list may be equal.
		equal := !nulls && m.has(row) || maybeAny(m.odd, row)
		if nulls && !equal {
			equal = maybeAny(m.listed, row)
		}
		keep[i] = one(!equal)
	}
}

// has reports whether a row without nulls equals one of the list.
func (m *rowMask) has(row []int32) bool {
	node := uint32(0)
	for _, code := range row {
		if code < 0 {
			return false
		}
		next, ok := m.rows[uint64(node)<<32|uint64(code)]
		if !ok {
			return false
		}
		node = next
	}
	return true
}

// maybeAny reports whether the row's equality with one of the list is not FALSE.
func maybeAny(list [][]int32, row []int32) bool {
	for _, listed := range list {
		maybe := true
		for i, code := range listed {
			if code != row[i] && code != nullCode && row[i] != nullCode || code == otherCode && row[i] != nullCode {
				maybe = false
				break
			}
		}
		if maybe {
			return true
		}
	}
	return false
}

func (m *rowMask) prune(zone zones) bool {
	if m.except {
		return false
	}
	for _, rc := range m.columns {
		z, ok := zone(rc.column.id)
		if !ok {
			continue
		}
		if allNull(z) {
			return true
		}
		if spans := rc.zones(); spans != nil && z.Max != nil && !spans.meets(z.Min, z.Max) {
			return true
		}
	}
	return false
}

func (m *rowMask) cost() int { return 20 * len(m.columns) }
