package ingest

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// matchDecimal: a decimal becomes one with at least as many digits before and
// behind the point.
func matchDecimal(from arrow.DecimalType, to arrow.DataType) (*conversion, error) {
	into, ok := to.(arrow.DecimalType)
	if !ok || into.GetScale() < from.GetScale() ||
		into.GetPrecision()-into.GetScale() < from.GetPrecision()-from.GetScale() {
		return nil, errMismatch
	}
	if into.BitWidth() == from.BitWidth() && into.GetScale() == from.GetScale() {
		return &conversion{to: to, step: retyped}, nil
	}
	return &conversion{to: to, step: rescaled}, nil
}

// rescale multiplies by a power of ten and changes the width. A value with more
// digits than its own type allows is a *valueError: it might not fit.
func rescale(mem memory.Allocator, arr arrow.Array, to arrow.DecimalType) (arrow.Array, error) {
	from := arr.DataType().(arrow.DecimalType)
	bad := -1
	out := remade(mem, arr, to, to.BitWidth()/8, func(in, out []byte) {
		if to.BitWidth() == 256 {
			bad = rescale256(arr, from, to, in, out)
		} else {
			bad = rescale128(arr, from, to, in, out)
		}
	})
	if bad < 0 {
		return out, nil
	}
	out.Release()
	return nil, &valueError{row: bad, value: valueText(arr, bad),
		reason: fmt.Sprintf("has more than the %d digits of %s", from.GetPrecision(), from)}
}

// The bounds are compared on both sides: the least number has no absolute value.
func fits128(value decimal128.Num, digits int32) bool {
	bound := decimal128.GetScaleMultiplier(int(digits))
	return value.Less(bound) && bound.Negate().Less(value)
}

func fits256(value decimal256.Num, digits int32) bool {
	bound := decimal256.GetScaleMultiplier(int(digits))
	return value.Less(bound) && bound.Negate().Less(value)
}

func rescale128(arr arrow.Array, from, to arrow.DecimalType, in, out []byte) (bad int) {
	more := to.GetScale() - from.GetScale()
	for i := range arr.Len() {
		value := decimal128.Num{}
		switch from.BitWidth() {
		case 32:
			value = decimal128.FromI64(int64(arrow.GetData[int32](in)[i]))
		case 64:
			value = decimal128.FromI64(arrow.GetData[int64](in)[i])
		case 128:
			value = arrow.GetData[decimal128.Num](in)[i]
		default:
			wide := arrow.GetData[decimal256.Num](in)[i]
			if arr.IsValid(i) && !fits256(wide, from.GetPrecision()) {
				return i
			}
			words := wide.Array() // from the least on; the upper two repeat the sign
			value = decimal128.New(int64(words[1]), words[0])
		}
		if arr.IsNull(i) {
			value = decimal128.Num{}
		} else if !fits128(value, from.GetPrecision()) {
			return i
		}
		if more > 0 {
			value = value.IncreaseScaleBy(more)
		}
		switch to.BitWidth() {
		case 32:
			arrow.GetData[int32](out)[i] = int32(value.LowBits())
		case 64:
			arrow.GetData[int64](out)[i] = int64(value.LowBits())
		default:
			arrow.GetData[decimal128.Num](out)[i] = value
		}
	}
	return -1
}

func rescale256(arr arrow.Array, from, to arrow.DecimalType, in, out []byte) (bad int) {
	more := to.GetScale() - from.GetScale()
	values := arrow.GetData[decimal256.Num](out)
	for i := range arr.Len() {
		value := decimal256.Num{}
		switch from.BitWidth() {
		case 32:
			value = decimal256.FromI64(int64(arrow.GetData[int32](in)[i]))
		case 64:
			value = decimal256.FromI64(arrow.GetData[int64](in)[i])
		case 128:
			value = decimal256.FromDecimal128(arrow.GetData[decimal128.Num](in)[i])
		default:
			value = arrow.GetData[decimal256.Num](in)[i]
		}
		if arr.IsNull(i) {
			value = decimal256.Num{}
		} else if !fits256(value, from.GetPrecision()) {
			return i
		}
		if more > 0 {
			value = value.IncreaseScaleBy(more)
		}
		values[i] = value
	}
	return -1
}
