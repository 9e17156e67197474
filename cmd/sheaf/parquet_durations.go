package main

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// Parquet has no durations: writers of Arrow store int64 and note the type
// beside it. arrow-go restores the note but then reads no such column, so the
// numbers are read as what they are and get their type back afterwards.

// readDurationsAsNumbers makes reader give int64 wherever a column, or what it
// nests, is a duration.
func readDurationsAsNumbers(reader *pqarrow.FileReader) {
	var visit func(fields []pqarrow.SchemaField)
	visit = func(fields []pqarrow.SchemaField) {
		for i := range fields {
			if numbers, changed := withNumbers(fields[i].Field.Type); changed {
				fields[i].Field.Type = numbers
			}
			visit(fields[i].Children)
		}
	}
	visit(reader.Manifest.Fields)
}

// withNumbers is dt with int64 in place of durations, and whether it had any.
func withNumbers(dt arrow.DataType) (numbers arrow.DataType, changed bool) {
	field := func(f arrow.Field) arrow.Field {
		inner, has := withNumbers(f.Type)
		f.Type, changed = inner, changed || has
		return f
	}
	switch dt := dt.(type) {
	case *arrow.DurationType:
		return arrow.PrimitiveTypes.Int64, true
	case *arrow.StructType:
		fields := slices.Clone(dt.Fields())
		for i := range fields {
			fields[i] = field(fields[i])
		}
		numbers = arrow.StructOf(fields...)
	case *arrow.ListType:
		numbers = arrow.ListOfField(field(dt.ElemField()))
	case *arrow.LargeListType:
		numbers = arrow.LargeListOfField(field(dt.ElemField()))
	case *arrow.FixedSizeListType:
		numbers = arrow.FixedSizeListOfField(dt.Len(), field(dt.ElemField()))
	case *arrow.MapType:
		key, item := field(dt.KeyField()), field(dt.ItemField())
		made := arrow.MapOfFields(key, item)
		made.KeysSorted = dt.KeysSorted
		numbers = made
	}
	if !changed {
		return dt, false
	}
	return numbers, true
}

// withDurations is batch with the types of schema, whose columns are the
// batch's. The caller releases it; memory is shared.
func withDurations(batch arrow.RecordBatch, schema *arrow.Schema) arrow.RecordBatch {
	columns := slices.Clone(batch.Columns())
	fields := slices.Clone(batch.Schema().Fields())
	for i, column := range columns {
		declared := schema.Field(i).Type
		if _, has := withNumbers(declared); !has {
			continue
		}
		data := retyped(column.Data(), declared)
		columns[i], fields[i].Type = array.MakeFromData(data), declared
		data.Release()
		defer columns[i].Release()
	}
	metadata := batch.Schema().Metadata()
	return array.NewRecordBatch(arrow.NewSchema(fields, &metadata), columns, batch.NumRows())
}

// retyped is data as the type dt, which has the same buffers. The caller
// releases it.
func retyped(data arrow.ArrayData, dt arrow.DataType) arrow.ArrayData {
	children := slices.Clone(data.Children())
	if nested, ok := dt.(arrow.NestedType); ok {
		for i, field := range nested.Fields() {
			children[i] = retyped(data.Children()[i], field.Type)
			defer children[i].Release()
		}
	}
	if len(children) == 0 && data.DataType().ID() != arrow.INT64 {
		data.Retain()
		return data
	}
	return array.NewData(dt, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
}
