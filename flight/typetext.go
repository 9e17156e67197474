package flight

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// plainTypeTexts are the types without parameters, as str(type) has them.
var plainTypeTexts = map[arrow.Type]string{
	arrow.NULL: "null", arrow.BOOL: "bool",
	arrow.INT8: "int8", arrow.INT16: "int16", arrow.INT32: "int32", arrow.INT64: "int64",
	arrow.UINT8: "uint8", arrow.UINT16: "uint16", arrow.UINT32: "uint32", arrow.UINT64: "uint64",
	arrow.FLOAT16: "halffloat", arrow.FLOAT32: "float", arrow.FLOAT64: "double",
	arrow.STRING: "string", arrow.LARGE_STRING: "large_string", arrow.STRING_VIEW: "string_view",
	arrow.BINARY: "binary", arrow.LARGE_BINARY: "large_binary", arrow.BINARY_VIEW: "binary_view",
	arrow.DATE32: "date32[day]", arrow.DATE64: "date64[ms]",
	arrow.INTERVAL_MONTHS: "month_interval", arrow.INTERVAL_DAY_TIME: "day_time_interval",
	arrow.INTERVAL_MONTH_DAY_NANO: "month_day_nano_interval",
}

// TypeText is an Arrow type in the words of pyarrow's str(type), which is what
// Arrow's C++ DataType::ToString prints.
func TypeText(dt arrow.DataType) string {
	if text, ok := plainTypeTexts[dt.ID()]; ok {
		return text
	}
	switch t := dt.(type) {
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return fmt.Sprintf("timestamp[%s, tz=%s]", t.Unit, t.TimeZone)
		}
		return fmt.Sprintf("timestamp[%s]", t.Unit)
	case *arrow.Time32Type:
		return fmt.Sprintf("time32[%s]", t.Unit)
	case *arrow.Time64Type:
		return fmt.Sprintf("time64[%s]", t.Unit)
	case *arrow.DurationType:
		return fmt.Sprintf("duration[%s]", t.Unit)
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)
	case arrow.DecimalType:
		return fmt.Sprintf("decimal%d(%d, %d)", t.BitWidth(), t.GetPrecision(), t.GetScale())
	case *arrow.DictionaryType:
		ordered := 0
		if t.Ordered {
			ordered = 1
		}
		return fmt.Sprintf("dictionary<values=%s, indices=%s, ordered=%d>", TypeText(t.ValueType), TypeText(t.IndexType), ordered)
	case *arrow.RunEndEncodedType:
		return fmt.Sprintf("run_end_encoded<run_ends: %s, values: %s>", TypeText(t.RunEnds()), TypeText(t.Encoded()))
	case *arrow.MapType:
		return mapText(t)
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("fixed_size_list<%s>[%d]", fieldText(t.ElemField()), t.Len())
	case *arrow.ListType:
		return "list<" + fieldText(t.ElemField()) + ">"
	case *arrow.LargeListType:
		return "large_list<" + fieldText(t.ElemField()) + ">"
	case *arrow.ListViewType:
		return "list_view<" + fieldText(t.ElemField()) + ">"
	case *arrow.LargeListViewType:
		return "large_list_view<" + fieldText(t.ElemField()) + ">"
	case *arrow.StructType:
		fields := make([]string, t.NumFields())
		for i, field := range t.Fields() {
			fields[i] = fieldText(field)
		}
		return "struct<" + strings.Join(fields, ", ") + ">"
	case arrow.UnionType:
		fields := make([]string, t.NumFields())
		for i, field := range t.Fields() {
			fields[i] = fmt.Sprintf("%s=%d", fieldText(field), t.TypeCodes()[i])
		}
		kind := "sparse_union<"
		if t.Mode() == arrow.DenseMode {
			kind = "dense_union<"
		}
		return kind + strings.Join(fields, ", ") + ">"
	case arrow.ExtensionType:
		return "extension<" + t.ExtensionName() + ">"
	}
	return dt.String()
}

func fieldText(field arrow.Field) string {
	text := field.Name + ": " + TypeText(field.Type)
	if !field.Nullable {
		text += " not null"
	}
	return text
}

// mapText: a map names its fields only where they are not called as usual.
func mapText(t *arrow.MapType) string {
	named := func(field arrow.Field, usual string) string {
		if field.Name == usual {
			return ""
		}
		return " ('" + field.Name + "')"
	}
	sorted := ""
	if t.KeysSorted {
		sorted = ", keys_sorted"
	}
	return "map<" + TypeText(t.KeyType()) + named(t.KeyField(), "key") + ", " +
		TypeText(t.ItemType()) + named(t.ItemField(), "value") + sorted +
		named(t.ElemField(), "entries") + ">"
}
