package canonical

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"

	"github.com/sheaf-db/sheaf/fault"
)

// Check is nil if every value that the array's lengths, offsets, indices and
// run ends name lies inside its buffers, at any depth, and if strings are
// UTF-8, so that reading it cannot go wrong here or in a client; else a fault
// INVALID_ARGUMENT that says what does not fit. Slots under a null may hold
// anything where the layout does not use them. It reads offsets, indices and
// text once and copies nothing.
func Check(arr arrow.Array) error {
	if arr == nil || arr.Data() == nil {
		return bad("no array")
	}
	if err := CheckType(arr.DataType()); err != nil {
		return err
	}
	return check(arr.DataType(), arr.Data())
}

// bad is the error about an array that contradicts itself.
func bad(format string, args ...any) error {
	return fault.Invalid("BAD_ARRAY", format, args...)
}

// in says in which child an error was found.
func in(child string, err error) error {
	if found := fault.Of(err); found != nil {
		inner := *found
		inner.Message = child + ": " + inner.Message
		return &inner
	}
	return err
}

// check reads data as an array of type dt, which CheckType accepts. Sums of
// lengths and offsets cannot overflow because both are bounded first.
func check(dt arrow.DataType, data arrow.ArrayData) error {
	dt = storageOf(dt)
	rows, offset := data.Len(), data.Offset()
	if rows < 0 || rows > math.MaxInt32 {
		return bad("an array of %d rows; the limit is %d", rows, math.MaxInt32)
	}
	if offset < 0 || offset > math.MaxInt32 {
		return bad("an array at offset %d; the limit is %d", offset, math.MaxInt32)
	}
	if !sameLayout(dt, storageOf(data.DataType())) {
		return bad("an array of %s where %s belongs", data.DataType(), dt)
	}
	a := checked{dt: dt, data: data, rows: rows, start: offset, end: offset + rows}
	if err := a.checkShape(); err != nil {
		return err
	}
	if err := a.checkValidity(); err != nil {
		return err
	}
	for i, childType := range Children(dt) {
		if err := check(childType, data.Children()[i]); err != nil {
			return in(childName(dt, i), err)
		}
	}
	if dictionary, ok := dt.(*arrow.DictionaryType); ok && dictionaryOf(data) != nil {
		if err := check(dictionary.ValueType, dictionaryOf(data)); err != nil {
			return in("dictionary", err)
		}
	}
	if rows == 0 {
		return nil
	}
	return a.checkValues()
}

// sameLayout: two types, extensions removed, whose own buffers have one form;
// the types of children are compared when these are checked.
func sameLayout(a, b arrow.DataType) bool {
	if a == b {
		return true
	}
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.FixedSizeBinaryType:
		return a.ByteWidth == b.(*arrow.FixedSizeBinaryType).ByteWidth
	case *arrow.FixedSizeListType:
		return a.Len() == b.(*arrow.FixedSizeListType).Len()
	case *arrow.DictionaryType:
		return a.IndexType.ID() == b.(*arrow.DictionaryType).IndexType.ID()
	}
	return true
}

func childName(dt arrow.DataType, i int) string {
	switch dt := dt.(type) {
	case *arrow.StructType:
		return fmt.Sprintf("field %q", dt.Field(i).Name)
	case *arrow.RunEndEncodedType:
		return [...]string{"run ends", "run values"}[i]
	}
	return "items"
}

// checked is one array while it is checked: its rows are start ≤ row < end of
// its buffers.
type checked struct {
	dt               arrow.DataType
	data             arrow.ArrayData
	rows, start, end int
}

// checkShape: the number of buffers and children.
func (a checked) checkShape() error {
	buffers, more := 2, false
	switch a.dt.ID() {
	case arrow.NULL, arrow.RUN_END_ENCODED:
		buffers, more = 0, true
	case arrow.STRUCT, arrow.FIXED_SIZE_LIST:
		buffers = 1
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		buffers = 3
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		more = true
	}
	if n := len(a.data.Buffers()); n < buffers || n > buffers && !more {
		return bad("%s with %d buffers instead of %d", a.dt, n, buffers)
	}
	children := Children(a.dt)
	if len(a.data.Children()) != len(children) {
		return bad("%s with %d children instead of %d", a.dt, len(a.data.Children()), len(children))
	}
	for i, child := range a.data.Children() {
		if child == nil {
			return bad("%s without its %s", a.dt, childName(a.dt, i))
		}
	}
	return nil
}

// validity is the bitmap, empty if the layout or the array has none.
func (a checked) validity() []byte {
	if a.dt.ID() == arrow.NULL || a.dt.ID() == arrow.RUN_END_ENCODED {
		return nil
	}
	return bytesOf(a.data, 0)
}

func (a checked) checkValidity() error {
	if a.rows == 0 || a.dt.ID() == arrow.NULL || a.dt.ID() == arrow.RUN_END_ENCODED {
		return nil
	}
	bitmap := a.validity()
	if len(bitmap) == 0 {
		if a.data.NullN() > 0 {
			return bad("%s says it has %d nulls but has no validity bitmap", a.dt, a.data.NullN())
		}
		return nil
	}
	return a.needBits("validity bitmap", bitmap)
}

func (a checked) needBits(what string, bitmap []byte) error {
	if int64(len(bitmap))*8 < int64(a.end) {
		return bad("the %s of %s has %d bytes, too few for %d values", what, a.dt, len(bitmap), a.end)
	}
	return nil
}

// need checks a buffer for values of so many bytes each; width 0 needs nothing.
func (a checked) need(what string, buffer []byte, width, values int) error {
	if width > 0 && len(buffer)/width < values {
		return bad("the %s of %s have %d bytes, too few for %d values", what, a.dt, len(buffer), values)
	}
	return nil
}

func (a checked) checkValues() error {
	switch a.dt.ID() {
	case arrow.NULL:
		return nil
	case arrow.STRUCT:
		return a.checkStruct()
	case arrow.BOOL:
		return a.needBits("values", bytesOf(a.data, 1))
	case arrow.STRING:
		return checkText[int32](a)
	case arrow.LARGE_STRING:
		return checkText[int64](a)
	case arrow.BINARY:
		return checkOffsets[int32](a, len(bytesOf(a.data, 2)))
	case arrow.LARGE_BINARY:
		return checkOffsets[int64](a, len(bytesOf(a.data, 2)))
	case arrow.MAP:
		if err := checkEntries(a.data.Children()[0]); err != nil {
			return err
		}
		return checkOffsets[int32](a, a.data.Children()[0].Len())
	case arrow.LIST:
		return checkOffsets[int32](a, a.data.Children()[0].Len())
	case arrow.LARGE_LIST:
		return checkOffsets[int64](a, a.data.Children()[0].Len())
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return a.checkViews()
	case arrow.LIST_VIEW:
		return checkListViews[int32](a)
	case arrow.LARGE_LIST_VIEW:
		return checkListViews[int64](a)
	case arrow.FIXED_SIZE_LIST:
		items := int(a.dt.(*arrow.FixedSizeListType).Len())
		if child := a.data.Children()[0]; child.Len()/items < a.end {
			return bad("%d items are too few for %d rows of %s", child.Len(), a.end, a.dt)
		}
		return nil
	case arrow.DICTIONARY:
		return a.checkDictionary()
	case arrow.RUN_END_ENCODED:
		return a.checkRuns()
	}
	width, _ := elementWidth(a.dt)
	return a.need("values", bytesOf(a.data, 1), width, a.end)
}

func (a checked) checkStruct() error {
	for i, child := range a.data.Children() {
		if child.Len() < a.end {
			return bad("%s of a struct has %d rows, too few for %d", childName(a.dt, i), child.Len(), a.end)
		}
	}
	return nil
}

func widthOf[T int32 | int64]() int { return int(unsafe.Sizeof(T(0))) }

// checkOffsets: offsets rise from at least 0 to at most limit.
func checkOffsets[T int32 | int64](a checked, limit int) error {
	buffer := bytesOf(a.data, 1)
	if err := a.need("offsets", buffer, widthOf[T](), a.end+1); err != nil {
		return err
	}
	offsets := arrow.GetData[T](buffer)[a.start : a.end+1]
	previous := offsets[0]
	if previous < 0 {
		return bad("the offsets of %s begin at %d", a.dt, previous)
	}
	for i, offset := range offsets {
		if offset < previous {
			return bad("the offsets of %s run backwards at row %d, from %d to %d", a.dt, i-1, previous, offset)
		}
		previous = offset
	}
	if int64(previous) > int64(limit) {
		return bad("the offsets of %s end at %d, behind the %d there are", a.dt, previous, limit)
	}
	return nil
}

// viewWidth: a length, then 12 bytes of value or 4 bytes of prefix, buffer
// index and offset (Arrow columnar format, "Variable-size Binary View Layout").
const (
	viewWidth  = 16
	viewInline = 12
)

func (a checked) checkViews() error {
	views := bytesOf(a.data, 1)
	if err := a.need("views", views, viewWidth, a.end); err != nil {
		return err
	}
	validity, buffers := a.validity(), a.data.Buffers()[2:]
	text := a.dt.ID() == arrow.STRING_VIEW
	for row := a.start; row < a.end; row++ {
		view := views[row*viewWidth:][:viewWidth]
		length := int32(binary.LittleEndian.Uint32(view))
		if isNull(validity, row) {
			continue
		}
		if uint32(length) <= viewInline {
			if text && !utf8.Valid(view[4:][:length]) {
				return a.notText(row)
			}
			continue
		}
		index, at := int32(binary.LittleEndian.Uint32(view[8:])), int32(binary.LittleEndian.Uint32(view[12:]))
		switch {
		case length < 0:
			return bad("row %d of %s has length %d", row-a.start, a.dt, length)
		case index < 0 || int(index) >= len(buffers) || buffers[index] == nil:
			return bad("row %d of %s lies in buffer %d of %d", row-a.start, a.dt, index, len(buffers))
		case at < 0 || int64(at)+int64(length) > int64(buffers[index].Len()):
			return bad("row %d of %s lies outside its buffer: %d bytes at %d of %d", row-a.start, a.dt, length, at, buffers[index].Len())
		}
		if text && !utf8.Valid(buffers[index].Bytes()[at:][:length]) {
			return a.notText(row)
		}
	}
	return nil
}

// checkText: offsets as they must be, and values that are UTF-8. Text that is
// sound as a whole and cut between characters is so in every row.
func checkText[T int32 | int64](a checked) error {
	text := bytesOf(a.data, 2)
	if err := checkOffsets[T](a, len(text)); err != nil {
		return err
	}
	offsets := arrow.GetData[T](bytesOf(a.data, 1))[:a.end+1]
	text = text[:offsets[a.end]]
	if utf8.Valid(text[offsets[a.start]:]) && !slices.ContainsFunc(offsets[a.start:], func(at T) bool {
		return int(at) < len(text) && !utf8.RuneStart(text[at])
	}) {
		return nil
	}
	validity := a.validity()
	for row := a.start; row < a.end; row++ {
		if !isNull(validity, row) && !utf8.Valid(text[offsets[row]:offsets[row+1]]) {
			return a.notText(row)
		}
	}
	return nil
}

// notText is the error about a string that is none.
func (a checked) notText(row int) error {
	return bad("row %d of %s is not UTF-8; bytes of any kind belong into a binary column", row-a.start, a.dt)
}

func checkListViews[T int32 | int64](a checked) error {
	offsetBytes, sizeBytes := bytesOf(a.data, 1), bytesOf(a.data, 2)
	if err := a.need("offsets", offsetBytes, widthOf[T](), a.end); err != nil {
		return err
	}
	if err := a.need("sizes", sizeBytes, widthOf[T](), a.end); err != nil {
		return err
	}
	offsets, sizes := arrow.GetData[T](offsetBytes), arrow.GetData[T](sizeBytes)
	validity, items := a.validity(), int64(a.data.Children()[0].Len())
	for row := a.start; row < a.end; row++ {
		offset, size := int64(offsets[row]), int64(sizes[row])
		if (offset < 0 || size < 0 || offset > items || size > items-offset) && !isNull(validity, row) {
			return bad("row %d of %s lies outside its items: %d at %d of %d", row-a.start, a.dt, size, offset, items)
		}
	}
	return nil
}

func (a checked) checkDictionary() error {
	indexType := a.dt.(*arrow.DictionaryType).IndexType
	width, _ := elementWidth(indexType)
	if err := a.need("indices", bytesOf(a.data, 1), width, a.end); err != nil {
		return err
	}
	values := 0
	if dictionary := dictionaryOf(a.data); dictionary != nil {
		values = dictionary.Len()
	}
	validity := a.validity()
	row, index := badIndex(indexType, bytesOf(a.data, 1), a.start, a.end, validity, values)
	if row < a.end {
		return bad("row %d of %s has index %s into a dictionary of %d values", row-a.start, a.dt, index, values)
	}
	return nil
}

// badIndex is the first valid row whose index is not in [0, values), and that
// index; end if there is none.
func badIndex(dt arrow.DataType, buffer []byte, start, end int, validity []byte, values int) (int, string) {
	switch dt.ID() {
	case arrow.INT8:
		return badIndexOf[int8](buffer, start, end, validity, values)
	case arrow.INT16:
		return badIndexOf[int16](buffer, start, end, validity, values)
	case arrow.INT32:
		return badIndexOf[int32](buffer, start, end, validity, values)
	case arrow.INT64:
		return badIndexOf[int64](buffer, start, end, validity, values)
	case arrow.UINT8:
		return badIndexOf[uint8](buffer, start, end, validity, values)
	case arrow.UINT16:
		return badIndexOf[uint16](buffer, start, end, validity, values)
	case arrow.UINT32:
		return badIndexOf[uint32](buffer, start, end, validity, values)
	}
	return badIndexOf[uint64](buffer, start, end, validity, values)
}

func badIndexOf[T arrow.IntType | arrow.UintType](buffer []byte, start, end int, validity []byte, values int) (int, string) {
	for row, index := range arrow.GetData[T](buffer)[start:end] {
		// a negative index is huge as uint64
		if uint64(index) >= uint64(values) && !isNull(validity, start+row) {
			return start + row, fmt.Sprint(index)
		}
	}
	return end, ""
}

func (a checked) checkRuns() error {
	ends, values := a.data.Children()[0], a.data.Children()[1]
	width, _ := elementWidth(ends.DataType())
	if ends.Len() > values.Len() {
		return bad("%s has %d run ends but %d values", a.dt, ends.Len(), values.Len())
	}
	if validity := bytesOf(ends, 0); len(validity) > 0 && bitutil.CountSetBits(validity, ends.Offset(), ends.Len()) != ends.Len() {
		return bad("%s has a null run end", a.dt)
	}
	previous := int64(0)
	for run := range ends.Len() {
		end := runEnd(bytesOf(ends, 1), width, ends.Offset()+run)
		if end <= previous {
			return bad("the run ends of %s do not rise at run %d: %d after %d", a.dt, run, end, previous)
		}
		previous = end
	}
	if previous < int64(a.end) {
		return bad("the runs of %s end at row %d of %d", a.dt, previous, a.end)
	}
	return nil
}

// runEnd reads run end i of an int16, int32 or int64 buffer.
func runEnd(buffer []byte, width, i int) int64 {
	switch width {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(buffer[2*i:])))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(buffer[4*i:])))
	}
	return int64(binary.LittleEndian.Uint64(buffer[8*i:]))
}

// checkEntries: a map's entries and keys are never null.
func checkEntries(entries arrow.ArrayData) error {
	for _, part := range []arrow.ArrayData{entries, entries.Children()[0]} {
		validity := bytesOf(part, 0)
		if part.DataType().ID() == arrow.NULL && part.Len() > 0 || len(validity) > 0 &&
			bitutil.CountSetBits(validity, part.Offset(), part.Len()) != part.Len() {
			return bad("a map has a null entry or key")
		}
	}
	return nil
}
