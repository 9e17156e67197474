package ingest

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// scaling multiplies or divides counts of time by a factor.
type scaling struct {
	factor int64
	divide bool
}

// timeScaling is how a date, time, timestamp or duration becomes one of another
// unit of the same family. ok is false if from is none of these; errMismatch if
// to is of another family, or only one of two timestamps has a zone.
func timeScaling(from, to arrow.DataType) (s scaling, ok bool, err error) {
	family, ticks := timeFamily(from)
	if family == "" {
		return scaling{}, false, nil
	}
	other, finer := timeFamily(to)
	if other != family {
		return scaling{}, true, errMismatch
	}
	if finer >= ticks {
		return scaling{factor: finer / ticks}, true, nil
	}
	return scaling{factor: ticks / finer, divide: true}, true, nil
}

// timeFamily names what may be converted into each other, with the ticks a
// second has (a day, for dates).
func timeFamily(dt arrow.DataType) (family string, ticks int64) {
	switch dt := dt.(type) {
	case *arrow.Date32Type:
		return "date", 1
	case *arrow.Date64Type:
		return "date", 86_400_000
	case *arrow.Time32Type:
		return "time", perSecond(dt.Unit)
	case *arrow.Time64Type:
		return "time", perSecond(dt.Unit)
	case *arrow.DurationType:
		return "duration", perSecond(dt.Unit)
	case *arrow.TimestampType:
		if dt.TimeZone == "" {
			return "timestamp", perSecond(dt.Unit)
		}
		return "timestamp with a zone", perSecond(dt.Unit)
	}
	return "", 0
}

func perSecond(unit arrow.TimeUnit) int64 {
	switch unit {
	case arrow.Millisecond:
		return 1_000
	case arrow.Microsecond:
		return 1_000_000
	case arrow.Nanosecond:
		return 1_000_000_000
	}
	return 1
}

// apply scales every value that is not null. One that overflows, or is no whole
// number of the coarser unit, is a *valueError.
func (s scaling) apply(mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	width := to.(arrow.FixedWidthDataType).Bytes()
	bad := -1
	out := remade(mem, arr, to, width, func(in, out []byte) {
		narrow := arr.DataType().(arrow.FixedWidthDataType).Bytes() == 4
		switch {
		case narrow && width == 4:
			bad = scaleAll(s, arr, arrow.GetData[int32](in), arrow.GetData[int32](out))
		case narrow:
			bad = scaleAll(s, arr, arrow.GetData[int32](in), arrow.GetData[int64](out))
		case width == 4:
			bad = scaleAll(s, arr, arrow.GetData[int64](in), arrow.GetData[int32](out))
		default:
			bad = scaleAll(s, arr, arrow.GetData[int64](in), arrow.GetData[int64](out))
		}
	})
	if bad < 0 {
		return out, nil
	}
	out.Release()
	return nil, &valueError{row: bad, value: valueText(arr, bad), reason: fmt.Sprintf("is no exact value of %s", to)}
}

// scaleAll is the first row whose value does not fit, or -1.
func scaleAll[S, T int32 | int64](s scaling, arr arrow.Array, in []S, out []T) int {
	least, most := math.MinInt64/s.factor, math.MaxInt64/s.factor
	for i, v := range in {
		scaled := int64(v) * s.factor
		exact := int64(v) >= least && int64(v) <= most
		if s.divide {
			scaled = int64(v) / s.factor
			exact = scaled*s.factor == int64(v)
		}
		out[i] = T(scaled)
		if (!exact || int64(out[i]) != scaled) && arr.IsValid(i) {
			return i
		}
	}
	return -1
}

// valueText is a value for a message.
func valueText(arr arrow.Array, row int) string { return cutText(arr.ValueStr(row)) }

// cutText cuts text to a length that leaves room for the rest of a message.
func cutText(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > most-4 && text[cut]&0xC0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}
