package block

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// everyType are canonical types of every kind, nested ones included.
func everyType() []arrow.DataType {
	types := []arrow.DataType{
		arrow.Null, arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 2},
		&arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 10},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Paris"}, arrow.FixedWidthTypes.Duration_ms,
		arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
		&arrow.FixedSizeBinaryType{ByteWidth: 0}, &arrow.FixedSizeBinaryType{ByteWidth: 3}, &arrow.FixedSizeBinaryType{ByteWidth: 16},
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
	}
	for _, elem := range []arrow.DataType{arrow.Null, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String} {
		types = append(types, arrow.ListOf(elem), arrow.FixedSizeListOf(3, elem))
	}
	point := arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		arrow.Field{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	)
	return append(types,
		point, arrow.StructOf(),
		arrow.ListOf(point), arrow.FixedSizeListOf(2, point),
		arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64),
		arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.ListOf(point)),
		arrow.StructOf(arrow.Field{Name: "deep", Type: arrow.ListOf(arrow.FixedSizeListOf(2, arrow.ListOf(point))), Nullable: true}),
	)
}

// style is how values of a random array are spread.
type style int

const (
	anyBytes  style = iota // all over the type
	narrow8                // close together
	stepped                // multiples of a number
	same                   // one value
	few                    // some values
	decimals               // floats with two digits, and odd ones among them
	fractions              // floats that are multiples of a power of two, and odd ones among them
	styles
)

// randomData is data of n rows in canonical layout: offset 0, nulls with junk
// in their slots if junk is set.
func randomData(rng *rand.Rand, dt arrow.DataType, n int, how style, nullShare float64) arrow.ArrayData {
	k, _ := kindOf(dt)
	valid := make([]byte, bitmapBytes(n))
	nulls := 0
	for i := range n {
		if rng.Float64() < nullShare {
			nulls++
		} else {
			valid[i>>3] |= 1 << (i & 7)
		}
	}
	var buffers []*memory.Buffer
	if k.shape == shapeNull {
		nulls = n
	}
	if nulls > 0 && k.shape != shapeNull {
		buffers = append(buffers, memory.NewBufferBytes(valid))
	} else {
		buffers = append(buffers, nil)
	}
	var kids []arrow.ArrayData
	lengths := func() ([]byte, int) {
		offs := make([]byte, 4, 4*(n+1))
		total := 0
		for range n {
			switch {
			case how == same:
				total += 3
			case rng.IntN(4) > 0:
				total += rng.IntN(6)
			}
			offs = binary.LittleEndian.AppendUint32(offs, uint32(total))
		}
		return offs, total
	}
	switch k.shape {
	case shapeBool:
		values := make([]byte, bitmapBytes(n))
		for i := range values {
			if how == same {
				values[i] = 0xFF
			} else {
				values[i] = byte(rng.Uint32())
			}
		}
		buffers = append(buffers, memory.NewBufferBytes(values))
	case shapeFixed:
		buffers = append(buffers, memory.NewBufferBytes(randomFixed(rng, k, n, how)))
	case shapeText:
		offs, total := lengths()
		values := make([]byte, total)
		for i := range values {
			values[i] = 'a' + byte(rng.IntN(3))
			if how == same {
				values[i] = 'x'
			} else if how == anyBytes {
				values[i] = byte(rng.Uint32())
			}
		}
		if how == few {
			offs, values = make([]byte, 4), nil
			for range n {
				values = append(values, []string{"", "one", "and two", "three hundred and sixty-five days!"}[rng.IntN(4)]...)
				offs = binary.LittleEndian.AppendUint32(offs, uint32(len(values)))
			}
		}
		buffers = append(buffers, memory.NewBufferBytes(offs), memory.NewBufferBytes(values))
	case shapeList:
		offs, total := lengths()
		buffers = append(buffers, memory.NewBufferBytes(offs))
		elem := children(dt)[0]
		if dt.ID() == arrow.MAP {
			key := randomData(rng, children(elem)[0], total, how, 0)
			value := randomData(rng, children(elem)[1], total, how, nullShare)
			kids = append(kids, array.NewData(elem, total, []*memory.Buffer{nil}, []arrow.ArrayData{key, value}, 0, 0))
		} else {
			kids = append(kids, randomData(rng, elem, total, how, nullShare))
		}
	case shapeFixedList:
		kids = append(kids, randomData(rng, children(dt)[0], n*k.size, how, nullShare))
	case shapeStruct:
		for _, child := range children(dt) {
			kids = append(kids, randomData(rng, child, n, how, nullShare))
		}
	}
	return array.NewData(dt, n, buffers, kids, nulls, 0)
}

func randomFixed(rng *rand.Rand, k kind, n int, how style) []byte {
	out := make([]byte, n*k.width)
	limb := func(i int, low uint64, sign bool) {
		value := out[i*k.width : (i+1)*k.width]
		var word [32]byte
		binary.LittleEndian.PutUint64(word[:], low)
		if sign && int64(low) < 0 {
			for j := 8; j < 32; j++ {
				word[j] = 0xFF
			}
		}
		copy(value, word[:])
	}
	base := rng.Uint64() >> rng.IntN(64)
	spread := rng.IntN(40)
	distinct := [4]uint64{rng.Uint64(), rng.Uint64(), 0, math.MaxUint64}
	for i := range n {
		switch how {
		case anyBytes:
			for j := range k.width {
				out[i*k.width+j] = byte(rng.Uint32())
			}
		case narrow8:
			limb(i, base+rng.Uint64()>>(24+spread), true)
		case stepped:
			limb(i, base-uint64(rng.IntN(1<<(1+spread/2)))*1000, true)
		case same:
			limb(i, base, true)
		case few:
			limb(i, distinct[rng.IntN(4)], false)
		case decimals, fractions:
			x := float64(rng.IntN(2_000_001)-1_000_000) / 100
			if how == fractions {
				x = rng.Float64()
				if k.width == 4 {
					x = float64(rng.Float32())
				}
			}
			odd := rng.IntN(40) == 0
			switch {
			case k.order == floating && k.width == 8:
				word := math.Float64bits(x)
				if odd {
					word = oddFloats[rng.IntN(len(oddFloats))]
				}
				limb(i, word, false)
			case k.order == floating && k.width == 4:
				word := math.Float32bits(float32(x))
				if odd {
					word = []uint32{1 << 31, 0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0x7F800000, 1}[rng.IntN(6)]
				}
				limb(i, uint64(word), false)
			default:
				limb(i, uint64(int64(x*100)), true)
			}
		}
	}
	return out
}

// oddFloats are no short decimals: −0.0, NaNs with payloads, infinities,
// denormals, thirds.
var oddFloats = []uint64{
	1 << 63, 0x7FF8000000000001, 0xFFF0000000000ABC, 0x7FF0000000000000, 0xFFF0000000000000, 1,
	math.Float64bits(1.0 / 3), math.Float64bits(1e300),
}

func randomArray(rng *rand.Rand, dt arrow.DataType, n int, how style, nullShare float64) arrow.Array {
	return array.MakeFromData(randomData(rng, dt, n, how, nullShare))
}

// requireRows fails unless row i of got is row rows[i] of want, to the bit,
// and the slots of got's nulls are zero or empty.
func requireRows(t testing.TB, want arrow.Array, rows []uint32, got arrow.Array) {
	t.Helper()
	if !arrow.TypeEqual(want.DataType(), got.DataType()) {
		t.Fatalf("type %s, want %s", got.DataType(), want.DataType())
	}
	if got.Len() != len(rows) {
		t.Fatalf("%d rows, want %d", got.Len(), len(rows))
	}
	if got.Data().Offset() != 0 {
		t.Fatalf("offset %d", got.Data().Offset())
	}
	k, _ := kindOf(want.DataType())
	w, g := sourceOf(k, want.Data(), 0), sourceOf(k, got.Data(), 0)
	if err := sameRows(want.DataType(), &w, rows, &g, countTo(len(rows)), true); err != nil {
		t.Fatalf("%s: %v", want.DataType(), err)
	}
	nulls := 0
	for _, row := range rows {
		if k.shape == shapeNull || w.null(int(row)) {
			nulls++
		}
	}
	if got.NullN() != nulls {
		t.Fatalf("%s: %d nulls counted, want %d", want.DataType(), got.NullN(), nulls)
	}
}

// sameRows compares rows of want with gotRows of got. The slots of got's nulls
// must be zero or empty if strict is set.
func sameRows(dt arrow.DataType, want *source, rows []uint32, got *source, gotRows []uint32, strict bool) error {
	k, _ := kindOf(dt)
	var wantKid, gotKid []uint32
	for at, row := range rows {
		w, i := int(row), int(gotRows[at])
		null := want.null(w)
		if k.shape != shapeNull && null != got.null(i) {
			return fmt.Errorf("row %d: null %v, want %v", i, got.null(i), null)
		}
		switch k.shape {
		case shapeBool:
			if v := bit(got.values, got.off+i); null && v && strict || !null && v != bit(want.values, want.off+w) {
				return fmt.Errorf("row %d: %v", i, v)
			}
		case shapeFixed:
			v := got.values[(got.off+i)*k.width : (got.off+i+1)*k.width]
			expect := want.values[(want.off+w)*k.width : (want.off+w+1)*k.width]
			if null {
				if !strict {
					continue
				}
				expect = make([]byte, k.width)
			}
			if !bytes.Equal(v, expect) {
				return fmt.Errorf("row %d: %x, want %x", i, v, expect)
			}
		case shapeText:
			v, expect := got.text(i), want.text(w)
			if null {
				if !strict {
					continue
				}
				expect = nil
			}
			if !bytes.Equal(v, expect) {
				return fmt.Errorf("row %d: %q, want %q", i, v, expect)
			}
		case shapeList:
			gf, gl := got.span(i, i+1)
			wf, wl := want.span(w, w+1)
			if null {
				if strict && gf != gl {
					return fmt.Errorf("row %d: null list with elements", i)
				}
				continue
			}
			if gl-gf != wl-wf {
				return fmt.Errorf("row %d: %d elements, want %d", i, gl-gf, wl-wf)
			}
			for j := range gl - gf {
				gotKid = append(gotKid, uint32(gf+j))
				wantKid = append(wantKid, uint32(wf+j))
			}
		case shapeFixedList:
			for j := range k.size {
				if !null {
					gotKid = append(gotKid, uint32((got.off+i)*k.size+j))
					wantKid = append(wantKid, uint32((want.off+w)*k.size+j))
				}
			}
		case shapeStruct:
			if !null {
				gotKid = append(gotKid, gotRows[at])
				wantKid = append(wantKid, row)
			}
		}
	}
	for c, child := range children(dt) {
		if err := sameRows(child, &want.kids[c], wantKid, &got.kids[c], gotKid, strict); err != nil {
			return fmt.Errorf("child %d: %w", c, err)
		}
	}
	return nil
}

// countTo is 0 … n-1.
func countTo(n int) []uint32 {
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(i)
	}
	return rows
}
