package pushdown

import "github.com/apache/arrow-go/v18/arrow"

// clearNulls clears keep[i] where row i is null.
func clearNulls(column arrow.Array, keep []byte) {
	valid, offset, some := validity(column)
	switch {
	case !some && column.NullN() > 0:
		clear(keep)
	case some:
		for i := range keep {
			at := offset + i
			keep[i] &= valid[at>>3] >> (at & 7) & 1
		}
	}
}

// keepNulls clears keep[i] where row i is not null.
func keepNulls(column arrow.Array, keep []byte) {
	valid, offset, some := validity(column)
	switch {
	case !some && column.NullN() == 0:
		clear(keep)
	case some:
		for i := range keep {
			at := offset + i
			keep[i] &^= valid[at>>3] >> (at & 7) & 1
		}
	}
}

// validity is the column's validity bitmap if it has both nulls and values, and
// so must be looked at.
func validity(column arrow.Array) (valid []byte, offset int, some bool) {
	nulls := column.NullN()
	if nulls == 0 || nulls == column.Len() {
		return nil, 0, false
	}
	return column.NullBitmapBytes(), column.Data().Offset(), true
}
