package pushdown

import (
	"encoding/hex"
	"math"
	"strings"
	"unicode/utf8"
)

// Literal is a constant as a filter wrote it, not yet of any column's type. The
// kinds are closed: Null, Bool, Number, Float, Text, Bytes, and the typed times
// Date, Time, Timestamp and Duration. A Literal is immutable.
type Literal struct {
	kind   literalKind
	truth  bool
	sign   int    // of an infinity
	number number // numbers; times in seconds
	zoned  bool   // the timestamp is an instant
	text   string // text and bytes as they are; a typed time as it was written
}

type literalKind uint8

const (
	nullLiteral literalKind = iota
	boolLiteral
	numberLiteral
	infinityLiteral
	nanLiteral
	textLiteral
	bytesLiteral
	dateLiteral      // seconds from 1970-01-01 to its midnight
	timeLiteral      // seconds since midnight
	timestampLiteral // seconds since 1970-01-01
	durationLiteral  // seconds
)

// Null is the literal NULL.
func Null() Literal { return Literal{} }

// Bool is TRUE or FALSE.
func Bool(truth bool) Literal { return Literal{kind: boolLiteral, truth: truth} }

// Number is an exact decimal number written as JSON and SQL do, of any size and
// precision; false if the text is no number.
func Number(text string) (Literal, bool) {
	n, ok := parseNumber(text)
	return Literal{kind: numberLiteral, number: n}, ok
}

// Float is the exact value of a double, infinities and NaN included.
func Float(value float64) Literal {
	switch {
	case math.IsNaN(value):
		return Literal{kind: nanLiteral}
	case math.IsInf(value, +1):
		return Literal{kind: infinityLiteral, sign: +1}
	case math.IsInf(value, -1):
		return Literal{kind: infinityLiteral, sign: -1}
	}
	return Literal{kind: numberLiteral, number: floatNumber(value)}
}

// Text is a text literal, which is read as the type of the column it meets.
func Text(text string) Literal { return Literal{kind: textLiteral, text: text} }

// Bytes is a binary literal.
func Bytes(value []byte) Literal { return Literal{kind: bytesLiteral, text: string(value)} }

// IsNull reports whether the literal is NULL.
func (l Literal) IsNull() bool { return l.kind == nullLiteral }

// String is the literal as SQL writes it, shortened in the middle of a long one.
func (l Literal) String() string {
	switch l.kind {
	case boolLiteral:
		if l.truth {
			return "TRUE"
		}
		return "FALSE"
	case numberLiteral:
		if text := l.number.String(); len(text) <= maxShown {
			return text
		}
		return clip(l.number.String())
	case infinityLiteral:
		if l.sign < 0 {
			return "'-Infinity'"
		}
		return "'Infinity'"
	case nanLiteral:
		return "'NaN'"
	case bytesLiteral:
		return "X'" + clip(strings.ToUpper(hex.EncodeToString([]byte(l.text[:min(len(l.text), maxShown)])))) + "'"
	case textLiteral, dateLiteral, timeLiteral, timestampLiteral, durationLiteral:
		return "'" + strings.ReplaceAll(clip(l.text), "'", "''") + "'"
	}
	return "NULL"
}

// maxShown is how many bytes of one literal or name a message or plan shows.
const maxShown = 80

// clip shortens text for a message, between characters.
func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// kindName names the kind for messages.
func (l Literal) kindName() string {
	switch l.kind {
	case boolLiteral:
		return "a boolean"
	case numberLiteral, infinityLiteral, nanLiteral:
		return "a number"
	case textLiteral:
		return "text"
	case bytesLiteral:
		return "binary"
	case dateLiteral:
		return "a date"
	case timeLiteral:
		return "a time"
	case timestampLiteral:
		return "a timestamp"
	case durationLiteral:
		return "a duration"
	}
	return "null"
}
