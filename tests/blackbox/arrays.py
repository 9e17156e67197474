"""Arrays of every Arrow type that pyarrow sends, made of the values that break things."""

import decimal
import itertools

import numpy as np
import pyarrow as pa

ROWS = 300
WORDS = ["", " ", "a", "foo", "foo\0", "foo\0bar", "foobar", "ÿ", "naïve", "日本語", "😀",
         "x" * 300, "O'Brien", 'a" OR "1"="1', "%", "_", "\\", "line\nbreak", "\ufeff", "zteam"]
BYTES = [b"", b"\0", b"\xff", b"\x00\xff", b"\x00\x01", b"\xff\xff\xff", b"plain",
         bytes(range(256)), b"\x80" * 13]


def cycled(pool, rows=ROWS, nulls=True):
    """rows values of a pool, every seventh null, so that neighbours differ."""
    source = itertools.cycle(pool)
    return [None if nulls and i % 7 == 3 else next(source) for i in range(rows)]


def from_bits(bits, unsigned, floating, rows=ROWS):
    """A float array of exact bit patterns."""
    mask = np.array([i % 7 == 3 for i in range(rows)])
    pool = np.array(list(itertools.islice(itertools.cycle(bits), rows)), dtype=unsigned)
    return pa.array(pool, mask=mask).view(floating)


FLOATS = {
    "float16": from_bits([0, 0x8000, 0x3C00, 0x7C00, 0xFC00, 0x7E00, 0x7E01, 0xFE00, 1, 0x7BFF],
                         np.uint16, pa.float16()),
    "float32": from_bits([0, 0x80000000, 0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000,
                          0x7FC00001, 0xFFC12345, 1, 0x7F7FFFFF, 0x3DCCCCCD], np.uint32,
                         pa.float32()),
    "float64": from_bits([0, 1 << 63, 0x3FF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
                          0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8DEADBEEF0001, 1,
                          0x7FEFFFFFFFFFFFFF, 0x3FB999999999999A], np.uint64, pa.float64()),
    "float64 prices": pa.array(cycled([12.34, 0.01, -5.0, 1e6, 99999.99, 0.1])),
}


def integers():
    for bits in (8, 16, 32, 64):
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        yield f"int{bits}", pa.array(cycled([low, high, 0, -1, 1, 7, low + 1, high - 1]),
                                     getattr(pa, f"int{bits}")())
        yield f"uint{bits}", pa.array(cycled([0, (1 << bits) - 1, 1, 7, 1 << bits - 1]),
                                      getattr(pa, f"uint{bits}")())


def decimals():
    for kind, digits in ((pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38),
                         (pa.decimal256, 76)):
        for scale in (0, digits // 3, digits):
            with decimal.localcontext() as context:
                context.prec = 100
                greatest = decimal.Decimal(10 ** digits - 1).scaleb(-scale)
                least = decimal.Decimal(1).scaleb(-scale)
                pool = [decimal.Decimal(0), greatest, -greatest, least, -least]
                yield f"{kind.__name__}({digits}, {scale})", pa.array(cycled(pool),
                                                                     kind(digits, scale))
    yield "decimal128(5, -2)", pa.array(cycled([decimal.Decimal(1200), decimal.Decimal(-99900)]),
                                        pa.decimal128(5, -2))


def ticks(bits, *extra):
    """Whole numbers for a temporal type, its extremes among them."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return [0, 1, -1, 86_399, -86_400, low, high, *extra]


def temporal(number, kind):
    return pa.array(number, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def times():
    yield "date32", temporal(cycled(ticks(32, -719_162, -141_428, 19_782)), pa.date32())
    day = 86_400_000
    yield "date64", temporal(cycled([0, day, -day, 20_000 * day, -700_000 * day]), pa.date64())
    for unit, per in (("s", 1), ("ms", 1000)):
        yield f"time32[{unit}]", temporal(cycled([0, 1, 86_400 * per - 1]), pa.time32(unit))
    for unit, per in (("us", 10 ** 6), ("ns", 10 ** 9)):
        yield f"time64[{unit}]", temporal(cycled([0, 1, 86_400 * per - 1]), pa.time64(unit))
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Paris", "+05:30"):
            kind = pa.timestamp(unit, zone)
            yield str(kind), temporal(cycled(ticks(64, 1_709_164_800, 253_402_300_799)), kind)
        yield f"duration[{unit}]", temporal(cycled(ticks(64)), pa.duration(unit))
    intervals = [(0, 0, 0), (1, -2, 3), (-12, 31, -(10 ** 15)),
                 (2 ** 31 - 1, -(2 ** 31), 2 ** 63 - 1)]
    yield "month_day_nano_interval", pa.array(
        cycled([pa.MonthDayNano(one) for one in intervals]), pa.month_day_nano_interval())


def texts():
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(kind), pa.array(cycled(WORDS), kind)
    for kind in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(kind), pa.array(cycled(BYTES), kind)
    yield "fixed_size_binary[3]", pa.array(cycled([b"abc", bytes(3), b"\xff" * 3]), pa.binary(3))
    yield "fixed_size_binary[0]", pa.array(cycled([b""]), pa.binary(0))
    yield "string, few values", pa.array(cycled(["ok", "idle", "busy"]))
    yield "string, all different", pa.array([f"device-{i:05d}" for i in range(ROWS)])
    yield "string, no nulls, all empty", pa.array([""] * ROWS)


def dictionaries():
    for index in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        kind = pa.dictionary(getattr(pa, index)(), pa.string())
        indices = pa.array(cycled([0, 2, 1, 0, 3]), kind.index_type)
        yield f"dictionary<{index}>", pa.DictionaryArray.from_arrays(
            indices, pa.array(["a", "b", "", "日本"]))
    for label, kind, pool in (
            ("int64", pa.int64(), [5, -5, 2 ** 62]), ("binary", pa.binary(), BYTES[:4]),
            ("timestamp", pa.timestamp("us", "UTC"), [0, 1, -1]),
            ("large_string", pa.large_string(), ["x", "y"]), ("date32", pa.date32(), [1, 2]),
            ("decimal", pa.decimal128(9, 2), [decimal.Decimal("1.25"), decimal.Decimal("-3.00")]),
            ("bool", pa.bool_(), [True, False]), ("float64", pa.float64(), [0.5, -0.0])):
        yield f"dictionary of {label}", pa.DictionaryArray.from_arrays(
            pa.array(cycled(range(len(pool))), pa.int32()), pa.array(pool, kind))
    yield "dictionary, ordered", pa.DictionaryArray.from_arrays(
        pa.array(cycled([1, 0, 2]), pa.int16()), pa.array(["low", "mid", "high"]), ordered=True)
    yield "dictionary, 200 values of int8's 128", pa.DictionaryArray.from_arrays(
        pa.array(cycled(range(100)), pa.int8()), pa.array([f"value {i}" for i in range(100)]))


def nested():
    yield "list<int32>", pa.array(cycled([[], [1], [1, None, 3], list(range(20))]),
                                  pa.list_(pa.int32()))
    yield "large_list<string>", pa.array(cycled([[], ["a"], ["", None, "日本"]]),
                                         pa.large_list(pa.string()))
    yield "list_view<int64>", pa.array(cycled([[], [1], [1, None, 3]]), pa.list_view(pa.int64()))
    yield "large_list_view<string>", pa.array(cycled([[], ["a"], [None, "b"]]),
                                              pa.large_list_view(pa.string()))
    yield "fixed_size_list<double>[3]", pa.array(cycled([[1.0, -0.0, None], [0.5, 2.0, 3.0]]),
                                                 pa.list_(pa.float64(), 3))
    yield "list of not-null items", pa.array(
        cycled([[], [1, 2]]), pa.list_(pa.field("element", pa.int8(), nullable=False)))
    point = pa.struct([pa.field("x", pa.float64()), pa.field("label", pa.string())])
    yield "struct", pa.array(cycled([{"x": 1.5, "label": "a"}, {"x": None, "label": None}]), point)
    yield "struct without fields", pa.array(cycled([{}]), pa.struct([]))
    yield "list<struct>", pa.array(cycled([[], [{"x": 1.0, "label": None}, None]]), pa.list_(point))
    yield "list<list<string>>", pa.array(cycled([[], [[]], [["a"], None, ["b", "c"]]]),
                                         pa.list_(pa.list_(pa.string())))
    yield "map<string, int64>", pa.array(cycled([[], [("a", 1)], [("a", 1), ("b", None)]]),
                                         pa.map_(pa.string(), pa.int64()))
    yield "map, sorted keys", pa.array(cycled([[(1, "x"), (2, "y")]]),
                                       pa.map_(pa.int32(), pa.string(), keys_sorted=True))
    name = pa.struct([pa.field("name", pa.string())])
    child = pa.struct([pa.field("child", pa.list_(name))])
    yield "struct<list<struct<list<struct>>>>", pa.array(
        cycled([[], [{"child": []}], [{"child": [{"name": "a"}, None]}, None], [{"child": None}]]),
        pa.list_(child))
    deep, value = pa.int32(), 7
    for _ in range(12):
        deep, value = pa.list_(deep), [value]
    yield "list, twelve deep", pa.array(cycled([value, []]), deep)
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["p", "q"])
    yield "list<dictionary>", pa.ListArray.from_arrays(
        [min(4, i) for i in range(ROWS + 1)], words)
    yield "struct of every layout", pa.array(
        cycled([{"s": "a", "b": b"\0", "t": 5, "d": decimal.Decimal("1.5"), "f": True}]),
        pa.struct([("s", pa.string_view()), ("b", pa.large_binary()), ("t", pa.timestamp("ns")),
                   ("d", pa.decimal128(5, 1)), ("f", pa.bool_())]))


def run_ends():
    for ends in (pa.int16(), pa.int32(), pa.int64()):
        yield f"run_end_encoded<{ends}, string>", pa.RunEndEncodedArray.from_arrays(
            pa.array([100, 101, 250, ROWS], ends), pa.array(["a", None, "", "日本"]))
    yield "run_end_encoded<int32, double>", pa.RunEndEncodedArray.from_arrays(
        pa.array([1, ROWS], pa.int32()), pa.array([-0.0, 1.5]))


class Celsius(pa.ExtensionType):
    """An extension type that only this test knows."""

    def __init__(self):
        super().__init__(pa.float32(), "example.celsius")

    def __arrow_ext_serialize__(self):
        return b"since 1742"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        assert serialized == b"since 1742"
        return cls()


pa.register_extension_type(Celsius())


def extensions():
    yield "uuid", pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array(cycled([bytes(16), b"\xff" * 16, bytes(range(16))]), pa.binary(16)))
    yield "json", pa.ExtensionArray.from_storage(
        pa.json_(), pa.array(cycled(["{}", '{"a": 1}']), pa.string()))
    yield "bool8", pa.ExtensionArray.from_storage(
        pa.bool8(), pa.array(cycled([0, 1, -3]), pa.int8()))
    yield "opaque", pa.ExtensionArray.from_storage(
        pa.opaque(pa.binary(), "geometry", "somewhere"), pa.array(cycled(BYTES), pa.binary()))
    yield "fixed_shape_tensor", pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2, 2]),
        pa.array(cycled([[1, 2, 3, 4], [5, 6, 7, 8]], nulls=False), pa.list_(pa.int32(), 4)))
    yield "an extension of one's own", pa.ExtensionArray.from_storage(
        Celsius(), pa.array(cycled([21.5, -0.0]), pa.float32()))


def plain():
    yield "bool", pa.array(cycled([True, False, False]))
    yield "bool, no nulls", pa.array([i % 3 == 0 for i in range(ROWS)])
    yield "null", pa.nulls(ROWS)
    yield "int64, all null", pa.nulls(ROWS, pa.int64())
    yield "int64, constant", pa.array([42] * ROWS)
    yield "string, all null", pa.nulls(ROWS, pa.string())


def unions():
    kinds = pa.array([i % 2 for i in range(ROWS)], pa.int8())
    numbers, words = pa.array(range(ROWS)), pa.array([f"w{i}" for i in range(ROWS)])
    yield "sparse_union", pa.UnionArray.from_sparse(kinds, [numbers, words])
    offsets = pa.array([i // 2 for i in range(ROWS)], pa.int32())
    yield "dense_union", pa.UnionArray.from_dense(kinds, offsets, [numbers, words])


def every():
    """Every array but unions, by a label that names its type."""
    found = {}
    for source in (plain(), integers(), FLOATS.items(), decimals(), times(), texts(),
                   dictionaries(), nested(), run_ends(), extensions()):
        for label, array in source:
            assert len(array) == ROWS, label
            assert label not in found, label
            found[label] = array
    return found
