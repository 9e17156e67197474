"""Keys: their order, their edges, what is refused, and what a filter on them touches."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

from .rows import ksv, same, values
from .wire import keyed, refused


def test_negative_integers_come_in_their_order(state, name):
    state.store(name, ksv(["a"] * 5, [1, -1, 0, -100, -2]), ["k"], ["s"])
    client = state.client
    assert values(client.get(name, order="asc"), "s") == [-100, -2, -1, 0, 1]
    assert values(client.get(name, order="desc"), "s") == [1, 0, -1, -2, -100]
    found = client.get(name, where=[["s", ">=", -1], ["s", "<", 1]])
    assert sorted(values(found, "s")) == [-1, 0]
    found = client.get(name, where=[["k", "=", "a"], ["s", ">=", -1], ["s", "<", 1]])
    assert values(found, "s") == [-1, 0]


ENDS = [
    (pa.int8(), -128, 127), (pa.int16(), -(1 << 15), (1 << 15) - 1),
    (pa.int32(), -(1 << 31), (1 << 31) - 1), (pa.int64(), -(1 << 63), (1 << 63) - 1),
    (pa.uint8(), 0, 255), (pa.uint16(), 0, (1 << 16) - 1), (pa.uint32(), 0, (1 << 32) - 1),
    (pa.uint64(), 0, (1 << 64) - 1),
]


@pytest.mark.parametrize(("kind", "low", "high"), ENDS, ids=lambda value: str(value)[:12])
def test_bounds_at_the_ends_of_a_type(state, name, kind, low, high):
    table = pa.table({"k": ["a"] * 3, "s": pa.array([low, 1, high], kind), "v": [1, 2, 3]})
    state.store(name, table, ["k"], ["s"])
    for where, wanted in (
            ([["s", ">", low]], 2), ([["s", "<", high]], 2), ([["s", ">=", low]], 3),
            ([["s", "<=", high]], 3), ([["s", "<", low]], 0), ([["s", ">", high]], 0),
            ([["s", "<=", low]], 1), ([["s", ">=", high]], 1), ([["s", "<", high + 1]], 3),
            ([["s", ">=", low - 1]], 3), ([["s", ">", high + 1]], 0), ([["s", "=", high]], 1),
            ([["s", "between", [low - 5, high + 5]]], 3), ([["s", "!=", low]], 2)):
        for more in ([], [["k", "=", "a"]]):
            assert state.client.count(name, where=where + more) == wanted, (where, more)


@pytest.mark.parametrize(("kind", "texts"), [
    (pa.date32(), ["-5877641-06-23", "1970-01-01", "2999-12-31"]),
    (pa.timestamp("s"), ["1677-01-01T00:00:00", "1969-12-31T23:59:59", "2999-01-01T00:00:00"]),
    (pa.timestamp("ns", "UTC"), ["1677-09-21T00:12:43.145224193Z", "1970-01-01T00:00:00Z",
                                 "2262-04-11T23:47:16.854775807Z"])], ids=str)
def test_bounds_at_the_ends_of_time(client, name, kind, texts):
    bits = pa.int32() if kind.bit_width == 32 else pa.int64()
    numbers = {"date32[day]": [-(1 << 31), 0, 376_199], "timestamp[s]": [-9_246_182_400, -1,
               32_472_144_000], "timestamp[ns, tz=UTC]": [-(1 << 63) + 1, 0, (1 << 63) - 1]}[str(kind)]
    table = pa.table({"k": ["a"] * 3, "s": pa.array(numbers, bits).view(kind)})
    client.put(name, table, sharding_key=["k"], sorting_key=["s"])
    for text, less in zip(texts[1:], (1, 2)):
        assert client.count(name, where=[["s", "<", text]]) == less
        assert client.count(name, where=[["k", "=", "a"], ["s", ">=", text]]) == 3 - less
        assert client.count(name, where=[["s", "=", text]]) == 1


STRINGS = ["", " ", "foo", "foo\0", "foo\0bar", "foobar"]
BINARY = [b"", b"\x00", b"\x00\x01", b"\x00\xff", b"\x00\xff\x00", b"a\x00\x01b", b"a\x00\xffb",
          b"\xff", b"\xff\xff"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(),
                                  pa.dictionary(pa.int16(), pa.string())], ids=str)
def test_keys_that_begin_alike_stay_apart(state, name, kind):
    def column(texts):
        array = pa.array(texts)
        return array.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else (
            array.cast(kind))

    pairs = [(a, b) for a in STRINGS for b in STRINGS]
    mixed = random.Random(5).sample(pairs, len(pairs))
    table = pa.table({"k": column([a for a, _ in mixed]), "s": column([b for _, b in mixed])})
    state.store(name, table, ["k"], ["s"], slices=1)
    assert values(state.client.get(name, order="asc"), "k", "s") == sorted(pairs)
    for a in STRINGS:
        found = state.client.get(name, where=[["k", "=", a]])
        assert values(found, "k", "s") == [(a, b) for b in sorted(STRINGS)]
        for b in STRINGS:
            assert state.client.count(name, where=[["k", "=", a], ["s", "=", b]]) == 1


def test_a_string_key_with_two_more_columns_behind(state, name):
    rows = [(a, n, b) for a in STRINGS for n in (-1, 0) for b in STRINGS]
    table = pa.table({"a": [r[0] for r in rows], "n": [r[1] for r in rows], "b": [r[2] for r in rows]})
    state.store(name, table, ["a"], ["n", "b"], slices=2)
    for a in STRINGS:
        assert values(state.client.get(name, where=[["a", "=", a]]), "a", "n", "b") == sorted(
            row for row in rows if row[0] == a)
        found = state.client.get(name, where=[["a", "=", a], ["n", "=", 0], ["b", "<=", "foo"]])
        assert values(found, "b") == ["", " ", "foo"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()], ids=str)
def test_binary_keys_are_ordered_by_their_bytes(state, name, kind):
    table = pa.table({"k": pa.array(BINARY[::-1], kind), "s": list(range(len(BINARY)))})
    state.store(name, table, ["k"], ["s"], slices=1)
    assert values(state.client.get(name, order="asc"), "k") == BINARY


KEY_POOLS = [
    (pa.bool_(), [False, True]),
    (pa.int16(), [-300, -1, 0, 5, 300]), (pa.uint64(), [0, 1, 1 << 63, (1 << 64) - 1]),
    (pa.string(), ["", "a", "b", "ba", "日"]), (pa.binary(2), [b"\0\0", b"a\xff", b"\xff\0"]),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    (pa.date64(), [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29)]),
    (pa.time32("ms"), [datetime.time(0, 0), datetime.time(12, 30), datetime.time(23, 59, 59)]),
    (pa.time64("us"), [datetime.time(0, 0), datetime.time(0, 0, 0, 1), datetime.time(23, 59)]),
    (pa.timestamp("ms"), [datetime.datetime(1960, 1, 1), datetime.datetime(2024, 1, 1)]),
    (pa.timestamp("us", "UTC"), [datetime.datetime(1960, 1, 1, tzinfo=datetime.timezone.utc),
                                 datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)]),
    (pa.duration("s"), [datetime.timedelta(days=-3), datetime.timedelta(0),
                        datetime.timedelta(seconds=5)]),
    (pa.decimal32(5, 2), [decimal.Decimal("-1.50"), decimal.Decimal("0.00"), decimal.Decimal("9.99")]),
    (pa.decimal128(38, 10), [decimal.Decimal(-(10 ** 20)), decimal.Decimal(0), decimal.Decimal(1)]),
    (pa.decimal256(76, 0), [decimal.Decimal(-(10 ** 70)), decimal.Decimal(3), decimal.Decimal(10 ** 70)]),
]


@pytest.mark.parametrize("place", ["sharding", "sorting"])
@pytest.mark.parametrize(("kind", "pool"), KEY_POOLS, ids=lambda value: str(value)[:30])
def test_every_key_type_orders_and_finds(state, name, kind, pool, place):
    keys = pa.array(pool[::-1], kind)
    other = pa.array(["x"] * len(pool))
    table = pa.table({"key": keys, "other": other})
    sharding, sorting = (["key"], ["other"]) if place == "sharding" else (["other"], ["key"])
    state.store(name, table, sharding, sorting, slices=4)
    client = state.client
    ordered = client.get(name, order="asc")
    assert values(ordered, "key") == values(table.slice(0).take(list(range(len(pool)))[::-1]), "key")
    assert values(client.get(name, order="desc"), "key") == values(table, "key")
    for text, value in zip(literals(keys), values(table, "key")):
        found = client.get(name, where=[["key", "=", text]])
        assert values(found, "key") == [value]
        below = client.get(name, where=[["key", "<", text]], order="asc")
        assert values(below, "key") == [v for v in values(ordered, "key") if v < value]


def literals(keys):
    """Key values as the JSON of a query has them."""
    import base64

    for value in keys.to_pylist():
        if isinstance(value, bytes):
            yield {"base64": base64.b64encode(value).decode()}
        elif isinstance(value, datetime.timedelta):
            seconds = int(value.total_seconds())
            yield f"{'-' if seconds < 0 else ''}PT{abs(seconds)}S"
        elif isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date too
            yield value.isoformat()
        elif isinstance(value, decimal.Decimal):
            yield format(value, "f")
        else:
            yield value


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.list_(pa.int8()),
                                  pa.struct([("a", pa.int8())]), pa.null(),
                                  pa.month_day_nano_interval(),
                                  pa.dictionary(pa.int8(), pa.float64())], ids=str)
def test_a_type_that_is_no_key_is_refused_by_name(client, name, kind):
    schema = pa.schema([("k", kind), ("s", pa.int64())])
    for sharding, sorting in ((["k"], ["s"]), (["s"], ["k"])):
        with refused("KEY_TYPE_UNSUPPORTED|KEY_TYPE", "k"):
            client.create(name, schema, sharding, sorting)
    with refused("TABLE_NOT_FOUND"):
        client.get(name)


@pytest.mark.parametrize("column", ["k", "s"])
def test_a_null_in_a_key_is_refused_with_its_row(client, name, column):
    table = ksv([f"k{i}" for i in range(100)], list(range(100)))
    column_values = table[column].to_pylist()
    column_values[57] = None
    broken = table.set_column(table.column_names.index(column), column,
                              pa.array(column_values, table.schema.field(column).type))
    client.put(name, table.slice(0, 0), sharding_key=["k"], sorting_key=["s"])
    with refused("KEY_NULL|NULL_VALUE", "row 57", column, "null"):
        client.put(name, broken)
    assert client.count(name) == 0


def test_keys_named_again_must_be_the_same(client, name):
    table = ksv(["a"], [1])
    client.put(name, table, sharding_key=["k"], sorting_key=["s"], slices=4)
    client.put(name, table)
    client.put(name, table, sharding_key=["k"], sorting_key=["s"], slices=4)
    client.put(name, table, schema=keyed(table.schema, ["k"], ["s"]))
    for contradiction, words in (({"sorting_key": ["v"]}, ["s", "v"]),
                                 ({"sharding_key": ["v"]}, ["k", "v"]),
                                 ({"slices": 5}, ["4", "5"]),
                                 ({"sharding_key": ["k", "s"]}, ["k", "s"])):
        with refused("KEY_CONFLICT|SLICES_CONFLICT", *words):
            client.put(name, table, **contradiction)
        metadata = {f"sheaf.{key}": str(value).replace("'", '"')
                    for key, value in contradiction.items()}
        with refused("KEY_CONFLICT|SLICES_CONFLICT", *words):
            client.put(name, table, schema=table.schema.with_metadata(metadata))
    described = client.describe(name)
    assert (described["sharding_key"], described["sorting_key"]) == (["k"], ["s"])
    assert described["slices"] == 4


def test_the_encoded_key_has_a_limit(state, name):
    state.store(name, ksv(["a" * 1000], [1]), ["k"], ["s"])
    assert state.client.count(name, where=[["k", "=", "a" * 1000]]) == 1
    for key in ("a" * 1100, "\0" * 600):  # an embedded NUL takes two bytes
        with refused("KEY_TOO_LARGE", "1024", "row 1"):
            state.client.put(name, ksv(["b", key], [1, 1]))
    assert state.client.count(name) == 1


def test_a_key_has_eight_columns_at_most(client, name):
    nine = pa.table({f"c{i}": [1] for i in range(9)})
    columns = nine.column_names
    with refused("KEY_COLUMNS_LIMIT|KEY_INVALID", "8"):
        client.put(name, nine, sharding_key=columns[:4], sorting_key=columns[4:])
    client.put(name, nine, sharding_key=columns[:4], sorting_key=columns[4:8])
    assert client.count(name, where=[[f"c{i}", "=", 1] for i in range(9)]) == 1


def test_impossible_keys_are_refused(client, name):
    table = ksv(["a"], [1])
    for keys in ({"sharding_key": ["k"], "sorting_key": ["k"]}, {"sharding_key": ["k", "k"]},
                 {"sorting_key": ["s"]}, {"sharding_key": [], "sorting_key": ["s"]},
                 {"sharding_key": ["nowhere"]}, {"sharding_key": ["k"], "slices": 0},
                 {"sharding_key": ["k"], "slices": 1025}):
        with refused("KEY_.*|COLUMN_.*|SLICES_INVALID|FIELD_.*"):
            client.put(name, table, **keys)
        with refused("TABLE_NOT_FOUND"):
            client.describe(name)


def test_a_put_to_an_unknown_table_says_how_to_name_keys(client, name):
    with refused("TABLE_NOT_FOUND", "sharding_key"):
        client.put(name, ksv(["a"], [1]))


def test_narrower_integers_are_taken_as_keys_and_found(state, name):
    state.store(name, pa.table({"k": pa.array([1], pa.int64()), "v": [0]}), ["k"])
    for number, kind in enumerate((pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint32()), 10):
        state.store(name, pa.table({"k": pa.array([number], kind), "v": [number]}))
        assert values(state.client.get(name, where=[["k", "=", number]]), "v") == [number]


def test_other_types_are_refused_as_keys(client, name):
    client.put(name, pa.table({"k": [1], "v": [0]}), sharding_key=["k"])
    for bad in (pa.array([1], pa.uint64()), pa.array([1.0]), pa.array(["1"])):
        with refused("TYPE_MISMATCH", "k", str(bad.type).replace("double", "float64")):
            client.put(name, pa.table({"k": bad, "v": [0]}))
    with refused("KEY_COLUMN_MISSING|COLUMN_MISSING|KEY_MISSING", "k"):
        client.put(name, pa.table({"v": [0]}))
    assert client.count(name) == 1


def test_in_on_part_of_a_sharding_key(state, name):
    pairs = [(p1, p2) for p1 in range(10) for p2 in ("x", "y", "z")]
    table = pa.table({"p1": [a for a, _ in pairs], "p2": [b for _, b in pairs],
                      "s": list(range(30))})
    state.store(name, table, ["p1", "p2"], ["s"])
    for where, wanted in (
            ([["p1", "in", [0, 7]], ["p2", "=", "x"]], [(0, "x"), (7, "x")]),
            ([["p2", "=", "x"], ["p1", "in", [7, 0]]], [(0, "x"), (7, "x")]),
            ([["p1", "=", 0], ["p2", "in", ["x", "y"]]], [(0, "x"), (0, "y")]),
            ([["p2", "in", ["y", "x"]], ["p1", "=", 0]], [(0, "x"), (0, "y")]),
            ([[["p1", "p2"], "in", [[0, "x"], [7, "y"]]]], [(0, "x"), (7, "y")])):
        assert sorted(values(state.client.get(name, where=where), "p1", "p2")) == wanted
        plan = state.client.explain(name, where=where)
        assert plan["access"] in ("shard", "range", "point"), where
        assert len(plan["slices"]) <= 2
        assert plan["residual"] is None
    assert state.client.explain(name, where=[["p1", "=", 0]])["access"] == "full"


def test_in_on_both_keys_far_apart_scans_nothing_between(state, name):
    n = 100_000
    table = ksv(["a"] * n + ["b"], [*range(n), 1])
    state.store(name, table, ["k"], ["s"], slices=4)
    where = [["k", "in", ["b", "a"]], ["s", "in", [n - 1, 1, 1]]]
    found = state.client.get(name, where=where)
    assert sorted(values(found, "k", "s")) == [("a", 1), ("a", n - 1), ("b", 1)]
    plan = state.client.explain(name, where=where, analyze=True)
    assert plan["access"] == "point"
    assert plan["ranges"] == 4
    assert plan["rows_returned"] == 3
    assert plan["rows_scanned"] < 10_000


def test_a_bound_behind_a_free_column_and_an_inequality(state, name):
    rows = [(a, b) for a in range(6) for b in range(10)]
    table = pa.table({"k": ["x"] * 60 + ["y"] * 60, "a": [a for a, _ in rows] * 2,
                      "b": [b for _, b in rows] * 2})
    state.store(name, table, ["k"], ["a", "b"])
    plan = state.client.explain(name, where=[["k", "=", "x"], ["b", ">", 5]])
    assert plan["access"] == "shard"
    assert "b" in plan["residual"]
    found = state.client.get(name, where=[["k", "=", "x"], ["b", ">", 5]])
    assert values(found, "a", "b") == [row for row in rows if row[1] > 5]
    plan = state.client.explain(name, where=[["k", "=", "x"], ["a", "!=", 3]])
    assert plan["access"] in ("shard", "range")
    found = state.client.get(name, where=[["k", "=", "x"], ["a", "!=", 3]])
    assert values(found, "a", "b") == [row for row in rows if row[0] != 3]


@pytest.mark.parametrize(("where", "access", "touched", "left"), [
    ([["k", "=", "k1"]], "shard", 1, False),
    ([["k", "in", ["k1", "k1", "k2"]]], "shard", 2, False),
    ([["k", "=", "k1"], ["s", "=", 5]], "point", 1, False),
    ([["k", "=", "k1"], ["s", ">=", 5], ["s", "<", 9]], "range", 1, False),
    ([["k", "=", "k1"], ["s", "between", [9, 5]]], "none", 0, False),
    ([["k", "in", []]], "none", 0, False),
    ([["k", "=", "k1"], ["k", "=", "k2"]], "none", 0, False),
    ([["k", "is null"]], "none", 0, False),
    ([["s", "=", 5]], "full", 8, True),
    ([["k", "=", "k1"], ["v", "=", 5]], "shard", 1, True),
    ([["k", ">", "k1"]], "full", 8, False),  # slices are in key order: a range in each
    ([], "full", 8, False),
])
def test_what_a_filter_on_keys_touches(client, name, where, access, touched, left):
    table = ksv([f"k{i % 20}" for i in range(400)], list(range(400)))
    client.put(name, table, sharding_key=["k"], sorting_key=["s"], slices=8)
    plan = client.explain(name, where=where, analyze=True)
    assert plan["access"] == access
    assert len(plan["slices"]) <= touched if access in ("shard", "point", "range") else (
        len(plan["slices"]) == touched)
    assert plan["of"] == 8
    assert (plan["residual"] is not None) == left
    assert plan["table"].endswith(name)
    wanted = [row for row in table.to_pylist() if holds(row, where)]
    assert plan["rows_returned"] == len(wanted)
    assert plan["rows_scanned"] >= plan["rows_returned"]
    same(client.get(name, where=where), pa.Table.from_pylist(wanted, schema=table.schema), "ks")


def holds(row, where):
    """Whether a row of not-null values passes a list of conditions."""
    tests = {"=": lambda a, b: a == b, "in": lambda a, b: a in b, ">": lambda a, b: a > b,
             ">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "is null": lambda a, b: False,
             "between": lambda a, b: b[0] <= a <= b[1]}
    return all(tests[op](row[column], value[0] if value else None)
               for column, op, *value in where)


def test_a_table_without_key_appends_and_numbers_its_rows(state, name):
    table = pa.table({"v": [5, 5, 7]})
    state.store(name, table, [])
    state.store(name, table, mode="insert")
    client = state.client
    found = client.get(name, columns=["v", "_sheaf_id"], order="asc")
    assert sorted(values(found, "v")) == [5, 5, 5, 5, 7, 7]
    ids = values(found, "_sheaf_id")
    assert ids == sorted(ids)
    assert len(set(ids)) == 6
    assert client.get(name).column_names == ["v"]
    one = client.get(name, where=[["_sheaf_id", "=", ids[2]]], columns=["_sheaf_id"])
    assert values(one, "_sheaf_id") == [ids[2]]
    after = client.get(name, order="asc", after=[ids[3]], columns=["_sheaf_id"])
    assert values(after, "_sheaf_id") == ids[4:]
    for mode in ("insert_ignore", "merge", "update", "delete"):
        with refused("MODE_.*", mode):
            client.put(name, table, mode=mode)


def test_the_commit_of_a_row_can_be_read_and_filtered(state, name):
    first = state.store(name, ksv(["a", "b"], [1, 1]), ["k"], ["s"])
    second = state.store(name, ksv(["b", "c"], [1, 1]))
    found = state.client.get(name, columns=["k", "_sheaf_commit"], order="asc")
    commits = dict(values(found, "k", "_sheaf_commit"))
    assert set(commits) == {"a", "b", "c"}
    assert commits["a"] <= first.commit < commits["b"] <= second.commit
    newer = state.client.get(name, columns=["k"], where=[["_sheaf_commit", ">", first.commit]])
    assert sorted(values(newer, "k")) == ["b", "c"]
