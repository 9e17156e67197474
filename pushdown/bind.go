package pushdown

import (
	"encoding/hex"
	"strings"

	"github.com/sheaf-db/sheaf/fault"
)

// bind checks that a literal may meet the column and reads text as the column's
// type. Errors name the column and the literal; NULL and the columns of type
// null take everything.
func (c *column) bind(l Literal) (Literal, error) {
	if c.domain.kind == unordered {
		return l, fault.Invalid("LITERAL_TYPE", "column %q is %s, which takes only the tests `is null` and `is not null`, not %s",
			clip(c.name), c.declared, l)
	}
	if l.kind == nullLiteral || c.domain.kind == nothing {
		return l, nil
	}
	if l.kind == textLiteral {
		return c.readText(l)
	}
	var fits bool
	switch c.domain.kind {
	case boolean:
		fits = l.kind == boolLiteral
	case signedInteger, unsignedInteger, decimalNumber, float:
		fits = l.kind == numberLiteral || l.kind == infinityLiteral || l.kind == nanLiteral
	case byteString, fixedBinary:
		fits = l.kind == bytesLiteral
	case date32, date64, timestamp:
		fits = l.kind == dateLiteral || l.kind == timestampLiteral
	case timeOfDay:
		fits = l.kind == timeLiteral
	case duration:
		fits = l.kind == durationLiteral
	}
	if !fits {
		return l, c.wrongKind(l)
	}
	return l, c.checkZone(l)
}

// readText reads text as a value of the column's type.
func (c *column) readText(l Literal) (Literal, error) {
	var value Literal
	var err error
	ok := true
	switch c.domain.kind {
	case utf8Text:
		return l, nil
	case byteString, fixedBinary:
		return l, c.wrongKind(l)
	case boolean:
		value, ok = Bool(strings.EqualFold(l.text, "true")), strings.EqualFold(l.text, "true") || strings.EqualFold(l.text, "false")
	case signedInteger, unsignedInteger, decimalNumber:
		value, ok = Number(l.text)
	case float:
		if value, ok = Number(l.text); !ok {
			value, ok = specialFloat(l.text)
		}
	case date32, date64, timestamp:
		value, err = parseMoment(l.text)
	case timeOfDay:
		value, err = parseTime(l.text)
	case duration:
		value, err = parseDuration(l.text)
	}
	switch {
	case err != nil:
		return l, fault.Invalid("LITERAL_INVALID", "column %q is %s, and %s is no value of that type: %w", clip(c.name), c.declared, l, err)
	case !ok:
		return l, fault.Invalid("LITERAL_INVALID", "column %q is %s, and %s is no value of that type", clip(c.name), c.declared, l)
	}
	return value, c.checkZone(value)
}

// specialFloat reads NaN and the infinities, in any case.
func specialFloat(text string) (Literal, bool) {
	sign := +1
	switch rest := strings.ToLower(text); {
	case rest == "nan":
		return Literal{kind: nanLiteral}, true
	case strings.HasPrefix(rest, "-"):
		sign, text = -1, rest[1:]
	default:
		text = strings.TrimPrefix(rest, "+")
	}
	return Literal{kind: infinityLiteral, sign: sign}, text == "inf" || text == "infinity"
}

// checkZone refuses an instant where the column has wall-clock times: which
// instant those are is not known. The other way round UTC is meant.
func (c *column) checkZone(l Literal) error {
	if l.kind == timestampLiteral && l.zoned && !c.domain.zoned {
		return fault.Invalid("LITERAL_ZONE", "column %q is %s, without a time zone, and %s has one: write the time without a zone", clip(c.name), c.declared, l)
	}
	return nil
}

func (c *column) wrongKind(l Literal) error {
	want := ""
	switch c.domain.kind {
	case boolean:
		want = "true or false"
	case signedInteger, unsignedInteger, decimalNumber, float:
		want = "a number"
	case utf8Text:
		want = "text"
	case byteString, fixedBinary:
		want = `binary: in JSON {"base64": "…"}`
	case date32, date64:
		want = "a date as text: 2026-01-31"
	case timestamp:
		want = "a time as text: 2026-01-31T10:00:00"
	case timeOfDay:
		want = "a time as text: 10:00:00"
	case duration:
		want = "an ISO 8601 duration as text: PT90S"
	}
	return fault.Invalid("LITERAL_TYPE", "column %q is %s and cannot be compared with %s %s; it takes %s",
		clip(c.name), c.declared, l.kindName(), l.shown(), want)
}

// shown is the literal as the user knows it.
func (l Literal) shown() string {
	if l.kind == bytesLiteral {
		return "0x" + clip(hex.EncodeToString([]byte(l.text[:min(len(l.text), maxShown)])))
	}
	return l.String()
}
