package key

import (
	"encoding/hex"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// String is an encoded key as text for messages, its columns joined by ", ":
// strings quoted, binary in hex, times in ISO 8601. Bytes that are no key of
// these types are given in hex.
func String(types []arrow.DataType, key []byte) string {
	keys := &Keys{}
	keys.Append(key)
	columns, err := Decode(memory.DefaultAllocator, types, keys)
	if err != nil {
		return "0x" + hex.EncodeToString(key)
	}
	texts := make([]string, len(columns))
	for i, column := range columns {
		texts[i] = text(column)
		column.Release()
	}
	return strings.Join(texts, ", ")
}

// text is the only value of a decoded column.
func text(arr arrow.Array) string {
	switch arr := arr.(type) {
	case *array.String:
		return strconv.Quote(arr.Value(0))
	case *array.Binary:
		return "0x" + hex.EncodeToString(arr.Value(0))
	case *array.FixedSizeBinary:
		return "0x" + hex.EncodeToString(arr.Value(0))
	case *array.Date32:
		return instant(int64(arr.Value(0)), 86400, 1, time.DateOnly)
	case *array.Date64:
		if ms := int64(arr.Value(0)); ms%86_400_000 != 0 {
			return instant(ms, 1, 1000, "2006-01-02T15:04:05.999")
		}
		return instant(int64(arr.Value(0)), 1, 1000, time.DateOnly)
	case *array.Timestamp:
		layout := "2006-01-02T15:04:05.999999999"
		dt := arr.DataType().(*arrow.TimestampType)
		if dt.TimeZone != "" {
			layout += "Z"
		}
		return instant(int64(arr.Value(0)), 1, perSecond(dt.Unit), layout)
	case *array.Time32:
		return instant(int64(arr.Value(0)), 1, perSecond(arr.DataType().(*arrow.Time32Type).Unit), "15:04:05.999")
	case *array.Time64:
		return instant(int64(arr.Value(0)), 1, perSecond(arr.DataType().(*arrow.Time64Type).Unit), "15:04:05.999999999")
	case *array.Duration:
		return strconv.FormatInt(int64(arr.Value(0)), 10) + arr.DataType().(*arrow.DurationType).Unit.String()
	}
	if dt, ok := arr.DataType().(arrow.DecimalType); ok {
		return decimal(arr.Data().Buffers()[1].Bytes(), dt.GetScale())
	}
	return arr.ValueStr(0)
}

func perSecond(unit arrow.TimeUnit) int64 { return int64(time.Second / unit.Multiplier()) }

// instant formats value × seconds / fraction seconds since 1970, as its number
// where the year has more than four digits.
func instant(value, seconds, fraction int64, layout string) string {
	whole, rest := value/fraction, value%fraction
	if rest < 0 {
		whole, rest = whole-1, rest+fraction
	}
	const year1, year9999 = -62_135_596_800, 253_402_300_799
	if whole > year9999 || whole < year1/seconds || whole*seconds < year1 || whole*seconds > year9999 {
		return strconv.FormatInt(value, 10)
	}
	return time.Unix(whole*seconds, rest*(int64(time.Second)/fraction)).UTC().Format(layout)
}

// decimal formats a little-endian two's complement integer × 10^-scale.
func decimal(little []byte, scale int32) string {
	big128 := slices.Clone(little)
	slices.Reverse(big128)
	number := new(big.Int).SetBytes(big128)
	if big128[0]&0x80 != 0 {
		number.Sub(number, new(big.Int).Lsh(big.NewInt(1), uint(8*len(big128))))
	}
	sign, digits := "", number.String()
	if number.Sign() < 0 {
		sign, digits = "-", digits[1:]
	}
	switch {
	case scale == 0:
	case scale < 0 || scale > 100:
		digits += "e" + strconv.Itoa(-int(scale))
	default:
		if missing := int(scale) + 1 - len(digits); missing > 0 {
			digits = strings.Repeat("0", missing) + digits
		}
		point := len(digits) - int(scale)
		digits = digits[:point] + "." + digits[point:]
	}
	return sign + digits
}
