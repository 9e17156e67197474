package canonical

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/sheaf-db/sheaf/fault"
	"github.com/sheaf-db/sheaf/limits"
)

func buffer32(values ...int) *memory.Buffer {
	return memory.NewBufferBytes(integers(false, values))
}

func buffer64(values ...int) *memory.Buffer { return memory.NewBufferBytes(integers(true, values)) }

func text(s string) *memory.Buffer { return memory.NewBufferBytes([]byte(s)) }

func view(length, index, at int) *memory.Buffer { return buffer32(length, 0, index, at) }

type hostile struct {
	name   string
	dt     arrow.DataType
	rows   int
	offset int
	nulls  int
	// all buffers, children, dictionary as in array.NewData
	buffers    []*memory.Buffer
	children   []arrow.ArrayData
	dictionary arrow.ArrayData
	says       string // part of the error, "" if the array is sound
}

func (h hostile) data() arrow.ArrayData {
	data := array.NewData(h.dt, h.rows, h.buffers, h.children, h.nulls, h.offset)
	data.SetDictionary(h.dictionary)
	return data
}

func numbers(dt arrow.DataType, rows int, values *memory.Buffer) arrow.ArrayData {
	return array.NewData(dt, rows, []*memory.Buffer{nil, values}, nil, 0, 0)
}

var (
	int32s = arrow.PrimitiveTypes.Int32
	lists3 = []arrow.ArrayData{numbers(int32s, 3, buffer32(1, 2, 3))}
	dict   = &arrow.DictionaryType{IndexType: int32s, ValueType: int32s}
	dictU  = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint64, ValueType: int32s}
	ree    = arrow.RunEndEncodedOf(int32s, int32s)
	pair   = arrow.MapOf(int32s, int32s)
	noBits = memory.NewBufferBytes(nil)
)

func runs(ends ...int) []arrow.ArrayData {
	return []arrow.ArrayData{numbers(int32s, len(ends), buffer32(ends...)), numbers(int32s, len(ends), buffer32(ends...))}
}

func entries(nulls ...byte) arrow.ArrayData {
	keys := array.NewData(int32s, 3, []*memory.Buffer{memory.NewBufferBytes(nulls), buffer32(1, 2, 3)}, nil, 0, 0)
	return array.NewData(pair.Elem(), 3, []*memory.Buffer{nil}, []arrow.ArrayData{keys, lists3[0]}, 0, 0)
}

var hostiles = []hostile{
	{name: "string offsets fall over an empty buffer", dt: arrow.BinaryTypes.String, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 5, 0), text("")}, says: "run backwards at row 1, from 5 to 0"},
	{name: "last string offset at the end of all numbers", dt: arrow.BinaryTypes.String, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 5, math.MaxInt32), text("hello")}, says: "end at 2147483647, behind the 5"},
	{name: "string without data buffer", dt: arrow.BinaryTypes.String, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1), nil}, says: "behind the 0"},
	{name: "negative string offset", dt: arrow.BinaryTypes.Binary, rows: 1, buffers: []*memory.Buffer{nil, buffer32(-1, 5), text("hello")}, says: "begin at -1"},
	{name: "too few offsets", dt: arrow.BinaryTypes.String, rows: 3, buffers: []*memory.Buffer{nil, buffer32(0, 1, 2), text("hello")}, says: "too few for 4"},
	{name: "no offsets", dt: arrow.BinaryTypes.String, rows: 1, buffers: []*memory.Buffer{nil, nil, nil}, says: "too few"},
	{name: "offsets of no rows may be missing", dt: arrow.BinaryTypes.String, buffers: []*memory.Buffer{nil, nil, nil}},
	{name: "slice behind the offsets", dt: arrow.BinaryTypes.String, rows: 1, offset: 2, buffers: []*memory.Buffer{nil, buffer32(0, 1, 2), text("hello")}, says: "too few for 4"},
	{name: "large offset beyond 32 bits", dt: arrow.BinaryTypes.LargeString, rows: 1, buffers: []*memory.Buffer{nil, buffer64(0, 1<<40), text("hello")}, says: "behind the 5"},
	{name: "large offset that is negative", dt: arrow.BinaryTypes.LargeBinary, rows: 2, buffers: []*memory.Buffer{nil, buffer64(0, -1, 3), text("hello")}, says: "run backwards"},
	{name: "string that is not UTF-8", dt: arrow.BinaryTypes.String, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 2, 5), text("okok\xff")}, says: "row 1 of utf8 is not UTF-8"},
	{name: "string cut inside a character", dt: arrow.BinaryTypes.String, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 1, 2), text("é")}, says: "row 0 of utf8 is not UTF-8"},
	{name: "string that ends inside a character", dt: arrow.BinaryTypes.LargeString, rows: 1, buffers: []*memory.Buffer{nil, buffer64(0, 1), text("é")}, says: "row 0 of large_utf8 is not UTF-8"},
	{name: "slice that begins inside a character", dt: arrow.BinaryTypes.String, rows: 1, offset: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1, 3), text("éa")}, says: "row 0 of utf8 is not UTF-8"},
	{name: "text beside a slice may be anything", dt: arrow.BinaryTypes.String, rows: 1, offset: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1, 3, 4), text("\xffé\xff")}},
	{name: "text under a null may be anything", dt: arrow.BinaryTypes.String, rows: 2, nulls: 1, buffers: []*memory.Buffer{text("\x02"), buffer32(0, 1, 3), text("\xffé")}},
	{name: "binary that is not UTF-8", dt: arrow.BinaryTypes.Binary, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1), text("\xff")}},
	{name: "short view that is not UTF-8", dt: arrow.BinaryTypes.StringView, rows: 1, buffers: []*memory.Buffer{nil, memory.NewBufferBytes([]byte("\x01\x00\x00\x00\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))}, says: "row 0 of string_view is not UTF-8"},
	{name: "long view that is not UTF-8", dt: arrow.BinaryTypes.StringView, rows: 1, buffers: []*memory.Buffer{nil, view(13, 0, 0), text("0123456789ab\xff")}, says: "row 0 of string_view is not UTF-8"},
	{name: "binary view that is not UTF-8", dt: arrow.BinaryTypes.BinaryView, rows: 1, buffers: []*memory.Buffer{nil, view(13, 0, 0), text("0123456789ab\xff")}},

	{name: "values too short", dt: int32s, rows: 4, buffers: []*memory.Buffer{nil, buffer32(1, 2, 3)}, says: "too few for 4"},
	{name: "values missing", dt: int32s, rows: 1, buffers: []*memory.Buffer{nil, nil}, says: "too few"},
	{name: "one buffer missing", dt: int32s, rows: 1, buffers: []*memory.Buffer{nil}, says: "1 buffers instead of 2"},
	{name: "one buffer too many", dt: int32s, rows: 1, buffers: []*memory.Buffer{nil, buffer32(1), nil}, says: "3 buffers instead of 2"},
	{name: "bits too short", dt: arrow.FixedWidthTypes.Boolean, rows: 9, buffers: []*memory.Buffer{nil, text("x")}, says: "too few for 9"},
	{name: "validity too short", dt: int32s, rows: 9, nulls: 1, buffers: []*memory.Buffer{text("x"), buffer32(1, 2, 3, 4, 5, 6, 7, 8, 9)}, says: "validity bitmap of int32"},
	{name: "nulls without validity", dt: int32s, rows: 1, nulls: 1, buffers: []*memory.Buffer{noBits, buffer32(1)}, says: "no validity bitmap"},
	{name: "unknown null count without validity", dt: int32s, rows: 1, nulls: -1, buffers: []*memory.Buffer{nil, buffer32(1)}},
	{name: "null count that is wrong", dt: int32s, rows: 2, nulls: 0, buffers: []*memory.Buffer{text("\x01"), buffer32(1, 2)}},
	{name: "huge length", dt: int32s, rows: math.MaxInt64, buffers: []*memory.Buffer{nil, buffer32(1)}, says: "the limit is 2147483647"},
	{name: "huge length without any bytes", dt: arrow.Null, rows: math.MaxInt64, says: "the limit is 2147483647"},
	{name: "negative length", dt: int32s, rows: -1, buffers: []*memory.Buffer{nil, buffer32(1)}, says: "an array of -1 rows"},
	{name: "negative offset", dt: int32s, rows: 1, offset: -1, buffers: []*memory.Buffer{nil, buffer32(1)}, says: "at offset -1"},
	{name: "huge offset", dt: int32s, rows: 1, offset: math.MaxInt64, buffers: []*memory.Buffer{nil, buffer32(1)}, says: "at offset"},
	{name: "fixed width so large that the product overflows", dt: &arrow.FixedSizeBinaryType{ByteWidth: math.MaxInt64 / 2}, rows: 1 << 30, buffers: []*memory.Buffer{nil, text("x")}, says: "the limit of a row"},
	{name: "fixed width of too many rows", dt: &arrow.FixedSizeBinaryType{ByteWidth: 16 << 20}, rows: 1 << 30, buffers: []*memory.Buffer{nil, text("x")}, says: "too few"},
	{name: "negative fixed width", dt: &arrow.FixedSizeBinaryType{ByteWidth: -1}, rows: 1, buffers: []*memory.Buffer{nil, text("x")}, says: "negative"},

	{name: "view of negative length", dt: arrow.BinaryTypes.StringView, rows: 1, buffers: []*memory.Buffer{nil, view(-1, 0, 0), text("x")}, says: "has length -1"},
	{name: "view into a buffer that is not there", dt: arrow.BinaryTypes.StringView, rows: 1, buffers: []*memory.Buffer{nil, view(13, 1, 0), text("0123456789abc")}, says: "buffer 1 of 1"},
	{name: "view into a negative buffer", dt: arrow.BinaryTypes.StringView, rows: 1, buffers: []*memory.Buffer{nil, view(13, -1, 0), text("0123456789abc")}, says: "buffer -1"},
	{name: "view that ends behind its buffer", dt: arrow.BinaryTypes.BinaryView, rows: 1, buffers: []*memory.Buffer{nil, view(13, 0, 1), text("0123456789abc")}, says: "13 bytes at 1 of 13"},
	{name: "view at a negative place", dt: arrow.BinaryTypes.BinaryView, rows: 1, buffers: []*memory.Buffer{nil, view(13, 0, -1), text("0123456789abc")}, says: "at -1"},
	{name: "view under a null", dt: arrow.BinaryTypes.BinaryView, rows: 1, nulls: 1, buffers: []*memory.Buffer{text("\x00"), view(-13, 7, -1)}},
	{name: "short view under a null", dt: arrow.BinaryTypes.BinaryView, rows: 1, nulls: 1, buffers: []*memory.Buffer{text("\x00"), view(12, 7, -1)}},

	{name: "list offsets behind the items", dt: arrow.ListOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 4)}, children: lists3, says: "behind the 3"},
	{name: "list offsets fall", dt: arrow.LargeListOf(int32s), rows: 2, buffers: []*memory.Buffer{nil, buffer64(0, 3, 2)}, children: lists3, says: "run backwards"},
	{name: "list without child", dt: arrow.ListOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1)}, says: "0 children instead of 1"},
	{name: "list with a nil child", dt: arrow.ListOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1)}, children: []arrow.ArrayData{nil}, says: "without its items"},
	{name: "list of another type", dt: arrow.ListOf(arrow.BinaryTypes.String), rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1)}, children: lists3, says: "items: an array of int32 where utf8 belongs"},
	{name: "items too short", dt: arrow.ListOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 1)}, children: []arrow.ArrayData{numbers(int32s, 9, buffer32(1))}, says: "items: the values of int32"},
	{name: "list view behind the items", dt: arrow.ListViewOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(2), buffer32(2)}, children: lists3, says: "2 at 2 of 3"},
	{name: "list view at a negative place", dt: arrow.ListViewOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer32(-1), buffer32(2)}, children: lists3, says: "at -1 of 3"},
	{name: "list view whose end overflows", dt: arrow.LargeListViewOf(int32s), rows: 1, buffers: []*memory.Buffer{nil, buffer64(1), buffer64(math.MaxInt64)}, children: lists3, says: "at 1 of 3"},
	{name: "list view under a null", dt: arrow.ListViewOf(int32s), rows: 1, nulls: 1, buffers: []*memory.Buffer{text("\x00"), buffer32(-1), buffer32(77)}, children: lists3},
	{name: "sizes too few", dt: arrow.ListViewOf(int32s), rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 0), buffer32(1)}, children: lists3, says: "sizes"},
	{name: "fixed-size list with too few items", dt: arrow.FixedSizeListOf(2, int32s), rows: 2, buffers: []*memory.Buffer{nil}, children: lists3, says: "3 items are too few for 2 rows"},
	{name: "struct with a short field", dt: arrow.StructOf(arrow.Field{Name: "a", Type: int32s}), rows: 4, buffers: []*memory.Buffer{nil}, children: lists3, says: `field "a" of a struct has 3 rows`},
	{name: "struct with too many fields", dt: arrow.StructOf(), rows: 3, buffers: []*memory.Buffer{nil}, children: lists3, says: "1 children instead of 0"},
	{name: "map with a null key", dt: pair, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 3)}, children: []arrow.ArrayData{entries(0b101)}, says: "null entry or key"},
	{name: "map", dt: pair, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0, 3)}, children: []arrow.ArrayData{entries(0b111)}},

	{name: "index behind the dictionary", dt: dict, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, 3)}, dictionary: lists3[0], says: "row 1 of dictionary<values=int32, indices=int32, ordered=false> has index 3 into a dictionary of 3"},
	{name: "negative index", dt: dict, rows: 2, buffers: []*memory.Buffer{nil, buffer32(0, -1)}, dictionary: lists3[0], says: "has index -1"},
	{name: "index beyond int64", dt: dictU, rows: 1, buffers: []*memory.Buffer{nil, buffer64(math.MinInt64)}, dictionary: lists3[0], says: "has index 9223372036854775808"},
	{name: "index under a null", dt: dict, rows: 2, nulls: 1, buffers: []*memory.Buffer{text("\x01"), buffer32(0, -7)}, dictionary: lists3[0]},
	{name: "index without a dictionary", dt: dict, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0)}, says: "a dictionary of 0 values"},
	{name: "only nulls without a dictionary", dt: dict, rows: 1, nulls: 1, buffers: []*memory.Buffer{text("\x00"), buffer32(0)}},
	{name: "dictionary of rubbish", dt: dict, rows: 1, buffers: []*memory.Buffer{nil, buffer32(0)}, dictionary: numbers(int32s, 9, nil), says: "dictionary: the values"},

	{name: "run ends that stand still", dt: ree, rows: 2, buffers: []*memory.Buffer{nil}, children: runs(1, 1, 2), says: "do not rise at run 1"},
	{name: "run end of zero", dt: ree, rows: 2, buffers: []*memory.Buffer{nil}, children: runs(0, 2), says: "do not rise at run 0"},
	{name: "runs too short", dt: ree, rows: 3, buffers: []*memory.Buffer{nil}, children: runs(1, 2), says: "end at row 2 of 3"},
	{name: "slice behind the runs", dt: ree, rows: 1, offset: 2, buffers: []*memory.Buffer{nil}, children: runs(1, 2), says: "end at row 2 of 3"},
	{name: "no runs", dt: ree, rows: 1, buffers: []*memory.Buffer{nil}, children: runs(), says: "end at row 0 of 1"},
	{name: "fewer values than runs", dt: ree, rows: 2, buffers: []*memory.Buffer{nil}, children: []arrow.ArrayData{runs(1, 2)[0], runs(1)[1]}, says: "2 run ends but 1 values"},
	{name: "run end that is null", dt: ree, rows: 1, buffers: []*memory.Buffer{nil}, children: []arrow.ArrayData{
		array.NewData(int32s, 1, []*memory.Buffer{text("\x00"), buffer32(1)}, nil, 1, 0), runs(1)[1]}, says: "null run end"},
}

func TestHostileArraysAreRefused(t *testing.T) {
	for _, h := range hostiles {
		t.Run(h.name, func(t *testing.T) {
			data := h.data()
			err := CheckType(h.dt)
			if err == nil {
				err = check(h.dt, data)
			}
			if h.says != "" {
				require.ErrorContains(t, err, h.says)
				require.Equal(t, fault.InvalidArgument, fault.Of(err).Kind)
				return
			}
			require.NoError(t, err)
			n := normalizer{mem: memory.DefaultAllocator, left: 1 << 20} // arrow-go itself panics on some of these
			normal, err := n.rows(h.dt, data, data.Offset(), data.Len())
			require.NoError(t, err)
			checkPromises(t, normal, "")
			readAll(newArray(normal))
		})
	}
}

// TestExpansionIsBounded: few bytes may not stand for gigabytes.
func TestExpansionIsBounded(t *testing.T) {
	million := memory.NewBufferBytes(make([]byte, 4<<20))
	large := numbers(&arrow.FixedSizeBinaryType{ByteWidth: 1 << 20}, 1, memory.NewBufferBytes(make([]byte, 1<<20)))
	wide := &arrow.DictionaryType{IndexType: int32s, ValueType: large.DataType()}
	views := make([]byte, 0, viewWidth*2048)
	for range 2048 {
		views = append(views, view(1<<20, 0, 0).Bytes()...)
	}
	lists := make([]byte, 4<<20)
	for i := range 1 << 20 {
		binary.LittleEndian.PutUint32(lists[4*i:], 1<<20)
	}
	for _, h := range []hostile{
		{dt: wide, rows: 1 << 20, buffers: []*memory.Buffer{nil, million}, dictionary: large, says: "[COLUMN_TOO_LARGE]"},
		{dt: ree, rows: math.MaxInt32, buffers: []*memory.Buffer{nil}, children: runs(math.MaxInt32), says: "[COLUMN_TOO_LARGE]"},
		{dt: arrow.BinaryTypes.StringView, rows: 2048, buffers: []*memory.Buffer{nil, memory.NewBufferBytes(views), memory.NewBufferBytes(make([]byte, 1<<20))}, says: "2147483648 bytes, more than the limit of 2147483647"},
		{dt: arrow.BinaryTypes.StringView, rows: 2000, buffers: []*memory.Buffer{nil, memory.NewBufferBytes(views), memory.NewBufferBytes(make([]byte, 1<<20))}, says: fmt.Sprint(limits.MessageBytes)},
		{dt: arrow.ListViewOf(int32s), rows: 1 << 20, buffers: []*memory.Buffer{nil, million, memory.NewBufferBytes(lists)},
			children: []arrow.ArrayData{numbers(int32s, 1<<20, million)}, says: "2147483648 items"},
		{dt: arrow.ListViewOf(int32s), rows: 1 << 10, buffers: []*memory.Buffer{nil, million, memory.NewBufferBytes(lists)},
			children: []arrow.ArrayData{numbers(int32s, 1<<20, million)}, says: "[COLUMN_TOO_LARGE]"},
	} {
		t.Run(h.dt.String(), func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
			defer mem.AssertSize(t, 0)
			arr := array.MakeFromData(h.data())
			_, err := Normalize(mem, arr)
			require.ErrorContains(t, err, h.says)
			require.Equal(t, fault.InvalidArgument, fault.Of(err).Kind)
		})
	}
}

func TestArrayThatIsNotThere(t *testing.T) {
	_, err := Normalize(memory.DefaultAllocator, nil)
	require.True(t, fault.Is(err, "BAD_ARRAY"))
}

// mutated copies data and spoils it as the bytes of spoil say, four a change.
func mutated(data arrow.ArrayData, spoil []byte) arrow.ArrayData {
	nodes := 0
	var count func(arrow.ArrayData)
	count = func(data arrow.ArrayData) {
		nodes++
		for _, child := range data.Children() {
			count(child)
		}
		if dictionary := dictionaryOf(data); dictionary != nil {
			count(dictionary)
		}
	}
	count(data)
	at := 0
	var spoiled func(arrow.ArrayData) arrow.ArrayData
	spoiled = func(data arrow.ArrayData) arrow.ArrayData {
		var buffers []*memory.Buffer
		for _, buffer := range data.Buffers() {
			if buffer != nil {
				buffer = memory.NewBufferBytes(append([]byte{}, buffer.Bytes()...))
			}
			buffers = append(buffers, buffer)
		}
		rows, offset, nulls := data.Len(), data.Offset(), data.NullN()
		var children []arrow.ArrayData
		me := at
		at++
		for _, child := range data.Children() {
			children = append(children, spoiled(child))
		}
		for i := 0; i+4 <= len(spoil); i += 4 {
			node, what, where, value := int(spoil[i])%nodes, spoil[i+1], int(spoil[i+2]), spoil[i+3]
			if node != me {
				continue
			}
			switch what % 8 {
			case 0:
				rows = int(int8(value))
			case 1:
				rows = 1 << (value % 64)
			case 2:
				offset = int(int8(value))
			case 3:
				nulls = int(int8(value))
			case 4:
				if len(children) > 0 && value%4 == 0 {
					children = children[1:]
				}
			case 5:
				if len(buffers) > 0 {
					buffers[where%len(buffers)] = nil
				}
			default:
				if len(buffers) == 0 || buffers[where%len(buffers)] == nil {
					continue
				}
				b := buffers[where%len(buffers)].Bytes()
				if what%8 == 6 {
					b = b[:min(len(b), int(value))]
					buffers[where%len(buffers)] = memory.NewBufferBytes(b)
				} else if len(b) > 0 {
					b[(where*7+int(what))%len(b)] = value
				}
			}
		}
		copied := array.NewData(data.DataType(), rows, buffers, children, nulls, offset)
		if dictionary := dictionaryOf(data); dictionary != nil {
			copied.SetDictionary(spoiled(dictionary))
		}
		return copied
	}
	return spoiled(data)
}

// FuzzSpoiledArrays: an array with arbitrary changes is refused, or can be
// read, restored and compared without harm.
func FuzzSpoiledArrays(f *testing.F) {
	for seed := range uint64(200) {
		spoil := make([]byte, 8)
		binary.LittleEndian.PutUint64(spoil, seed*0x9E3779B97F4A7C15)
		f.Add(seed, spoil)
	}
	f.Fuzz(func(t *testing.T, seed uint64, spoil []byte) {
		foreign := newForeign(seed, memory.DefaultAllocator)
		dt := foreign.dataType(3)
		data := mutated(foreign.data(dt, foreign.values(dt, foreign.rng.IntN(20)), false), spoil)
		if check(dt, data) != nil {
			return
		}
		n := normalizer{mem: memory.DefaultAllocator, left: 1 << 20}
		normal, err := n.rows(dt, data, data.Offset(), data.Len())
		if err != nil {
			require.True(t, fault.Is(err, "COLUMN_TOO_LARGE"), "%v", err)
			return
		}
		if normal.Len() > 10_000 {
			return
		}
		checkPromises(t, normal, "")
		arr := newArray(normal)
		values := readAll(arr)
		restored, err := Restore(memory.DefaultAllocator, arr, dt)
		if err != nil {
			require.ErrorAs(t, err, new(*DictionaryFull))
			return
		}
		require.NoError(t, Check(restored))
		require.Equal(t, values, readAll(restored))
	})
}

// A type of which a single null takes more than a row may is refused: a column
// of it, added to a table, could not be read.
func TestTypesLargerThanARowAreRefused(t *testing.T) {
	bytes := func(n int32) arrow.DataType { return arrow.FixedSizeListOf(n, arrow.PrimitiveTypes.Int8) }
	for _, dt := range []arrow.DataType{
		bytes(limits.RowBytes + 1), bytes(1<<31 - 1),
		arrow.FixedSizeListOf(1<<31-1, arrow.FixedSizeListOf(1<<31-1, arrow.Null)),
		arrow.FixedSizeListOf(1<<30, arrow.Null),
		&arrow.FixedSizeBinaryType{ByteWidth: 1<<31 - 1},
		arrow.StructOf(arrow.Field{Name: "a", Type: bytes(limits.RowBytes)}, arrow.Field{Name: "b", Type: bytes(1)}),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: bytes(1 << 30)},
	} {
		require.True(t, fault.Is(CheckType(dt), "TYPE_UNSUPPORTED"), dt)
	}
	for _, dt := range []arrow.DataType{
		bytes(limits.RowBytes), arrow.ListOf(bytes(16)), arrow.FixedSizeListOf(4096, arrow.PrimitiveTypes.Float32),
		&arrow.FixedSizeBinaryType{ByteWidth: 0},
	} {
		require.NoError(t, CheckType(dt), dt)
	}
}
