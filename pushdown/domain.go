package pushdown

import (
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// domain is the ordered set of values that a column may hold, each written as
// bytes that compare as the values do: big-endian integers with the sign bit
// flipped (decimals and times are integers of their unit), floats by their
// order, strings and binary as they are. For key types this is the encoding of
// package key, but for the escaping of strings and binary.
type domain struct {
	kind  domainKind
	width int // bytes of a value; 0 for strings and binary
	scale int // a value v stands for v × 10^-scale: decimals, and times in seconds
	zoned bool
	float floatFormat
}

type domainKind uint8

const (
	unordered domainKind = iota // only null tests: nested types and intervals
	nothing                     // type null: every comparison is unknown
	boolean
	signedInteger
	unsignedInteger
	decimalNumber
	float
	utf8Text
	byteString
	fixedBinary
	date32 // days
	date64 // milliseconds
	timeOfDay
	timestamp
	duration
)

// domainOf is the domain of a canonical type.
func domainOf(dt arrow.DataType) domain {
	switch dt := dt.(type) {
	case *arrow.NullType:
		return domain{kind: nothing}
	case *arrow.BooleanType:
		return domain{kind: boolean, width: 1}
	case *arrow.Float16Type:
		return domain{kind: float, width: 2, float: float16Format}
	case *arrow.Float32Type:
		return domain{kind: float, width: 4, float: float32Format}
	case *arrow.Float64Type:
		return domain{kind: float, width: 8, float: float64Format}
	case arrow.DecimalType:
		return domain{kind: decimalNumber, width: dt.BitWidth() / 8, scale: int(dt.GetScale())}
	case *arrow.StringType:
		return domain{kind: utf8Text}
	case *arrow.BinaryType:
		return domain{kind: byteString}
	case *arrow.FixedSizeBinaryType:
		return domain{kind: fixedBinary, width: dt.ByteWidth}
	case *arrow.Date32Type:
		return domain{kind: date32, width: 4}
	case *arrow.Date64Type:
		return domain{kind: date64, width: 8, scale: 3}
	case *arrow.Time32Type:
		return domain{kind: timeOfDay, width: 4, scale: unitScale(dt.Unit)}
	case *arrow.Time64Type:
		return domain{kind: timeOfDay, width: 8, scale: unitScale(dt.Unit)}
	case *arrow.TimestampType:
		return domain{kind: timestamp, width: 8, scale: unitScale(dt.Unit), zoned: dt.TimeZone != ""}
	case *arrow.DurationType:
		return domain{kind: duration, width: 8, scale: unitScale(dt.Unit)}
	}
	switch dt.ID() {
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return domain{kind: signedInteger, width: dt.(arrow.FixedWidthDataType).BitWidth() / 8}
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return domain{kind: unsignedInteger, width: dt.(arrow.FixedWidthDataType).BitWidth() / 8}
	}
	return domain{kind: unordered}
}

func unitScale(unit arrow.TimeUnit) int {
	switch unit {
	case arrow.Millisecond:
		return 3
	case arrow.Microsecond:
		return 6
	case arrow.Nanosecond:
		return 9
	}
	return 0
}

// bytewise is true for values that compare as their bytes do.
func (d domain) bytewise() bool {
	return d.kind == utf8Text || d.kind == byteString || d.kind == fixedBinary
}

// cut is a place between the values of a domain: before the least value that is
// not below at. Behind all values it is end.
type cut struct {
	at  string
	end bool
}

var endCut = cut{end: true}

// least is the cut before all values.
func (d domain) least() cut {
	switch {
	case d.kind == float:
		return d.floatCut(d.float.lowest())
	case d.width > 0:
		return cut{at: strings.Repeat("\x00", d.width)}
	}
	return cut{}
}

// cuts are the two places around a literal: before the least value that is not
// less than it, and before the least one greater. They are the same place if
// the domain does not have the literal's value. ok is false for NaN, which has
// no place. The literal must be of a kind that fits the domain (see literal).
func (d domain) cuts(l Literal) (from, behind cut, ok bool) {
	switch {
	case l.kind == nanLiteral:
		return cut{}, cut{}, false
	case d.bytewise():
		from, behind = d.byteCuts(l.text)
	case d.kind == boolean && l.truth:
		from, behind = cut{at: "\x01"}, endCut
	case d.kind == boolean:
		from, behind = cut{at: "\x00"}, cut{at: "\x01"}
	case l.kind == infinityLiteral && d.kind == float:
		from, behind = d.infinityCuts(l.sign)
	case l.kind == infinityLiteral:
		if from = endCut; l.sign < 0 {
			from = d.least()
		}
		behind = from
	case d.kind == float:
		from, behind = d.floatCuts(l.number)
	default:
		from, behind = d.integerCuts(l.number)
	}
	return from, behind, true
}

// byteCuts: the value behind a string is that string with a zero byte.
func (d domain) byteCuts(value string) (from, behind cut) {
	if d.kind != fixedBinary {
		return cut{at: value}, cut{at: value + "\x00"}
	}
	from = d.fixedCut(value)
	if len(value) == d.width {
		return from, successor(value)
	}
	return from, from
}

// fixedCut is the cut before the least value of the column's width that is not
// below value, which may be shorter or longer.
func (d domain) fixedCut(value string) cut {
	if len(value) > d.width {
		return successor(value[:d.width])
	}
	return cut{at: value + strings.Repeat("\x00", d.width-len(value))}
}

// prefixCuts are the places around all values that begin with prefix.
func (d domain) prefixCuts(prefix string) (from, behind cut) {
	end := prefixEnd(prefix)
	if d.kind != fixedBinary {
		return cut{at: prefix}, end
	}
	if len(prefix) > d.width {
		from = d.fixedCut(prefix)
		return from, from
	}
	if !end.end {
		end = d.fixedCut(end.at)
	}
	return d.fixedCut(prefix), end
}

// prefixEnd is the least string above all that begin with prefix: the last byte
// that is not FF goes up by one.
func prefixEnd(prefix string) cut {
	for end := len(prefix); end > 0; end-- {
		if last := prefix[end-1]; last != 0xFF {
			return cut{at: prefix[:end-1] + string([]byte{last + 1})}
		}
	}
	return endCut
}

// successor is the cut before the next value of the same width.
func successor(value string) cut {
	next := []byte(value)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return cut{at: string(next)}
		}
	}
	return endCut
}

func (d domain) infinityCuts(sign int) (from, behind cut) {
	if sign > 0 {
		return d.floatCut(d.float.highest()), endCut
	}
	return d.least(), d.floatCut(d.float.lowest() + 1)
}

// floatCuts: the literal is rounded to the column's type first; one beyond all
// finite values lies between them and infinity.
func (d domain) floatCuts(n number) (from, behind cut) {
	order, beyond := d.float.round(n)
	switch beyond {
	case -1:
		from = d.floatCut(d.float.lowest() + 1)
		return from, from
	case +1:
		from = d.floatCut(d.float.highest())
		return from, from
	}
	return d.floatCut(order), d.floatCut(d.float.above(order))
}

func (d domain) floatCut(order uint64) cut {
	return cut{at: string(bigEndian(order, d.width))}
}

// integerCuts: the literal in the column's unit lies on an integer, or between
// its floor and the next one.
func (d domain) integerCuts(n number) (from, behind cut) {
	floor, exact, beyond := n.scaled(d.scale)
	if beyond < 0 {
		return d.least(), d.least()
	}
	if beyond > 0 {
		return endCut, endCut
	}
	if d.kind == date32 {
		rest := new(big.Int)
		floor.DivMod(floor, big.NewInt(secondsPerDay), rest)
		exact = exact && rest.Sign() == 0
	}
	if exact {
		from = d.integerCut(floor)
	}
	behind = d.integerCut(floor.Add(floor, big.NewInt(1)))
	if !exact {
		from = behind
	}
	return from, behind
}

// integerCut is the cut before an integer, which may be out of range.
func (d domain) integerCut(value *big.Int) cut {
	signed := d.kind != unsignedInteger
	bits := uint(8 * d.width)
	if value.IsInt64() && bits <= 64 {
		v := value.Int64()
		if signed {
			if lowest := int64(-1) << (bits - 1); v < lowest {
				return d.least()
			} else if v > ^lowest {
				return endCut
			}
			return cut{at: string(bigEndian(uint64(v)^1<<(bits-1), d.width))}
		}
	}
	biased := new(big.Int).Set(value)
	if signed {
		biased.Add(biased, new(big.Int).Lsh(big.NewInt(1), bits-1))
	}
	switch {
	case biased.Sign() < 0:
		return d.least()
	case biased.BitLen() > int(bits):
		return endCut
	}
	return cut{at: string(biased.FillBytes(make([]byte, d.width)))}
}

// bigEndian is the lowest width bytes of a value.
func bigEndian(value uint64, width int) []byte {
	out := make([]byte, width)
	for i := range out {
		out[i] = byte(value >> (8 * (width - 1 - i)))
	}
	return out
}

// number is the inverse of bigEndian.
func fromBigEndian(value string) uint64 {
	v := uint64(0)
	for i := range len(value) {
		v = v<<8 | uint64(value[i])
	}
	return v
}
