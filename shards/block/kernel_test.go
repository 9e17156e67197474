package block

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func TestPackedNumbersComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for width := 0; width <= 64; width++ {
		if !fits(width) {
			continue
		}
		for _, step := range []uint64{1, 3, 1000, 1 << 20} {
			for _, n := range []int{1, 7, 8, 9, 64, 131} {
				base := rng.Uint64()
				values := make([]uint64, n)
				for i := range values {
					quotient := rng.Uint64() & packMask(width)
					if step > 1 && width > 30 {
						quotient &= packMask(30) // quotients of a step fit in what is left
					}
					values[i] = base + quotient*step
				}
				bits := pack(nil, values, base, step, width)
				require.Len(t, bits, packedBytes(n, width))
				bits = append(bits, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5)
				for first := range n {
					got := make([]uint64, n-first)
					unpack(got, bits, first, width, base, step)
					require.Equal(t, values[first:], got, "%d bits from %d, step %d", width, first, step)
				}
				rows := pickSome(rng, n)
				got := make([]uint64, len(rows))
				unpackRows(got, bits, rows, width, base, step)
				for i, row := range rows {
					require.Equal(t, values[row], got[i])
				}
				wide := make([]uint64, 4*n)
				unpackWide(wide, 4, bits, 0, width, base, step)
				for i, value := range values {
					extend := uint64(int64(value) >> 63)
					require.Equal(t, []uint64{value, extend, extend, extend}, wide[4*i:4*i+4])
				}
			}
		}
	}
}

func TestBitsAreCopiedAtAnyOffset(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src := make([]byte, 40)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for range 5000 {
		soff := rng.IntN(100)
		n := rng.IntN(len(src)*8 - soff + 1)
		doff := rng.IntN(100)
		dst := make([]byte, bitmapBytes(doff+n))
		for i := range dst {
			dst[i] = 0xA5
		}
		copyBits(dst, doff, src, soff, n)
		zeros := 0
		for i := range n {
			require.Equal(t, bit(src, soff+i), bit(dst, doff+i))
			if !bit(src, soff+i) {
				zeros++
			}
		}
		for i := range doff {
			require.Equal(t, 0xA5>>(i&7)&1 == 1, bit(dst, i), "bits before stay")
		}
		if n > 0 && (doff+n)&7 != 0 {
			require.Zero(t, dst[len(dst)-1]>>((doff+n)&7), "bits behind are zero")
		}
		require.Equal(t, zeros, countZeros(src, soff, n))
		seen := 0
		eachZero(src, soff, n, func(i int) {
			require.False(t, bit(src, soff+i))
			seen++
		})
		require.Equal(t, zeros, seen)
	}
}

// TestDecimalsAreScaledToTheBit: every float that was read from a decimal of up
// to 15 digits is its integer over the power of ten, and nothing else is.
func TestDecimalsAreScaledToTheBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for exponent, power := range powersOfTen {
		for range 2000 {
			i := rng.Int64N(1_000_000_000_000_000) - 500_000_000_000_000
			x := float64(i) / power
			number, ok := scale(x, power, false)
			require.True(t, ok, "%d / 1e%d", i, exponent)
			require.Equal(t, i, number)
		}
		for _, odd := range oddFloats {
			_, ok := scale(math.Float64frombits(odd), power, false)
			require.False(t, ok, "%x", odd)
		}
	}
}

// TestFractionsAreScaledToTheBit: multiples of a power of two are integers over
// it, and nothing else is.
func TestFractionsAreScaledToTheBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for exponent := binaryBase; exponent <= binaryBase+maxBinary; exponent++ {
		power, isBinary := powerOf(exponent)
		require.True(t, isBinary)
		for range 500 {
			i := int64(rng.Uint64()>>11) - 1<<52
			number, ok := scaleBinary(float64(i)/power, power)
			require.True(t, ok)
			require.Equal(t, i, number)
			_, ok = scaleBinary((float64(i>>3)+0.5)/power, power)
			require.False(t, ok)
		}
		for _, odd := range []uint64{1 << 63, 0x7FF8000000000001, 0xFFF0000000000ABC, 0x7FF0000000000000, 0xFFF0000000000000, 1, math.Float64bits(1e300)} {
			_, ok := scaleBinary(math.Float64frombits(odd), power)
			require.False(t, ok, "%x", odd)
		}
	}
}

// Random floats of the usual generators take 53 bits, not 64.
func TestRandomFloatsSave(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	values := make([]float64, 2048)
	for i := range values {
		values[i] = rng.Float64()
	}
	b := array.NewFloat64Builder(memory.DefaultAllocator)
	b.AppendValues(values, nil)
	arr := b.NewArray()
	defer arr.Release()
	r, err := Open(encode(t, len(values), []uint32{1}, arr))
	require.NoError(t, err)
	require.Equal(t, byte(encScaled), r.chunk(0)[1])
	require.Less(t, r.ChunkBytes(1), 2048*7)
}
