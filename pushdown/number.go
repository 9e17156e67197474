package pushdown

import (
	"math/big"
	"strconv"
	"strings"
)

// number is an exact decimal, ±digits × 10^exp. digits has neither leading nor
// trailing zeros; it is empty for zero, which has no sign. The exponent is
// clamped to ±maxExponent, far beyond every column type, so that no literal
// makes arithmetic large: what is computed from a number never has more than
// maxDigits digits.
type number struct {
	neg    bool
	digits string
	exp    int
}

const (
	maxExponent = 1 << 40
	// maxDigits holds the largest decimal256 with room to spare; a value with
	// more digits before the (shifted) point is beyond every column.
	maxDigits = 100
)

// parseNumber reads [+-]digits[.digits][e[+-]digits], at least one digit before
// or behind the point.
func parseNumber(text string) (number, bool) {
	n := number{}
	rest := text
	if rest != "" && (rest[0] == '-' || rest[0] == '+') {
		n.neg = rest[0] == '-'
		rest = rest[1:]
	}
	whole := leadingDigits(rest)
	rest = rest[len(whole):]
	fraction := ""
	if strings.HasPrefix(rest, ".") {
		fraction = leadingDigits(rest[1:])
		rest = rest[1+len(fraction):]
	}
	if whole == "" && fraction == "" {
		return number{}, false
	}
	if rest != "" {
		if rest[0] != 'e' && rest[0] != 'E' {
			return number{}, false
		}
		exp, ok := parseExponent(rest[1:])
		if !ok {
			return number{}, false
		}
		n.exp = exp
	}
	n.exp -= len(fraction)
	n.digits = whole + fraction
	return n.normal(), true
}

func parseExponent(text string) (int, bool) {
	sign := 1
	if text != "" && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
	}
	if text == "" || leadingDigits(text) != text {
		return 0, false
	}
	if text = strings.TrimLeft(text, "0"); len(text) > 12 {
		return sign * maxExponent, true
	}
	exp := 0
	for _, c := range []byte(text) {
		exp = exp*10 + int(c-'0')
	}
	return sign * min(exp, maxExponent), true
}

func leadingDigits(text string) string {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return text[:i]
		}
	}
	return text
}

// normal strips the zeros on both ends.
func (n number) normal() number {
	trimmed := strings.TrimRight(n.digits, "0")
	n.exp += len(n.digits) - len(trimmed)
	n.digits = strings.TrimLeft(trimmed, "0")
	if n.digits == "" {
		return number{}
	}
	return n
}

// numberOf is value × 10^exp.
func numberOf(value *big.Int, exp int) number {
	text := value.String()
	digits := strings.TrimPrefix(text, "-")
	return number{neg: digits != text, digits: digits, exp: exp}.normal()
}

// floatNumber is the exact value of a finite double.
func floatNumber(value float64) number {
	const exact = 766 // significant digits that write every double exactly, less one
	n, _ := parseNumber(strconv.FormatFloat(value, 'e', exact, 64))
	return n
}

// String is the number as JSON and SQL write it: plain where that is short.
func (n number) String() string {
	text := n.digits
	switch {
	case text == "":
		return "0"
	case n.exp >= 0 && n.exp <= 20:
		text += strings.Repeat("0", n.exp)
	case n.exp < 0 && -n.exp < len(text):
		text = text[:len(text)+n.exp] + "." + text[len(text)+n.exp:]
	case n.exp < 0 && -n.exp <= len(text)+6:
		text = "0." + strings.Repeat("0", -n.exp-len(text)) + text
	default:
		text += "e" + strconv.Itoa(n.exp)
	}
	if n.neg {
		return "-" + text
	}
	return text
}

// magnitude is the place of the first digit: 0.1 ≤ |n| × 10^-magnitude < 1.
func (n number) magnitude() int { return len(n.digits) + n.exp }

// scaled is floor(n × 10^scale) and whether that is all of it. beyond is -1 or
// +1, and floor nil, where the result has more than maxDigits digits.
func (n number) scaled(scale int) (floor *big.Int, exact bool, beyond int) {
	if n.digits == "" {
		return new(big.Int), true, 0
	}
	places := n.magnitude() + scale
	switch {
	case places > maxDigits && n.neg:
		return nil, false, -1
	case places > maxDigits:
		return nil, false, +1
	case places <= 0 && n.neg:
		return big.NewInt(-1), false, 0
	case places <= 0:
		return new(big.Int), false, 0
	}
	exact = len(n.digits) <= places
	digits := n.digits[:min(places, len(n.digits))]
	if len(digits) <= 18 && places <= 18 {
		small, _ := strconv.ParseInt(digits, 10, 64)
		for range places - len(digits) {
			small *= 10
		}
		floor = big.NewInt(small)
	} else {
		floor, _ = new(big.Int).SetString(digits+strings.Repeat("0", places-len(digits)), 10)
	}
	if n.neg {
		floor.Neg(floor)
		if !exact {
			floor.Sub(floor, big.NewInt(1))
		}
	}
	return floor, exact, 0
}
