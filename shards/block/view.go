package block

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// View is the rows as an array that shares the vector's memory, offset 0, null
// count known. It is good until the vector is appended to, reset or released,
// and the caller releases it before: gathering block after block takes no new
// memory that way.
func (v *Vector) View() arrow.Array {
	data := v.viewData()
	defer data.Release()
	return array.MakeFromData(data)
}

func (v *Vector) viewData() *array.Data {
	buffers := make([]*memory.Buffer, 1, 3)
	if v.nulls > 0 && v.shape != shapeNull {
		buffers[0] = v.valid
	}
	switch v.shape {
	case shapeText, shapeList:
		v.extendOffs(0)
		buffers = append(buffers, v.offs)
	}
	switch v.shape {
	case shapeBool, shapeFixed, shapeText:
		v.extend(&v.values, 0)
		buffers = append(buffers, v.values)
	}
	var kids []arrow.ArrayData
	for _, kid := range v.kids {
		kids = append(kids, kid.viewData())
	}
	data := array.NewData(v.dt, v.rows, buffers, kids, v.nulls, 0)
	for _, kid := range kids {
		kid.Release()
	}
	return data
}

// ReserveText makes room for that many more bytes of text.
func (v *Vector) ReserveText(bytes int) {
	if v.shape == shapeText {
		have := 0
		if v.values != nil {
			have = v.values.Len()
		}
		v.reserve(&v.values, have+bytes+textSpare)
	}
}
