package pushdown

import (
	"math"
	"math/big"
	"strconv"
)

// Floats are ordered by their bits: inverted for negative ones, with the sign
// bit set for the others. −0.0 comes just below 0.0 there, and equals it in
// comparisons, so no bound of a set ever is −0.0.

// floatFormat is one of the IEEE 754 interchange formats.
type floatFormat struct{ bits, mantissa uint }

var (
	float16Format = floatFormat{16, 10}
	float32Format = floatFormat{32, 23}
	float64Format = floatFormat{64, 52}
)

func (f floatFormat) sign() uint64     { return 1 << (f.bits - 1) }
func (f floatFormat) infinity() uint64 { return f.sign() - 1<<f.mantissa }

// order is the place of a float's bits among all floats of the format; NaNs are
// outside of [order(-Inf), order(+Inf)].
func (f floatFormat) order(bits uint64) uint64 {
	if bits&f.sign() != 0 {
		return ^bits & (f.sign()<<1 - 1)
	}
	return bits | f.sign()
}

// bitsAt is the inverse of order.
func (f floatFormat) bitsAt(order uint64) uint64 {
	if order&f.sign() != 0 {
		return order &^ f.sign()
	}
	return ^order & (f.sign()<<1 - 1)
}

func (f floatFormat) lowest() uint64  { return f.order(f.infinity() | f.sign()) }
func (f floatFormat) highest() uint64 { return f.order(f.infinity()) }
func (f floatFormat) zero() uint64    { return f.sign() }

// above is the next order behind one, leaving out −0.0.
func (f floatFormat) above(order uint64) uint64 {
	if order+2 == f.zero() {
		return f.zero()
	}
	return order + 1
}

// below is the order before one, leaving out −0.0.
func (f floatFormat) below(order uint64) uint64 {
	if order == f.zero() {
		return order - 2
	}
	return order - 1
}

// round is the order of the nearest float, ties to even, as one rounding of the
// decimal. beyond is -1 or +1 where that overflows.
func (f floatFormat) round(n number) (order uint64, beyond int) {
	if n.digits == "" {
		return f.zero(), 0
	}
	overflow := +1
	if n.neg {
		overflow = -1
	}
	var bits uint64
	if f == float16Format {
		half, ok := n.roundHalf()
		if !ok {
			return 0, overflow
		}
		bits = uint64(half)
	} else {
		value, err := strconv.ParseFloat(n.digits+"e"+strconv.Itoa(n.exp), int(f.bits))
		if err != nil { // digits and exponent are well formed: it is out of range
			return 0, overflow
		}
		if bits = math.Float64bits(value); f == float32Format {
			bits = uint64(math.Float32bits(float32(value)))
		}
	}
	if n.neg && bits != 0 {
		bits |= f.sign()
	}
	return f.order(bits), 0
}

// roundHalf finds the two half floats around |n| and takes the nearer one; it
// is false where that is infinity.
func (n number) roundHalf() (bits uint16, ok bool) {
	switch magnitude := n.magnitude(); {
	case magnitude < -10: // half of the least half float is 3e-8
		return 0, true
	case magnitude > 5: // the greatest one is 65504
		return 0, false
	}
	infinity := uint16(float16Format.infinity())
	exact := n.short()
	below, above := uint16(0), infinity // half(below) ≤ |n| < half(above)
	for above-below > 1 {
		middle := below + (above-below)/2
		if exact.Cmp(rational(half(middle))) >= 0 {
			below = middle
		} else {
			above = middle
		}
	}
	nearer := exact.Cmp(rational((half(below) + half(above)) / 2))
	if nearer > 0 || nearer == 0 && below%2 == 1 {
		below = above
	}
	return below, below != infinity
}

// half is the value of a half float that is not negative; what follows the
// greatest one is 65536, as if exponents went on.
func half(bits uint16) float64 {
	exponent, fraction := int(bits>>10), float64(bits&0x3FF)/1024
	if exponent == 0 {
		return math.Ldexp(fraction, -14)
	}
	return math.Ldexp(1+fraction, exponent-15)
}

func rational(value float64) *big.Rat { return new(big.Rat).SetFloat64(value) }

// short is |n| with what comes behind 64 digits replaced by one more digit: it
// compares the same with every number that has no more digits than that.
func (n number) short() *big.Rat {
	digits, exp := n.digits, n.exp
	if cut := len(digits) - 64; cut > 0 {
		digits, exp = digits[:64]+"1", exp+cut-1
	}
	value, _ := new(big.Int).SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil)
	if exp >= 0 {
		return new(big.Rat).SetInt(value.Mul(value, power))
	}
	return new(big.Rat).SetFrac(value, power)
}
