package canonical

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

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
