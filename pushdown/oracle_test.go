package pushdown

import (
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The oracle evaluates conditions row by row as SQL defines them: on exact
// rationals, strings and three truth values, without any of the package's
// sets, kernels or orders.

// truth is one of SQL's three truth values.
type truth int8

const (
	isFalse truth = iota
	isUnknown
	isTrue
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

func (t truth) not() truth { return isTrue - t }

// value is a value of a row or of a literal: null, NaN, an infinity, a rational
// (times in seconds, booleans 0 and 1), or bytes.
type value struct {
	null, nan bool
	inf       int
	rat       *big.Rat
	bytes     *string
}

func rat(r *big.Rat) value   { return value{rat: r} }
func str(s string) value     { return value{bytes: &s} }
func whole(i *big.Int) value { return value{rat: new(big.Rat).SetInt(i)} }
func floating(f float64) value {
	switch {
	case math.IsNaN(f):
		return value{nan: true}
	case math.IsInf(f, 0):
		return value{inf: int(math.Copysign(1, f))}
	}
	return value{rat: new(big.Rat).SetFloat64(f)}
}

// cmp compares two values that are neither null nor NaN.
func (v value) cmp(o value) int {
	if v.bytes != nil {
		return strings.Compare(*v.bytes, *o.bytes)
	}
	if v.inf != 0 || o.inf != 0 {
		return v.inf - o.inf
	}
	return v.rat.Cmp(o.rat)
}

func compare(op string, v, l value) truth {
	switch {
	case v.null || l.null:
		return isUnknown
	case v.nan || l.nan:
		return truthOf(op == "!=")
	}
	c := v.cmp(l)
	switch op {
	case "=", "==":
		return truthOf(c == 0)
	case "!=":
		return truthOf(c != 0)
	case "<":
		return truthOf(c < 0)
	case "<=":
		return truthOf(c <= 0)
	case ">":
		return truthOf(c > 0)
	case ">=":
		return truthOf(c >= 0)
	case "starts_with":
		return truthOf(strings.HasPrefix(*v.bytes, *l.bytes))
	}
	panic(op)
}

// condition is one condition: on one column or, as row values, several. rows
// holds the literals: one row for comparisons, two for between, any number for
// in.
type condition struct {
	columns []int
	op      string
	rows    [][]value
}

func (c *condition) eval(row []value) truth {
	values := make([]value, len(c.columns))
	for i, at := range c.columns {
		values[i] = row[at]
	}
	switch c.op {
	case "is null":
		return truthOf(values[0].null)
	case "is not null":
		return truthOf(!values[0].null)
	case "in", "not in":
		result := isFalse
		for _, l := range c.rows {
			result = max(result, compareRow("=", values, l))
		}
		if c.op == "not in" {
			return result.not()
		}
		return result
	case "between":
		return min(compareRow(">=", values, c.rows[0]), compareRow("<=", values, c.rows[1]))
	}
	return compareRow(c.op, values, c.rows[0])
}

// compareRow compares row values: the first column that differs decides.
func compareRow(op string, v, l []value) truth {
	if len(v) == 1 {
		return compare(op, v[0], l[0])
	}
	switch op {
	case "=", "==":
		return min(compare("=", v[0], l[0]), compareRow("=", v[1:], l[1:]))
	case "!=":
		return compareRow("=", v, l).not()
	}
	return max(compare(op[:1], v[0], l[0]), min(compare("=", v[0], l[0]), compareRow(op, v[1:], l[1:])))
}

// cell is one value on its way into an array: a null, an integer (in the
// column's unit), a float, a string or a boolean (as integer 0 or 1).
type cell struct {
	null  bool
	whole *big.Int
	float float64
	text  string
}

// newCells makes an array of the canonical type.
func newCells(dt arrow.DataType, cells []cell) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	width := 0
	if fixed, ok := dt.(arrow.FixedWidthDataType); ok {
		width = fixed.BitWidth() / 8
	}
	var raw []byte
	for _, c := range cells {
		if c.null {
			b.AppendNull()
			raw = append(raw, make([]byte, width)...)
			continue
		}
		switch b := b.(type) {
		case *array.BooleanBuilder:
			b.Append(c.whole.Sign() != 0)
		case *array.StringBuilder:
			b.Append(c.text)
		case *array.BinaryBuilder:
			b.Append([]byte(c.text))
		case *array.FixedSizeBinaryBuilder:
			b.Append([]byte(c.text))
		default:
			b.AppendEmptyValue()
			raw = append(raw, littleEndian(dt, c, width)...)
		}
	}
	arr := b.NewArray()
	if len(raw) == 0 || raw == nil {
		return arr
	}
	if data := arr.Data(); len(data.Buffers()) == 2 && len(raw) == width*len(cells) && dt.ID() != arrow.FIXED_SIZE_BINARY && dt.ID() != arrow.BOOL {
		copy(data.Buffers()[1].Bytes(), raw)
	}
	return arr
}

func littleEndian(dt arrow.DataType, c cell, width int) []byte {
	bits := new(big.Int)
	switch dt.ID() {
	case arrow.FLOAT64:
		bits.SetUint64(math.Float64bits(c.float))
	case arrow.FLOAT32:
		bits.SetUint64(uint64(math.Float32bits(float32(c.float))))
	case arrow.FLOAT16:
		bits.SetUint64(uint64(nearestHalf(c.float)))
	default:
		bits.Set(c.whole)
	}
	if bits.Sign() < 0 {
		bits.Add(bits, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
	}
	out := bits.FillBytes(make([]byte, width))
	for i := range width / 2 {
		out[i], out[width-1-i] = out[width-1-i], out[i]
	}
	return out
}

// halfValues are the values of the half floats that are not negative, by bits.
var halfValues = func() []float64 {
	values := make([]float64, 0x7C00)
	for bits := range values {
		exponent, fraction := bits>>10, bits&0x3FF
		if exponent == 0 {
			values[bits] = float64(fraction) * 0x1p-24
		} else {
			values[bits] = float64(1024+fraction) * math.Pow(2, float64(exponent-25))
		}
	}
	return values
}()

// nearestHalf is the bits of the half float nearest to a double, ties to even.
func nearestHalf(f float64) uint16 {
	sign := uint16(0)
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	switch {
	case math.IsNaN(f):
		return sign | 0x7E00
	case f >= 65520:
		return sign | 0x7C00
	}
	best := sort.SearchFloat64s(halfValues, f) // the first one that is not below
	if best == len(halfValues) {
		return sign | 0x7BFF
	}
	if best > 0 {
		above, below := halfValues[best]-f, f-halfValues[best-1]
		if below < above || below == above && best%2 == 1 {
			best--
		}
	}
	return sign | uint16(best)
}

// valueOf is what a cell of a column of the canonical type stands for.
func valueOf(dt arrow.DataType, c cell) value {
	switch dt.ID() {
	case arrow.NULL:
		return value{null: true}
	}
	if c.null {
		return value{null: true}
	}
	switch dt := dt.(type) {
	case *arrow.Float64Type:
		return floating(c.float)
	case *arrow.Float32Type:
		return floating(float64(float32(c.float)))
	case *arrow.Float16Type:
		bits := nearestHalf(c.float)
		switch magnitude := bits & 0x7FFF; {
		case magnitude > 0x7C00:
			return value{nan: true}
		case magnitude == 0x7C00:
			return floating(math.Inf(1 - 2*int(bits>>15)))
		default:
			return floating(halfValues[magnitude] * float64(1-2*int(bits>>15)))
		}
	case *arrow.StringType, *arrow.BinaryType, *arrow.FixedSizeBinaryType:
		return str(c.text)
	case *arrow.Date32Type:
		return rat(new(big.Rat).SetInt(new(big.Int).Mul(c.whole, big.NewInt(86400))))
	case arrow.DecimalType:
		return rat(scale(c.whole, int(dt.GetScale())))
	}
	if unit, ok := unitOf(dt); ok {
		return rat(scale(c.whole, unit))
	}
	return whole(c.whole)
}

// unitOf is the power of ten that a time's unit divides a second by.
func unitOf(dt arrow.DataType) (int, bool) {
	if dt.ID() == arrow.DATE64 {
		return 3, true
	}
	if timed, ok := dt.(arrow.TemporalWithUnit); ok {
		return 3 * int(timed.TimeUnit()), true
	}
	return 0, false
}

// scale is i × 10^-places.
func scale(i *big.Int, places int) *big.Rat {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(places, -places))), nil)
	if places < 0 {
		return new(big.Rat).SetInt(power.Mul(power, i))
	}
	return new(big.Rat).SetFrac(i, power)
}

// roundedTo is a number as a column of the type sees it: floats round first,
// and what is beyond them stays where it is.
func roundedTo(dt arrow.DataType, text string) value {
	exact, ok := new(big.Rat).SetString(text)
	if !ok {
		panic(text)
	}
	bits := map[arrow.Type]int{arrow.FLOAT64: 64, arrow.FLOAT32: 32, arrow.FLOAT16: 16}[dt.ID()]
	switch bits {
	case 0:
		return rat(exact)
	case 16:
		limit := big.NewRat(65520, 1)
		if new(big.Rat).Abs(exact).Cmp(limit) >= 0 {
			return rat(exact)
		}
		// The nearest of the neighbours of the nearest double's half float.
		about, _ := exact.Float64()
		near := int(nearestHalf(math.Abs(about)) & 0x7FFF)
		best, distance := 0.0, new(big.Rat).SetInt64(1<<20)
		for bits := max(0, near-2); bits <= min(near+2, len(halfValues)-1); bits++ {
			d := new(big.Rat).Sub(new(big.Rat).Abs(exact), new(big.Rat).SetFloat64(halfValues[bits]))
			if c := d.Abs(d).Cmp(distance); c < 0 || c == 0 && bits%2 == 0 {
				best, distance = halfValues[bits], d
			}
		}
		return floating(best * float64(exact.Sign()))
	}
	f, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return rat(exact)
	}
	return floating(f)
}
