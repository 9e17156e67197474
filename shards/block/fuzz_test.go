package block

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
)

// seal writes the right checksum into the last bytes of a block.
func seal(data []byte) []byte {
	if len(data) >= checksumBytes {
		end := len(data) - checksumBytes
		binary.LittleEndian.PutUint64(data[end:], xxhash.Sum64(data[:end]))
	}
	return data
}

// readAll decodes every column of damaged bytes as a type, in all ways. What
// comes back is either rows or ErrCorrupt, and arrow can read the rows.
func readAll(t *testing.T, data []byte, dt arrow.DataType) {
	r, err := Open(data)
	if err != nil {
		require.ErrorIs(t, err, ErrCorrupt)
		return
	}
	v := NewVector(memory.DefaultAllocator, dt)
	defer v.Release()
	n := r.Rows()
	for _, id := range r.Columns() {
		v.AppendNulls(3)
		reads := []func() error{
			func() error { return r.Append(v, id, 0, n) },
			func() error { return r.Append(v, id, n/3, n-n/3) },
			func() error { return r.AppendRows(v, id, countTo(n)) },
			func() error { return r.AppendRows(v, id, []uint32{uint32(n / 2)}) },
		}
		for i, read := range reads {
			if i == 3 && n == 0 {
				continue
			}
			before, bytes := v.Len(), v.Bytes()
			if err := read(); err != nil {
				if !errors.Is(err, ErrCorrupt) || v.Len() != before || v.Bytes() != bytes {
					t.Fatalf("%v; %d rows of %d bytes, before %d of %d", err, v.Len(), v.Bytes(), before, bytes)
				}
			}
		}
		arr := v.NewArray()
		requireSound(t, arr)
		arr.Release()
		codes, ok, err := r.Codes(v, nil, id, n/3, n)
		if err != nil && !errors.Is(err, ErrCorrupt) || !ok && v.Len() != 0 {
			t.Fatalf("codes: %v; %d rows", err, v.Len())
		}
		list := v.NewArray()
		requireSound(t, list)
		for _, code := range codes {
			if ok && int(code) >= list.Len() {
				t.Fatalf("code %d in a list of %d", code, list.Len())
			}
		}
		list.Release()
	}
}

// FuzzReader reads bytes that nobody encoded, with a right checksum, since
// that is checked first and would keep the fuzzer out.
func FuzzReader(f *testing.F) {
	types := everyType()
	rng := rand.New(rand.NewPCG(3, 4))
	for i, dt := range types {
		for how := range styles {
			arr := randomArray(rng, dt, 40, how, 0.1*float64(int(how)%2))
			data, err := NewEncoder().Encode(nil, 40, []uint32{1, 9}, []arrow.Array{arr, arr})
			require.NoError(f, err)
			f.Add(data, uint8(i), true)
			arr.Release()
		}
	}
	f.Add([]byte{}, uint8(0), false)
	f.Fuzz(func(t *testing.T, data []byte, dt uint8, sealed bool) {
		data = append([]byte{}, data...)
		if sealed {
			seal(data)
		}
		readAll(t, data, types[int(dt)%len(types)])
	})
}

// TestReaderSurvivesDamage flips and cuts bytes of blocks of every kind.
func TestReaderSurvivesDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, dt := range everyType() {
		for how := range styles {
			arr := randomArray(rng, dt, 70, how, 0.1*float64(int(how)%2))
			whole := encode(t, 70, []uint32{5}, arr)
			for range 12 {
				data := append([]byte{}, whole...)
				for range 1 + rng.IntN(3) {
					data[headerBytes+rng.IntN(len(data)-headerBytes-checksumBytes)] = byte(rng.Uint32() >> rng.IntN(24))
				}
				readAll(t, seal(data), dt)
			}
			for range 3 { // the chunk itself is shorter than it should be
				size := 2 + rng.IntN(len(whole)-headerBytes-entryBytes-checksumBytes)
				data := append([]byte{}, whole[:headerBytes+entryBytes+min(size, len(whole)-headerBytes-entryBytes-checksumBytes)]...)
				binary.LittleEndian.PutUint32(data[headerBytes+4:], uint32(len(data)))
				readAll(t, seal(append(data, make([]byte, checksumBytes)...)), dt)
			}
			arr.Release()
		}
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	arr := randomArray(rand.New(rand.NewPCG(1, 1)), arrow.PrimitiveTypes.Int64, 20, narrow8, 0)
	defer arr.Release()
	whole := encode(t, 20, []uint32{1}, arr)
	for i := range len(whole) * 8 {
		data := append([]byte{}, whole...)
		data[i/8] ^= 1 << (i % 8)
		_, err := Open(data)
		require.ErrorIs(t, err, ErrCorrupt, "bit %d", i)
	}
	for n := range whole {
		_, err := Open(whole[:n])
		require.ErrorIs(t, err, ErrCorrupt, "cut to %d bytes", n)
	}
}

// TestReopenDoesNotLookAtTheChecksum, and gives what Open gives.
func TestReopenDoesNotLookAtTheChecksum(t *testing.T) {
	arr := randomArray(rand.New(rand.NewPCG(1, 2)), arrow.BinaryTypes.String, 20, narrow8, 0)
	defer arr.Release()
	whole := encode(t, 20, []uint32{1}, arr)
	opened, err := Open(whole)
	require.NoError(t, err)
	again, err := Reopen(whole)
	require.NoError(t, err)
	require.Equal(t, opened, again)
	whole[len(whole)-1] ^= 1
	_, err = Open(whole)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = Reopen(whole)
	require.NoError(t, err)
	_, err = Reopen(whole[:len(whole)/2])
	require.ErrorIs(t, err, ErrCorrupt, "its structure is looked at")
}

// FuzzRoundTrip builds an array of any type from bytes and expects it back.
func FuzzRoundTrip(f *testing.F) {
	types := everyType()
	for i := range types {
		f.Add(uint8(i), uint64(i), uint16(100), uint8(i), uint8(20))
	}
	f.Fuzz(func(t *testing.T, dt uint8, seed uint64, rows uint16, how, nulls uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		typ := types[int(dt)%len(types)]
		n := int(rows) % 3000
		if len(children(typ)) > 0 {
			n %= 200
		}
		arr := randomArray(rng, typ, n, style(how)%styles, float64(nulls)/255)
		defer arr.Release()
		cut := array.NewSlice(arr, int64(n/9), int64(n))
		defer cut.Release()
		n = cut.Len()
		r, err := Open(encode(t, n, []uint32{1}, cut))
		require.NoError(t, err)
		v := NewVector(memory.DefaultAllocator, typ)
		require.NoError(t, r.Append(v, 1, 0, n))
		picks := pickSome(rng, n)
		require.NoError(t, r.AppendRows(v, 1, picks))
		got := v.NewArray()
		defer got.Release()
		requireRows(t, cut, append(countTo(n), picks...), got)
	})
}
