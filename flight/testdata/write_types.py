"""Writes types.txt: each line a base64 schema of one column x, a tab, pyarrow's str(type)."""

import base64
import sys

import pyarrow as pa

plain = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(),
    pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(), pa.binary(0), pa.binary(16), pa.date32(), pa.date64(),
    pa.decimal32(9, 2), pa.decimal64(18, 0), pa.decimal128(38, 10), pa.decimal128(5, -3),
    pa.decimal256(76, 75), pa.month_day_nano_interval(),
]
timed = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
for unit in ("s", "ms", "us", "ns"):
    timed += [pa.timestamp(unit), pa.timestamp(unit, "UTC"), pa.timestamp(unit, "Europe/Paris"),
              pa.timestamp(unit, "+05:30"), pa.duration(unit)]
not_null = pa.field("élément", pa.int64(), nullable=False)
nested = [
    pa.list_(pa.int64()), pa.list_(not_null), pa.large_list(pa.string()), pa.list_view(pa.int8()),
    pa.large_list_view(pa.date32()), pa.list_(pa.float32(), 3),
    pa.struct([]), pa.struct([("a", pa.int64()), not_null]),
    pa.struct([pa.field("a", pa.int64(), metadata={"k": "v"})]),
    pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int64(), keys_sorted=True),
    pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.decimal128(9, 2), True),
    pa.run_end_encoded(pa.int16(), pa.string()), pa.run_end_encoded(pa.int64(), pa.float64()),
    pa.list_(pa.list_(pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.dictionary(pa.int32(), pa.large_string()))))]))),
    pa.sparse_union([pa.field("a", pa.int64()), not_null]),
    pa.dense_union([pa.field("a", pa.int64()), not_null], [5, 9]),
]

with open(sys.argv[1], "w", encoding="utf-8") as out:
    for type_ in plain + timed + nested:
        schema = pa.schema([pa.field("x", type_)]).serialize().to_pybytes()
        out.write(f"{base64.b64encode(schema).decode()}\t{type_}\n")
