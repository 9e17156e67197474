package ingest

import (
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/sheaf-db/sheaf/shards/block"
)

// conversion turns canonical arrays of one type into another. Match compiles
// it once per stream; apply runs per batch. It is immutable.
type conversion struct {
	to     arrow.DataType
	step   step
	inner  []*conversion // of children, in the order of the target's children
	source []int         // struct: which child of the source, -1 fills with nulls
	scale  scaling       // times, dates and durations
}

type step uint8

const (
	same     step = iota // the array as it is
	retyped              // the same buffers under another name: zone label, field names
	fillNull             // any type from null
	widened              // integers and floats into more bytes
	scaled               // dates, times, timestamps and durations into another unit
	rescaled             // decimals into more digits
	nested               // children convert, the array's own buffers stay
)

// valueError says which value of an array does not fit, and why.
type valueError struct {
	row    int
	value  string // as text; empty where the reason says all
	reason string
}

func (e *valueError) Error() string { return e.reason }

// errMismatch: no value of one type can be one of the other.
var errMismatch = fmt.Errorf("types differ")

// match finds how canonical arrays of type from become arrays of type to, by
// the contract's rules. errMismatch if they cannot.
func match(from, to arrow.DataType) (*conversion, error) {
	if arrow.TypeEqual(from, to, arrow.CheckMetadata()) {
		return &conversion{to: to, step: same}, nil
	}
	if from.ID() == arrow.NULL {
		return &conversion{to: to, step: fillNull}, nil
	}
	if scale, ok, err := timeScaling(from, to); ok || err != nil {
		if err != nil {
			return nil, err
		}
		if scale == (scaling{factor: 1}) {
			return &conversion{to: to, step: retyped}, nil
		}
		return &conversion{to: to, step: scaled, scale: scale}, nil
	}
	if fromDecimal, ok := from.(arrow.DecimalType); ok {
		return matchDecimal(fromDecimal, to)
	}
	switch from := from.(type) {
	case *arrow.ListType:
		if to, ok := to.(*arrow.ListType); ok {
			return matchChildren(to, []arrow.DataType{from.Elem()}, []arrow.DataType{to.Elem()})
		}
	case *arrow.FixedSizeListType:
		if to, ok := to.(*arrow.FixedSizeListType); ok && to.Len() == from.Len() {
			return matchChildren(to, []arrow.DataType{from.Elem()}, []arrow.DataType{to.Elem()})
		}
	case *arrow.MapType:
		if to, ok := to.(*arrow.MapType); ok {
			return matchMap(from, to)
		}
	case *arrow.StructType:
		if to, ok := to.(*arrow.StructType); ok {
			return matchStruct(from, to)
		}
	}
	if widens(from.ID(), to.ID()) {
		return &conversion{to: to, step: widened}, nil
	}
	if arrow.TypeEqual(from, to) {
		return &conversion{to: to, step: retyped}, nil
	}
	return nil, errMismatch
}

func matchChildren(to arrow.DataType, from, into []arrow.DataType) (*conversion, error) {
	c := &conversion{to: to, step: nested}
	for i := range from {
		inner, err := match(from[i], into[i])
		if err != nil {
			return nil, err
		}
		c.inner = append(c.inner, inner)
		c.source = append(c.source, i)
	}
	return c, nil
}

// matchMap goes by place: the entries' field names differ between writers.
func matchMap(from, to *arrow.MapType) (*conversion, error) {
	entries, err := matchChildren(to.Elem(),
		[]arrow.DataType{from.KeyType(), from.ItemType()}, []arrow.DataType{to.KeyType(), to.ItemType()})
	if err != nil {
		return nil, err
	}
	return &conversion{to: to, step: nested, inner: []*conversion{entries}, source: []int{0}}, nil
}

// matchStruct goes by name, as columns do; equal names in equal places (which
// may then repeat) go by place. A field that is not sent is null.
func matchStruct(from, to *arrow.StructType) (*conversion, error) {
	source := make([]int, to.NumFields())
	if !sameNames(from, to) {
		used := 0
		for i, field := range to.Fields() {
			source[i] = -1
			switch at := from.FieldIndices(field.Name); {
			case len(at) == 1:
				source[i] = at[0]
				used++
			case len(at) > 1:
				return nil, errMismatch
			}
		}
		if used != from.NumFields() {
			return nil, errMismatch
		}
	} else {
		for i := range source {
			source[i] = i
		}
	}
	c := &conversion{to: to, step: nested, source: source}
	for i, field := range to.Fields() {
		var sent arrow.DataType = arrow.Null
		if source[i] >= 0 {
			sent = from.Field(source[i]).Type
		}
		inner, err := match(sent, field.Type)
		if err != nil {
			return nil, err
		}
		c.inner = append(c.inner, inner)
	}
	return c, nil
}

func sameNames(a, b *arrow.StructType) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i, field := range a.Fields() {
		if field.Name != b.Field(i).Name {
			return false
		}
	}
	return true
}

// apply converts one canonical array without offset; the caller releases the
// result. The error is a *valueError for a value that does not fit.
func (c *conversion) apply(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	switch c.step {
	case same:
		arr.Retain()
		return arr, nil
	case fillNull:
		return nulls(mem, c.to, arr.Len()), nil
	case widened:
		return widen(mem, arr, c.to), nil
	case scaled:
		return c.scale.apply(mem, arr, c.to)
	case rescaled:
		return rescale(mem, arr, c.to.(arrow.DecimalType))
	case nested:
		return c.applyChildren(mem, arr)
	}
	data := arr.Data()
	return made(c.to, arr.Len(), data.Buffers(), data.Children(), arr.NullN()), nil
}

func (c *conversion) applyChildren(mem memory.Allocator, arr arrow.Array) (arrow.Array, error) {
	data := arr.Data()
	children := make([]arrow.ArrayData, len(c.inner))
	defer func() {
		for _, child := range children {
			if child != nil {
				child.Release()
			}
		}
	}()
	for i, inner := range c.inner {
		child, err := c.child(mem, arr, i)
		if err != nil {
			return nil, err
		}
		converted, err := inner.apply(mem, child)
		bad, refused := err.(*valueError)
		if refused && arr.NullN() > 0 {
			live := onlyLive(mem, arr, child)
			child.Release()
			child = live
			converted, err = inner.apply(mem, child)
			bad, refused = err.(*valueError)
		}
		child.Release()
		if err != nil {
			if refused {
				bad.row = parentRow(arr, bad.row)
			}
			return nil, err
		}
		children[i] = converted.Data()
		children[i].Retain()
		converted.Release()
	}
	return made(c.to, arr.Len(), data.Buffers(), children, arr.NullN()), nil
}

// onlyLive is a child of a nested array with nulls for what lies under a null
// of its parent: no value, which need not fit. The caller releases it.
func onlyLive(mem memory.Allocator, parent, child arrow.Array) arrow.Array {
	validity := memory.NewResizableBuffer(mem)
	defer validity.Release()
	validity.Resize(int(bitutil.BytesForBits(int64(child.Len()))))
	clear(validity.Bytes())
	nulls := 0
	for i, live := range liveChildren(parent, child.Len(), nil) {
		if live && child.IsValid(i) {
			bitutil.SetBit(validity.Bytes(), i)
		} else {
			nulls++
		}
	}
	buffers := slices.Clone(child.Data().Buffers())
	buffers[0] = validity
	return made(child.DataType(), child.Len(), buffers, child.Data().Children(), nulls)
}

// child is the source's array for child i of the target.
func (c *conversion) child(mem memory.Allocator, arr arrow.Array, i int) (arrow.Array, error) {
	if c.source[i] < 0 {
		return array.NewNull(arr.Len()), nil
	}
	return array.MakeFromData(arr.Data().Children()[c.source[i]]), nil
}

// nulls is a canonical array of n nulls.
func nulls(mem memory.Allocator, dt arrow.DataType, n int) arrow.Array {
	vector := block.NewVector(mem, dt)
	defer vector.Release()
	vector.AppendNulls(n)
	return vector.NewArray()
}

// made is an array over buffers and children that it retains.
func made(dt arrow.DataType, rows int, buffers []*memory.Buffer, children []arrow.ArrayData, nulls int) arrow.Array {
	data := array.NewData(dt, rows, append([]*memory.Buffer(nil), buffers...), children, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data)
}

// parentRow is the row of a nested array that holds a row of its child.
func parentRow(arr arrow.Array, child int) int {
	switch arr := arr.(type) {
	case *array.FixedSizeList:
		return child / int(arr.DataType().(*arrow.FixedSizeListType).Len())
	case array.ListLike: // list and map
		for row := range arr.Len() {
			if start, end := arr.ValueOffsets(row); int64(child) >= start && int64(child) < end {
				return row
			}
		}
	}
	return child
}
