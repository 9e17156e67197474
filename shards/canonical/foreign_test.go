package canonical

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Arrays as the most perverse correct client would send them, made from plain
// Go values: nil, the raw bytes of a fixed-width value as a string, text as a
// string, bool, and []any for lists, maps (of pairs) and structs. Each level
// has foreign rows before and behind its own, rubbish under nulls, unused and
// repeated dictionary values, and items in any order where the layout permits.
// read is the inverse, by arrow-go's own accessors.

type foreign struct {
	rng *rand.Rand
	mem memory.Allocator
}

func newForeign(seed uint64, mem memory.Allocator) *foreign {
	return &foreign{rng: rand.New(rand.NewPCG(seed, 1)), mem: mem}
}

var fixedTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: -2},
	&arrow.Decimal128Type{Precision: 38, Scale: 10}, &arrow.Decimal256Type{Precision: 76, Scale: 3},
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
	arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
	arrow.FixedWidthTypes.Timestamp_s, &arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Paris"},
	arrow.FixedWidthTypes.Duration_ms, arrow.FixedWidthTypes.Duration_ns,
	arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval, arrow.FixedWidthTypes.MonthDayNanoInterval,
	&arrow.FixedSizeBinaryType{ByteWidth: 0}, &arrow.FixedSizeBinaryType{ByteWidth: 5},
}

var flatTypes = append([]arrow.DataType{
	arrow.Null, arrow.FixedWidthTypes.Boolean,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView,
	arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary, arrow.BinaryTypes.BinaryView,
}, fixedTypes...)

var indexTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
}

// nestings make a type out of others.
var nestings []func(f *foreign, depth int) arrow.DataType

func init() { // it refers to itself
	nestings = []func(f *foreign, depth int) arrow.DataType{
		func(f *foreign, depth int) arrow.DataType { return arrow.ListOfField(f.field("element", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.LargeListOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.ListViewOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType { return arrow.LargeListViewOfField(f.field("item", depth)) },
		func(f *foreign, depth int) arrow.DataType {
			return arrow.FixedSizeListOfField(1+f.rng.Int32N(3), f.field("item", depth))
		},
		func(f *foreign, depth int) arrow.DataType {
			key := flatTypes[1+f.rng.IntN(len(flatTypes)-1)]
			dt := arrow.MapOf(key, f.dataType(depth-1))
			dt.KeysSorted = f.rng.IntN(2) == 0
			return dt
		},
		func(f *foreign, depth int) arrow.DataType {
			fields := make([]arrow.Field, f.rng.IntN(4))
			for i := range fields {
				fields[i] = f.field(fmt.Sprint("f", i/2), depth)
			}
			return arrow.StructOf(fields...)
		},
		func(f *foreign, depth int) arrow.DataType {
			return &arrow.DictionaryType{IndexType: indexTypes[f.rng.IntN(len(indexTypes))], ValueType: f.dataType(depth - 1), Ordered: f.rng.IntN(2) == 0}
		},
		func(f *foreign, depth int) arrow.DataType {
			ends := []arrow.DataType{arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64}[f.rng.IntN(3)]
			return arrow.RunEndEncodedOf(ends, f.dataType(depth-1))
		},
	}
}

func (f *foreign) field(name string, depth int) arrow.Field {
	field := arrow.Field{Name: name, Type: f.dataType(depth - 1), Nullable: true}
	if f.rng.IntN(4) == 0 {
		field.Metadata = arrow.NewMetadata([]string{"unit"}, []string{"m"})
	}
	return field
}

func (f *foreign) dataType(depth int) arrow.DataType {
	if depth <= 0 || f.rng.IntN(3) == 0 {
		return flatTypes[f.rng.IntN(len(flatTypes))]
	}
	return nestings[f.rng.IntN(len(nestings))](f, depth)
}

// value is a random value of the type: often null, often one met before.
func (f *foreign) value(dt arrow.DataType) any {
	if dt.ID() == arrow.NULL || f.rng.IntN(4) == 0 {
		return nil
	}
	return f.valid(dt)
}

func (f *foreign) valid(dt arrow.DataType) any {
	some := func(n int, dt arrow.DataType) []any {
		values := make([]any, n)
		for i := range values {
			values[i] = f.value(dt)
		}
		return values
	}
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return f.rng.IntN(2) == 0
	case *arrow.DictionaryType:
		return f.value(dt.ValueType)
	case *arrow.RunEndEncodedType:
		return f.value(dt.Encoded())
	case arrow.ExtensionType:
		return f.value(dt.StorageType())
	case *arrow.StructType:
		values := make([]any, dt.NumFields())
		for i := range values {
			values[i] = f.value(dt.Field(i).Type)
		}
		return values
	case *arrow.MapType:
		values := make([]any, f.rng.IntN(3))
		for i := range values {
			values[i] = []any{f.valid(dt.KeyType()), f.value(dt.ItemType())}
		}
		return values
	case *arrow.FixedSizeListType:
		return some(int(dt.Len()), dt.Elem())
	case arrow.ListLikeType:
		return some(f.rng.IntN(4), dt.Elem())
	}
	if width, ok := elementWidth(dt); ok {
		return f.bytes(width)
	}
	return f.bytes(f.rng.IntN(30))
}

// bytes draws from few values, so that some repeat.
func (f *foreign) bytes(n int) string {
	b := make([]byte, n)
	seed := byte(f.rng.IntN(5))
	for i := range b {
		if b[i] = seed * byte(i+37); f.rng.IntN(40) == 0 {
			b[i] = byte(f.rng.Uint32())
		}
	}
	return string(b)
}

func (f *foreign) values(dt arrow.DataType, n int) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = f.value(dt)
	}
	return values
}

func (f *foreign) array(dt arrow.DataType, values []any) arrow.Array {
	data := f.data(dt, values, false)
	defer data.Release()
	return array.MakeFromData(data)
}

// data builds the layout. Nothing in it is null if required.
func (f *foreign) data(dt arrow.DataType, values []any, required bool) arrow.ArrayData {
	rubbish := func() []any {
		rows := make([]any, f.rng.IntN(11))
		for i := range rows {
			if rows[i] = f.value(dt); required && dt.ID() != arrow.NULL {
				rows[i] = f.valid(dt)
			}
		}
		return rows
	}
	before := rubbish()
	all := slices.Concat(before, values, rubbish())
	if ree, ok := dt.(*arrow.RunEndEncodedType); ok && ree.RunEnds().ID() == arrow.INT16 && len(all) > 30_000 {
		all = slices.Concat(before, values)
	}
	l := f.layout(dt, all)
	nulls := array.UnknownNullCount
	if l.validity != nil || dt.ID() == arrow.NULL {
		count := 0
		for _, value := range values {
			if value == nil {
				count++
			}
		}
		if f.rng.IntN(2) == 0 || dt.ID() == arrow.MAP || required {
			nulls = count
		}
	} else {
		nulls = 0
	}
	buffers := l.buffers
	if dt.ID() != arrow.NULL {
		buffers = append([]*memory.Buffer{l.validity}, l.buffers...)
	}
	data := array.NewData(dt, len(values), buffers, l.children, nulls, len(before))
	if l.dictionary != nil {
		data.SetDictionary(l.dictionary)
		l.dictionary.Release()
	}
	memory.ReleaseBuffers(buffers)
	for _, child := range l.children {
		child.Release()
	}
	return data
}

type layout struct {
	validity   *memory.Buffer
	buffers    []*memory.Buffer
	children   []arrow.ArrayData
	dictionary arrow.ArrayData
}

func (f *foreign) buffer(b []byte) *memory.Buffer {
	buffer := memory.NewResizableBuffer(f.mem)
	buffer.Resize(len(b))
	copy(buffer.Bytes(), b)
	return buffer
}

func (f *foreign) validity(values []any) *memory.Buffer {
	if !slices.Contains(values, nil) && f.rng.IntN(2) == 0 {
		return nil
	}
	bits := make([]byte, bitmapBytes(len(values))+f.rng.IntN(3))
	for i := range bits {
		bits[i] = byte(f.rng.Uint32())
	}
	for i, value := range values {
		bitutil.SetBitTo(bits, i, value != nil)
	}
	return f.buffer(bits)
}

func (f *foreign) layout(dt arrow.DataType, values []any) (l layout) {
	switch dt := dt.(type) {
	case *arrow.NullType:
		return l
	case arrow.ExtensionType:
		return f.layout(dt.StorageType(), values)
	case *arrow.RunEndEncodedType:
		return f.runs(dt, values)
	case *arrow.DictionaryType:
		return f.dictionary(dt, values)
	}
	l.validity = f.validity(values)
	switch dt := dt.(type) {
	case *arrow.StructType:
		for i := range dt.NumFields() {
			column := make([]any, len(values))
			for row, value := range values {
				if value == nil {
					column[row] = f.value(dt.Field(i).Type)
				} else {
					column[row] = value.([]any)[i]
				}
			}
			l.children = append(l.children, f.data(dt.Field(i).Type, column, false))
		}
		return l
	case *arrow.FixedSizeListType:
		var items []any
		for _, value := range values {
			if value == nil {
				value = f.valid(dt)
			}
			items = append(items, value.([]any)...)
		}
		l.children = []arrow.ArrayData{f.data(dt.Elem(), items, false)}
		return l
	}
	switch dt.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.MAP:
		f.lists(&l, dt, values)
	case arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		f.listViews(&l, dt.(arrow.ListLikeType).Elem(), dt.ID() == arrow.LARGE_LIST_VIEW, values)
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		f.strings(&l, dt, values)
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		f.stringViews(&l, values)
	case arrow.BOOL:
		bits := make([]byte, bitmapBytes(len(values)))
		for i, value := range values {
			bitutil.SetBitTo(bits, i, value == true || value == nil && f.rng.IntN(2) == 0)
		}
		l.buffers = []*memory.Buffer{f.buffer(bits)}
	default:
		width, _ := elementWidth(dt)
		var b []byte
		for _, value := range values {
			if value == nil {
				value = f.bytes(width)
			}
			b = append(b, value.(string)...)
		}
		l.buffers = []*memory.Buffer{f.buffer(b)}
	}
	return l
}

func integers(large bool, values []int) []byte {
	var b []byte
	for _, value := range values {
		if large {
			b = binary.LittleEndian.AppendUint64(b, uint64(value))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(value))
		}
	}
	return b
}

func (f *foreign) strings(l *layout, dt arrow.DataType, values []any) {
	content := f.bytes(f.rng.IntN(9))
	offsets := []int{len(content)}
	for _, value := range values {
		if value == nil {
			value = f.bytes(f.rng.IntN(4))
		}
		content += value.(string)
		offsets = append(offsets, len(content))
	}
	content += f.bytes(f.rng.IntN(9))
	large := dt.ID() == arrow.LARGE_STRING || dt.ID() == arrow.LARGE_BINARY
	l.buffers = []*memory.Buffer{f.buffer(integers(large, offsets)), f.buffer([]byte(content))}
}

func (f *foreign) stringViews(l *layout, values []any) {
	views := make([]byte, viewWidth*len(values))
	contents := make([]string, 1+f.rng.IntN(3))
	for i, value := range values {
		view := views[viewWidth*i:][:viewWidth]
		if value == nil {
			for at := range view {
				view[at] = byte(f.rng.Uint32())
			}
			continue
		}
		text := value.(string)
		binary.LittleEndian.PutUint32(view, uint32(len(text)))
		copy(view[4:], text)
		if len(text) > viewInline {
			to := f.rng.IntN(len(contents))
			binary.LittleEndian.PutUint32(view[8:], uint32(to))
			binary.LittleEndian.PutUint32(view[12:], uint32(len(contents[to])))
			contents[to] += text
		}
	}
	l.buffers = []*memory.Buffer{f.buffer(views)}
	for _, content := range contents {
		l.buffers = append(l.buffers, f.buffer([]byte(content)))
	}
}

func (f *foreign) lists(l *layout, dt arrow.DataType, values []any) {
	elem, required := dt.(arrow.ListLikeType).Elem(), dt.ID() == arrow.MAP
	var items []any
	if !required {
		items = f.values(elem, f.rng.IntN(3))
	}
	offsets := []int{len(items)}
	for _, value := range values {
		switch {
		case value != nil:
			items = append(items, value.([]any)...)
		case !required:
			items = append(items, f.values(elem, f.rng.IntN(3))...)
		}
		offsets = append(offsets, len(items))
	}
	l.buffers = []*memory.Buffer{f.buffer(integers(dt.ID() == arrow.LARGE_LIST, offsets))}
	if required {
		l.children = []arrow.ArrayData{f.entries(elem.(*arrow.StructType), items)}
		return
	}
	l.children = []arrow.ArrayData{f.data(elem, items, false)}
}

// entries of a map have exact null counts of 0 in the struct and the keys:
// arrow-go refuses unknown ones.
func (f *foreign) entries(dt *arrow.StructType, items []any) arrow.ArrayData {
	columns := [2][]any{}
	for _, item := range items {
		for i := range columns {
			columns[i] = append(columns[i], item.([]any)[i])
		}
	}
	keys, values := f.data(dt.Field(0).Type, columns[0], true), f.data(dt.Field(1).Type, columns[1], false)
	data := array.NewData(dt, len(items), []*memory.Buffer{nil}, []arrow.ArrayData{keys, values}, 0, 0)
	keys.Release()
	values.Release()
	return data
}

func (f *foreign) listViews(l *layout, elem arrow.DataType, large bool, values []any) {
	var items []any
	offsets, sizes := make([]int, len(values)), make([]int, len(values))
	order := f.rng.Perm(len(values))
	if f.rng.IntN(2) == 0 {
		slices.Sort(order)
	}
	for _, row := range order {
		if values[row] == nil {
			offsets[row], sizes[row] = f.rng.IntN(1000)-500, f.rng.IntN(1000)-500
			continue
		}
		list := values[row].([]any)
		offsets[row], sizes[row] = len(items), len(list)
		for other := range values {
			if shared, ok := values[other].([]any); ok && len(list) > 0 && len(shared) >= len(list) && &shared[0] == &list[0] && offsets[other] > 0 {
				offsets[row] = offsets[other]
			}
		}
		if offsets[row] == len(items) {
			items = append(items, list...)
		}
	}
	l.buffers = []*memory.Buffer{f.buffer(integers(large, offsets)), f.buffer(integers(large, sizes))}
	l.children = []arrow.ArrayData{f.data(elem, items, false)}
}

func (f *foreign) dictionary(dt *arrow.DictionaryType, values []any) (l layout) {
	width, _ := elementWidth(dt.IndexType)
	dictionary := f.values(dt.ValueType, 2)
	codes := map[string]int{}
	indices := make([]int, len(values))
	holes := make([]any, len(values)) // not nil where the index is valid
	for i, value := range values {
		if value == nil && f.rng.IntN(2) == 0 {
			indices[i] = int(f.rng.Uint32()) // rubbish under a null index
			continue
		}
		text := fmt.Sprintf("%#v", value)
		code, known := codes[text]
		if !known || len(dictionary) < 60 && f.rng.IntN(8) == 0 {
			code = len(dictionary)
			codes[text] = code
			dictionary = append(dictionary, value)
		}
		indices[i], holes[i] = code, true
	}
	l.validity = f.validity(holes)
	var b []byte
	for _, index := range indices {
		var little [8]byte
		binary.LittleEndian.PutUint64(little[:], uint64(index))
		b = append(b, little[:width]...)
	}
	l.buffers = []*memory.Buffer{f.buffer(b)}
	l.dictionary = f.data(dt.ValueType, dictionary, false)
	return l
}

func (f *foreign) runs(dt *arrow.RunEndEncodedType, values []any) (l layout) {
	width, _ := elementWidth(dt.RunEnds())
	var ends []byte
	var runs []any
	count := 0
	for i := 0; i < len(values); {
		end := i + 1
		for end < len(values) && fmt.Sprintf("%#v", values[end]) == fmt.Sprintf("%#v", values[i]) && f.rng.IntN(10) > 0 {
			end++
		}
		runs = append(runs, values[i])
		i, count = end, count+1
		if i == len(values) {
			end += f.rng.IntN(3)
		}
		var little [8]byte
		binary.LittleEndian.PutUint64(little[:], uint64(end))
		ends = append(ends, little[:width]...)
	}
	buffer := f.buffer(ends)
	defer buffer.Release()
	l.children = []arrow.ArrayData{
		array.NewData(dt.RunEnds(), count, []*memory.Buffer{nil, buffer}, nil, 0, 0),
		f.data(dt.Encoded(), runs, false),
	}
	return l
}

// read is row i as the value it was made from.
func read(arr arrow.Array, i int) any {
	if arr.DataType().ID() != arrow.RUN_END_ENCODED && arr.IsNull(i) || arr.DataType().ID() == arrow.NULL {
		return nil
	}
	list := func(items arrow.Array, from, to int64) []any {
		values := make([]any, 0, to-from)
		for ; from < to; from++ {
			values = append(values, read(items, int(from)))
		}
		return values
	}
	switch arr := arr.(type) {
	case *array.Boolean:
		return arr.Value(i)
	case *array.String:
		return arr.Value(i)
	case *array.LargeString:
		return arr.Value(i)
	case *array.StringView:
		return arr.Value(i)
	case *array.Binary:
		return string(arr.Value(i))
	case *array.LargeBinary:
		return string(arr.Value(i))
	case *array.BinaryView:
		return string(arr.Value(i))
	case *array.Dictionary:
		return read(arr.Dictionary(), arr.GetValueIndex(i))
	case *array.RunEndEncoded:
		return read(arr.Values(), arr.GetPhysicalIndex(i))
	case array.ExtensionArray:
		return read(arr.Storage(), i)
	case *array.Struct:
		values := make([]any, arr.NumField())
		for field := range values {
			values[field] = read(arr.Field(field), i)
		}
		return values
	case array.ListLike:
		from, to := arr.ValueOffsets(i)
		return list(arr.ListValues(), from, to)
	}
	width, _ := elementWidth(arr.DataType())
	at := (arr.Data().Offset() + i) * width
	return string(arr.Data().Buffers()[1].Bytes()[at : at+width])
}

func readAll(arr arrow.Array) []any {
	values := make([]any, arr.Len())
	for i := range values {
		values[i] = read(arr, i)
	}
	return values
}
