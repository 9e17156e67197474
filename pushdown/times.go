package pushdown

import (
	"math/big"
	"strings"
	"time"
)

// Text of dates, times and durations is ISO 8601. All of it becomes an exact
// number of seconds, so that a literal finer than a column's unit is compared
// as what it is. Errors here say what is wrong with the text only.

const (
	secondsPerDay = 86_400
	// maxYearDigits holds every date32 (years up to 5,881,580) and every
	// timestamp but those in seconds beyond the year 999,999,999.
	maxYearDigits = 9
	// maxFraction is how many digits of a second's fraction are kept; more
	// cannot change a comparison with nanoseconds but for not being zero.
	maxFraction = 18
)

// textError is what is wrong with a text.
type textError string

func (e textError) Error() string { return string(e) }

// parseMoment reads YYYY-MM-DD, alone (a date) or followed by T or a blank, a
// time of day and an optional zone (a timestamp).
func parseMoment(text string) (Literal, error) {
	days, rest, err := cutDate(text)
	if err != nil {
		return Literal{}, err
	}
	l := Literal{kind: dateLiteral, text: text}
	seconds := new(big.Int).Mul(big.NewInt(days), big.NewInt(secondsPerDay))
	if rest == "" {
		l.number = numberOf(seconds, 0)
		return l, nil
	}
	if rest[0] != 'T' && rest[0] != ' ' {
		return Literal{}, textError("a date is followed by T or a blank and a time, or by nothing")
	}
	l.kind = timestampLiteral
	ofDay, fraction, rest, err := cutTime(rest[1:])
	if err != nil {
		return Literal{}, err
	}
	if rest != "" {
		offset, err := parseOffset(rest)
		if err != nil {
			return Literal{}, err
		}
		l.zoned = true
		ofDay -= offset
	}
	l.number = withFraction(seconds.Add(seconds, big.NewInt(ofDay)), fraction)
	return l, nil
}

// parseTime reads HH:MM[:SS[.fraction]].
func parseTime(text string) (Literal, error) {
	seconds, fraction, rest, err := cutTime(text)
	if err != nil {
		return Literal{}, err
	}
	if rest != "" {
		return Literal{}, textError("a time of day has no zone and nothing else behind it")
	}
	return Literal{kind: timeLiteral, text: text, number: withFraction(big.NewInt(seconds), fraction)}, nil
}

// cutDate reads a date and returns its days since 1970-01-01 in the proleptic
// Gregorian calendar. Years of more than four digits take a sign.
func cutDate(text string) (days int64, rest string, err error) {
	const want = textError("a date is YYYY-MM-DD")
	rest = strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return 0, "", want
	}
	digits := leadingDigits(rest)
	signed := len(rest) < len(text)
	if len(digits) < 4 || len(digits) > 4 && !signed || len(digits) > maxYearDigits {
		return 0, "", want
	}
	year := digitsValue(digits)
	if signed && text[0] == '-' {
		year = -year
	}
	rest = rest[len(digits):]
	month, rest, okMonth := cutTwo(rest, "-")
	day, rest, okDay := cutTwo(rest, "-")
	if !okMonth || !okDay {
		return 0, "", want
	}
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, "", textError("there is no such day")
	}
	return civilDays(year, month, day), rest, nil
}

func daysIn(year int64, month int64) int64 {
	// The calendar repeats every 400 years; time.Date normalises day 0.
	return int64(time.Date(int(2000+year%400), time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day())
}

// civilDays counts days by 400-year eras that begin in March
// (Hinnant, "chrono-compatible low-level date algorithms").
func civilDays(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	ofEra := year - era*400
	ofYear := (153*((month+9)%12)+2)/5 + day - 1
	return era*146_097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719_468
}

// cutTime reads HH:MM[:SS[.fraction]].
func cutTime(text string) (seconds int64, fraction, rest string, err error) {
	const want = textError("a time is HH:MM, HH:MM:SS or HH:MM:SS.fraction")
	hour, rest, okHour := cutTwo(text, "")
	minute, rest, okMinute := cutTwo(rest, ":")
	if !okHour || !okMinute {
		return 0, "", "", want
	}
	second := int64(0)
	if strings.HasPrefix(rest, ":") {
		var ok bool
		if second, rest, ok = cutTwo(rest, ":"); !ok {
			return 0, "", "", want
		}
		if strings.HasPrefix(rest, ".") {
			if fraction = leadingDigits(rest[1:]); fraction == "" {
				return 0, "", "", want
			}
			rest = rest[1+len(fraction):]
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		return 0, "", "", textError("there is no such time of day")
	}
	return hour*3600 + minute*60 + second, fraction, rest, nil
}

// parseOffset reads Z, ±HH, ±HHMM or ±HH:MM as seconds east of UTC.
func parseOffset(text string) (int64, error) {
	const want = textError("a zone is Z, +HH:MM or +HHMM")
	if text == "Z" {
		return 0, nil
	}
	if text[0] != '+' && text[0] != '-' {
		return 0, want
	}
	hour, rest, ok := cutTwo(text[1:], "")
	minute := int64(0)
	if ok && rest != "" {
		minute, rest, ok = cutTwo(strings.TrimPrefix(rest, ":"), "")
	}
	if !ok || rest != "" || hour > 23 || minute > 59 {
		return 0, want
	}
	if text[0] == '-' {
		return -(hour*3600 + minute*60), nil
	}
	return hour*3600 + minute*60, nil
}

// cutTwo reads a separator and exactly two digits.
func cutTwo(text, separator string) (value int64, rest string, ok bool) {
	text, found := strings.CutPrefix(text, separator)
	if !found || len(text) < 2 || leadingDigits(text[:2]) != text[:2] {
		return 0, "", false
	}
	return digitsValue(text[:2]), text[2:], true
}

// digitsValue is the value of at most 18 digits.
func digitsValue(digits string) int64 {
	value := int64(0)
	for i := range len(digits) {
		value = value*10 + int64(digits[i]-'0')
	}
	return value
}

// withFraction is whole + 0.fraction.
func withFraction(whole *big.Int, fraction string) number {
	fraction = shortFraction(fraction)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	whole = new(big.Int).Mul(whole, power)
	return numberOf(whole.Add(whole, big.NewInt(digitsValue(fraction))), -len(fraction))
}

// shortFraction replaces what no unit can tell apart by one digit.
func shortFraction(fraction string) string {
	if len(fraction) <= maxFraction {
		return fraction
	}
	if strings.Trim(fraction[maxFraction-1:], "0") == "" {
		return fraction[:maxFraction-1]
	}
	return fraction[:maxFraction-1] + "1"
}

// parseDuration reads [-]PnW or [-]P[nD][T[nH][nM][nS]], of which the last
// number may have a fraction. Years and months have no fixed length.
func parseDuration(text string) (Literal, error) {
	const want = textError("a duration is ISO 8601: P1DT2H3M4.5S, PT90S, -P2W")
	rest := strings.TrimPrefix(text, "-")
	negative := len(rest) < len(text)
	rest, ok := strings.CutPrefix(rest, "P")
	if !ok || rest == "" {
		return Literal{}, want
	}
	units, inTime := "WD", false
	total, fraction, fractionUnit := new(big.Int), "", int64(0)
	for rest != "" {
		if rest[0] == 'T' && !inTime {
			units, inTime, rest = "HMS", true, rest[1:]
			if rest == "" {
				return Literal{}, want
			}
		}
		digits := leadingDigits(rest)
		rest = rest[len(digits):]
		if digits == "" || len(digits) > maxFraction || fractionUnit != 0 {
			return Literal{}, want
		}
		if strings.HasPrefix(rest, ".") {
			if fraction = leadingDigits(rest[1:]); fraction == "" {
				return Literal{}, want
			}
			rest = rest[1+len(fraction):]
		}
		if rest == "" {
			return Literal{}, want
		}
		if !inTime && (rest[0] == 'Y' || rest[0] == 'M') {
			return Literal{}, textError("years and months have no fixed length: write days")
		}
		at := strings.IndexByte(units, rest[0])
		if at < 0 || rest[0] == 'W' && len(rest) > 1 {
			return Literal{}, want
		}
		seconds := unitSeconds(rest[0])
		units, rest = units[at+1:], rest[1:]
		if fraction != "" {
			fractionUnit = seconds
		}
		part := new(big.Int).Mul(big.NewInt(digitsValue(digits)), big.NewInt(seconds))
		total.Add(total, part)
	}
	fraction = shortFraction(fraction)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(fraction))), nil)
	total.Mul(total, power)
	total.Add(total, new(big.Int).Mul(big.NewInt(digitsValue(fraction)), big.NewInt(fractionUnit)))
	if negative {
		total.Neg(total)
	}
	return Literal{kind: durationLiteral, text: text, number: numberOf(total, -len(fraction))}, nil
}

func unitSeconds(unit byte) int64 {
	switch unit {
	case 'W':
		return 7 * secondsPerDay
	case 'D':
		return secondsPerDay
	case 'H':
		return 3600
	case 'M':
		return 60
	}
	return 1
}
