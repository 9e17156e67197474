package run

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/fault"
)

// Widens tells whether a column of canonical type from can become one of type
// to, its stored blocks staying as they are and being widened as they are read:
//
//   - integers to wider ones (unsigned into signed ones too), to floats that
//     hold every value exactly, and to decimals with room for every digit;
//   - floats to wider floats;
//   - decimals to decimals with at least the digits before and behind the point;
//   - date32 to date64; time, timestamp (of the same zone) and duration to a
//     finer unit. A stored value that the finer unit cannot hold is an error of
//     the read: VALUE_OUT_OF_RANGE.
//
// Equal types widen too.
func Widens(from, to arrow.DataType) bool {
	if arrow.TypeEqual(from, to) {
		return true
	}
	if a, ok := numberOf(from); ok {
		if b, ok := numberOf(to); ok {
			return a.family == b.family && b.ticks%a.ticks == 0 &&
				(a.signed == b.signed && a.bits <= b.bits || !a.signed && b.signed && a.bits < b.bits)
		}
		switch to := to.(type) {
		case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
			return a.family == plainNumber && a.bits < mantissa(to)
		case arrow.DecimalType:
			return a.family == plainNumber && to.GetScale() >= 0 && to.GetPrecision()-to.GetScale() >= a.digits()
		}
		return false
	}
	switch from := from.(type) {
	case *arrow.Float16Type, *arrow.Float32Type:
		return mantissa(to) > mantissa(from)
	case arrow.DecimalType:
		to, ok := to.(arrow.DecimalType)
		return ok && to.GetScale() >= from.GetScale() &&
			to.GetPrecision()-to.GetScale() >= from.GetPrecision()-from.GetScale() &&
			to.BitWidth() >= from.BitWidth()
	}
	return false
}

// mantissa is the bits of a float type that count integers exactly; 0: no float.
func mantissa(dt arrow.DataType) int {
	switch dt.ID() {
	case arrow.FLOAT16:
		return 11
	case arrow.FLOAT32:
		return 24
	case arrow.FLOAT64:
		return 53
	}
	return 0
}

// number describes a type whose values are integers of a fixed width.
type number struct {
	family string // only numbers of one family widen into one another
	bits   int
	signed bool
	ticks  int64 // in a second, or a day of dates; 1 for plain integers
}

const plainNumber = "integer"

// digits is how many decimal digits the greatest value has.
func (n number) digits() int32 {
	most := uint64(math.MaxUint64) >> (64 - n.bits)
	if n.signed {
		most >>= 1
	}
	return int32(len(fmt.Sprint(most)))
}

func numberOf(dt arrow.DataType) (number, bool) {
	per := func(u arrow.TimeUnit) int64 { return int64(time.Second / u.Multiplier()) }
	switch t := dt.(type) {
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type:
		return number{plainNumber, t.(arrow.FixedWidthDataType).BitWidth(), true, 1}, true
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return number{plainNumber, t.(arrow.FixedWidthDataType).BitWidth(), false, 1}, true
	case *arrow.Date32Type:
		return number{"date", 32, true, 1}, true
	case *arrow.Date64Type:
		return number{"date", 64, true, 86_400_000}, true
	case *arrow.Time32Type:
		return number{"time", 32, true, per(t.Unit)}, true
	case *arrow.Time64Type:
		return number{"time", 64, true, per(t.Unit)}, true
	case *arrow.DurationType:
		return number{"duration", 64, true, per(t.Unit)}, true
	case *arrow.TimestampType:
		return number{"timestamp " + t.TimeZone, 64, true, per(t.Unit)}, true
	}
	return number{}, false
}

// widen is arr as an array of the wider type to, which the caller releases.
// arr has offset 0, as arrays of a vector have.
func widen(mem memory.Allocator, arr arrow.Array, to arrow.DataType) (arrow.Array, error) {
	if !Widens(arr.DataType(), to) {
		return nil, fmt.Errorf("BUG: a column stored as %s is read as %s", arr.DataType(), to)
	}
	n := arr.Len()
	width := to.(arrow.FixedWidthDataType).BitWidth() / 8
	values := memory.NewResizableBuffer(mem)
	defer values.Release()
	values.Resize(n * width)
	fits := true
	switch {
	case mantissa(to) > 0:
		storeFloats(values.Bytes(), loadFloats(arr), to)
	case isDecimal(to):
		storeDecimals(values.Bytes(), loadDecimals(arr, to), width)
	default:
		from, _ := numberOf(arr.DataType())
		target, _ := numberOf(to)
		numbers := loadIntegers(arr)
		fits = scaleUp(numbers, arr, target.ticks/from.ticks, target.bits)
		storeIntegers(values.Bytes(), numbers, width)
	}
	if !fits {
		return nil, fault.New(fault.FailedPrecondition, "VALUE_OUT_OF_RANGE",
			"a value stored as %s does not fit into the column's present type %s", arr.DataType(), to)
	}
	data := array.NewData(to, n, []*memory.Buffer{arr.Data().Buffers()[0], values}, nil, arr.NullN(), 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

func isDecimal(dt arrow.DataType) bool {
	_, ok := dt.(arrow.DecimalType)
	return ok
}

// view sees a buffer as values.
func view[T any](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

func valueBytes(arr arrow.Array) []byte {
	if b := arr.Data().Buffers()[1]; b != nil {
		return b.Bytes()
	}
	return nil
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

func fromIntegers[S integer](arr arrow.Array) []int64 {
	out := make([]int64, arr.Len())
	for i, v := range view[S](valueBytes(arr))[:arr.Len()] {
		out[i] = int64(v)
	}
	return out
}

// loadIntegers reads integers and times; a uint64 is reinterpreted.
func loadIntegers(arr arrow.Array) []int64 {
	from, _ := numberOf(arr.DataType())
	switch {
	case from.signed && from.bits == 8:
		return fromIntegers[int8](arr)
	case from.signed && from.bits == 16:
		return fromIntegers[int16](arr)
	case from.signed && from.bits == 32:
		return fromIntegers[int32](arr)
	case from.bits == 8:
		return fromIntegers[uint8](arr)
	case from.bits == 16:
		return fromIntegers[uint16](arr)
	case from.bits == 32:
		return fromIntegers[uint32](arr)
	}
	return fromIntegers[int64](arr)
}

// scaleUp multiplies; false if a value that is not null leaves the type's range.
func scaleUp(numbers []int64, arr arrow.Array, factor int64, bits int) bool {
	if factor == 1 {
		return true
	}
	most := int64(math.MaxInt64) >> (64 - bits) / factor
	fits := true
	for i, v := range numbers {
		if (v > most || v < -most) && arr.IsValid(i) {
			fits = false
		}
		numbers[i] = v * factor
	}
	return fits
}

func toIntegers[T integer](dst []byte, numbers []int64) {
	out := view[T](dst)
	for i, v := range numbers {
		out[i] = T(v)
	}
}

func storeIntegers(dst []byte, numbers []int64, width int) {
	switch width {
	case 1:
		toIntegers[int8](dst, numbers)
	case 2:
		toIntegers[int16](dst, numbers)
	case 4:
		toIntegers[int32](dst, numbers)
	default:
		toIntegers[int64](dst, numbers)
	}
}

func loadFloats(arr arrow.Array) []float64 {
	out := make([]float64, arr.Len())
	switch a := arr.(type) {
	case *array.Float16:
		for i := range out {
			out[i] = float64(a.Value(i).Float32())
		}
	case *array.Float32:
		for i, v := range a.Float32Values() {
			out[i] = float64(v)
		}
	default:
		for i, v := range loadIntegers(arr) {
			out[i] = float64(v)
		}
	}
	return out
}

func storeFloats(dst []byte, numbers []float64, to arrow.DataType) {
	switch to.ID() {
	case arrow.FLOAT16:
		out := view[uint16](dst)
		for i, v := range numbers {
			out[i] = float16.New(float32(v)).Uint16()
		}
	case arrow.FLOAT32:
		out := view[float32](dst)
		for i, v := range numbers {
			out[i] = float32(v)
		}
	default:
		copy(view[float64](dst), numbers)
	}
}

// loadDecimals reads integers and decimals as scaled integers of to's scale.
func loadDecimals(arr arrow.Array, to arrow.DataType) []decimal256.Num {
	out := make([]decimal256.Num, arr.Len())
	up := to.(arrow.DecimalType).GetScale()
	if from, ok := arr.DataType().(arrow.DecimalType); ok {
		up -= from.GetScale()
	}
	for i := range out {
		if arr.IsNull(i) { // whatever lies there may not fit
			continue
		}
		switch a := arr.(type) {
		case *array.Decimal32:
			out[i] = decimal256.FromI64(int64(a.Value(i)))
		case *array.Decimal64:
			out[i] = decimal256.FromI64(int64(a.Value(i)))
		case *array.Decimal128:
			out[i] = decimal256.FromDecimal128(a.Value(i))
		case *array.Decimal256:
			out[i] = a.Value(i)
		case *array.Uint64:
			out[i] = decimal256.FromU64(a.Value(i))
		}
	}
	if !isDecimal(arr.DataType()) && arr.DataType().ID() != arrow.UINT64 {
		for i, v := range loadIntegers(arr) {
			out[i] = decimal256.FromI64(v)
		}
	}
	if up > 0 {
		for i := range out {
			out[i] = out[i].IncreaseScaleBy(up)
		}
	}
	return out
}

// storeDecimals keeps the low bytes: Widens made sure that the rest is sign.
func storeDecimals(dst []byte, numbers []decimal256.Num, width int) {
	switch width {
	case 4, 8:
		low := make([]int64, len(numbers))
		for i, v := range numbers {
			low[i] = int64(v.LowBits())
		}
		storeIntegers(dst, low, width)
	case 16:
		out := view[[2]uint64](dst)
		for i, v := range numbers {
			words := v.Array()
			out[i] = [2]uint64{words[0], words[1]}
		}
	default:
		out := view[[4]uint64](dst)
		for i, v := range numbers {
			out[i] = v.Array()
		}
	}
}
