package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
)

// Values as text. What is written can be read again: times are ISO 8601,
// durations too, decimals keep their scale, binary is base64, nested values are
// JSON. The same text can stand in a `where`.

// appendJSON appends value row of arr as JSON. Numbers are numbers, with NaN,
// the infinities and decimals as strings.
func appendJSON(dst []byte, arr arrow.Array, row int) []byte {
	if isNull(arr, row) {
		return append(dst, "null"...)
	}
	switch arr := arr.(type) {
	case *array.Dictionary:
		return appendJSON(dst, arr.Dictionary(), arr.GetValueIndex(row))
	case *array.RunEndEncoded:
		return appendJSON(dst, arr.Values(), arr.GetPhysicalIndex(row))
	case array.ExtensionArray:
		return appendJSON(dst, arr.Storage(), row)
	case *array.Map:
		return appendList(dst, arr, row)
	case array.ListLike:
		return appendList(dst, arr, row)
	case *array.Struct:
		return appendObject(dst, arr, row)
	case *array.SparseUnion:
		return appendJSON(dst, arr.Field(arr.ChildID(row)), row)
	case *array.DenseUnion:
		return appendJSON(dst, arr.Field(arr.ChildID(row)), int(arr.ValueOffset(row)))
	case *array.MonthInterval:
		return strconv.AppendInt(dst, int64(arr.Value(row)), 10)
	case *array.DayTimeInterval:
		v := arr.Value(row)
		return fmt.Appendf(dst, `{"days":%d,"milliseconds":%d}`, v.Days, v.Milliseconds)
	case *array.MonthDayNanoInterval:
		v := arr.Value(row)
		return fmt.Appendf(dst, `{"months":%d,"days":%d,"nanoseconds":%d}`, v.Months, v.Days, v.Nanoseconds)
	}
	text, bare := scalarText(arr, row)
	if bare {
		return append(dst, text...)
	}
	return appendString(dst, text)
}

// cell is value row of arr as one field of a table or CSV; null reports that
// there is none.
func cell(arr arrow.Array, row int) (text string, null bool) {
	if isNull(arr, row) {
		return "", true
	}
	switch arr := arr.(type) {
	case *array.Dictionary:
		return cell(arr.Dictionary(), arr.GetValueIndex(row))
	case *array.RunEndEncoded:
		return cell(arr.Values(), arr.GetPhysicalIndex(row))
	case array.ExtensionArray:
		return cell(arr.Storage(), row)
	}
	if isNested(arr.DataType()) {
		return string(appendJSON(nil, arr, row)), false
	}
	text, _ = scalarText(arr, row)
	return text, false
}

func isNested(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.INTERVAL_MONTHS, arrow.INTERVAL_DAY_TIME, arrow.INTERVAL_MONTH_DAY_NANO:
		return true
	}
	_, nested := dt.(arrow.NestedType)
	return nested
}

// isNull looks through dictionaries and run ends to the value itself.
func isNull(arr arrow.Array, row int) bool {
	switch arr := arr.(type) {
	case *array.Null:
		return true
	case *array.Dictionary:
		return arr.IsNull(row) || isNull(arr.Dictionary(), arr.GetValueIndex(row))
	case *array.RunEndEncoded:
		return isNull(arr.Values(), arr.GetPhysicalIndex(row))
	case array.ExtensionArray:
		return isNull(arr.Storage(), row)
	}
	return arr.IsNull(row)
}

// scalarText is one value of a type without children; bare says that the text
// is also JSON as it stands.
func scalarText(arr arrow.Array, row int) (text string, bare bool) {
	switch arr := arr.(type) {
	case *array.Boolean:
		return strconv.FormatBool(arr.Value(row)), true
	case *array.Int8:
		return strconv.FormatInt(int64(arr.Value(row)), 10), true
	case *array.Int16:
		return strconv.FormatInt(int64(arr.Value(row)), 10), true
	case *array.Int32:
		return strconv.FormatInt(int64(arr.Value(row)), 10), true
	case *array.Int64:
		return strconv.FormatInt(arr.Value(row), 10), true
	case *array.Uint8:
		return strconv.FormatUint(uint64(arr.Value(row)), 10), true
	case *array.Uint16:
		return strconv.FormatUint(uint64(arr.Value(row)), 10), true
	case *array.Uint32:
		return strconv.FormatUint(uint64(arr.Value(row)), 10), true
	case *array.Uint64:
		return strconv.FormatUint(arr.Value(row), 10), true
	case *array.Float16:
		return floatText(float64(arr.Value(row).Float32()), 32)
	case *array.Float32:
		return floatText(float64(arr.Value(row)), 32)
	case *array.Float64:
		return floatText(arr.Value(row), 64)
	case *array.String:
		return arr.Value(row), false
	case *array.LargeString:
		return arr.Value(row), false
	case *array.StringView:
		return arr.Value(row), false
	case *array.Binary:
		return base64.StdEncoding.EncodeToString(arr.Value(row)), false
	case *array.LargeBinary:
		return base64.StdEncoding.EncodeToString(arr.Value(row)), false
	case *array.BinaryView:
		return base64.StdEncoding.EncodeToString(arr.Value(row)), false
	case *array.FixedSizeBinary:
		return base64.StdEncoding.EncodeToString(arr.Value(row)), false
	case *array.Decimal32:
		return decimalText(arr.Value(row), arr.DataType()), false
	case *array.Decimal64:
		return decimalText(arr.Value(row), arr.DataType()), false
	case *array.Decimal128:
		return decimalText(arr.Value(row), arr.DataType()), false
	case *array.Decimal256:
		return decimalText(arr.Value(row), arr.DataType()), false
	case *array.Date32:
		return arr.Value(row).ToTime().Format(time.DateOnly), false
	case *array.Date64:
		return arr.Value(row).ToTime().Format(time.DateOnly), false
	case *array.Time32:
		unit := arr.DataType().(*arrow.Time32Type).Unit
		return arr.Value(row).ToTime(unit).Format("15:04:05" + fraction(unit)), false
	case *array.Time64:
		unit := arr.DataType().(*arrow.Time64Type).Unit
		return arr.Value(row).ToTime(unit).Format("15:04:05" + fraction(unit)), false
	case *array.Timestamp:
		return timestampText(arr.Value(row), arr.DataType().(*arrow.TimestampType)), false
	case *array.Duration:
		return durationText(int64(arr.Value(row)), arr.DataType().(*arrow.DurationType).Unit), false
	}
	return arr.ValueStr(row), false
}

func decimalText[T decimal.DecimalTypes](value interface {
	decimal.Num[T]
}, dt arrow.DataType) string {
	return value.ToString(dt.(arrow.DecimalType).GetScale())
}

func floatText(v float64, bits int) (text string, bare bool) {
	switch {
	case math.IsNaN(v):
		return "NaN", false
	case math.IsInf(v, 1):
		return "Infinity", false
	case math.IsInf(v, -1):
		return "-Infinity", false
	}
	return strconv.FormatFloat(v, 'g', -1, bits), true
}

// fraction is the layout of the digits behind the second that a unit has.
func fraction(unit arrow.TimeUnit) string {
	return []string{"", ".000", ".000000", ".000000000"}[unit]
}

func timestampText(value arrow.Timestamp, dt *arrow.TimestampType) string {
	layout := "2006-01-02T15:04:05" + fraction(dt.Unit)
	at := value.ToTime(dt.Unit)
	if dt.TimeZone == "" {
		return at.Format(layout)
	}
	if zone, err := dt.GetZone(); err == nil {
		at = at.In(zone)
	}
	return at.Format(layout + "Z07:00")
}

// durationText is an ISO 8601 duration in seconds: exact in every unit.
func durationText(value int64, unit arrow.TimeUnit) string {
	sign, size := "", uint64(value)
	if value < 0 {
		sign, size = "-", -size
	}
	per := uint64(time.Second / unit.Multiplier())
	text := sign + "PT" + strconv.FormatUint(size/per, 10)
	if rest := size % per; rest != 0 {
		digits := len(fraction(unit)) - 1
		text += "." + strings.TrimRight(fmt.Sprintf("%0*d", digits, rest), "0")
	}
	return text + "S"
}

func appendList(dst []byte, arr array.ListLike, row int) []byte {
	start, end := arr.ValueOffsets(row)
	dst = append(dst, '[')
	for i := start; i < end; i++ {
		if i > start {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, arr.ListValues(), int(i))
	}
	return append(dst, ']')
}

func appendObject(dst []byte, arr *array.Struct, row int) []byte {
	dst = append(dst, '{')
	for i, field := range arr.DataType().(*arrow.StructType).Fields() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, field.Name), ':')
		dst = appendJSON(dst, arr.Field(i), row)
	}
	return append(dst, '}')
}

func appendString(dst []byte, text string) []byte {
	if isPlain(text) {
		return append(append(append(dst, '"'), text...), '"')
	}
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return append(dst, strings.TrimSuffix(encoded.String(), "\n")...)
}

// isPlain reports whether text stands in JSON as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
