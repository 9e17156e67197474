"""Filters: SQL's nulls, exact literals, prefixes, and every row that holds, no other."""

import datetime
import itertools
import json
import math
import random
from decimal import Decimal

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from .rows import ksv, same, values
from .wire import refused


def small(kind, *column):
    """A table with id as key and the values as column `x`."""
    return pa.table({"id": list(range(len(column))), "x": pa.array(column, kind)})


def ids(client, name, *where):
    return sorted(values(client.get(name, where=list(where)), "id"))


def test_null_is_unknown(state, name):
    state.store(name, small(pa.int64(), 1, 2, None), ["id"])
    for condition, wanted in (
            (["x", "!=", 1], [1]), (["x", "=", 1], [0]), (["x", "not in", [1]], [1]),
            (["x", "not in", [1, None]], []), (["x", "in", [1, None]], [0]),
            (["x", "is null"], [2]), (["x", "is null", None], [2]), (["x", "is not null"], [0, 1]),
            (["x", "<=", 2], [0, 1]), (["x", "not in", []], [0, 1, 2]), (["x", "in", []], []),
            (["x", "between", [1, 2]], [0, 1]), (["x", "between", [2, 1]], [])):
        assert ids(state.client, name, condition) == wanted, condition
    either = state.client.get(name, where=[[["x", "=", 1]], [["x", "is null"]]])
    assert sorted(values(either, "id")) == [0, 2]
    assert state.client.count(name, where=[]) == 3
    assert state.client.count(name, where=[[]]) == 3


def test_nan_equals_nothing_and_zeros_are_one(state, name):
    for kind in (pa.float64(), pa.float32(), pa.float16()):
        numbers = [math.nan, 1.0, -0.0, 0.0, None]
        table = small(kind, *numbers)
        state.store(f"{name}_{kind}", table, ["id"])
        for condition, wanted in (
                (["x", "=", 0], [2, 3]), (["x", ">=", 0], [1, 2, 3]), (["x", "!=", 1], [0, 2, 3]),
                (["x", "<=", 1], [1, 2, 3]), (["x", "is not null"], [0, 1, 2, 3]),
                (["x", "=", "NaN"], []), (["x", "!=", "NaN"], [0, 1, 2, 3]),
                (["x", "not in", [1, 2]], [0, 2, 3]), (["x", "in", [0, 1]], [1, 2, 3]),
                (["x", "<", "Infinity"], [1, 2, 3]), (["x", ">", "-Infinity"], [1, 2, 3]),
                (["x", "=", -0.0], [2, 3]), (["x", "between", [0, 1]], [1, 2, 3])):
            assert ids(state.client, f"{name}_{kind}", condition) == wanted, (kind, condition)


@pytest.mark.parametrize("place", ["value", "key"])
def test_a_literal_outside_the_range_of_the_type_compares_as_a_number(state, name, place):
    table = pa.table({"id": [0, 1], "x": pa.array([-5, 7], pa.int32())})
    state.store(name, table, *((["id"], ["x"]) if place == "key" else (["id"], [])))
    for condition, wanted in (
            (["x", ">", 2147483648], []), (["x", "<=", 2147483648], [0, 1]),
            (["x", "!=", 2147483648], [0, 1]), (["x", "=", 1e30], []), (["x", "<", 7.5], [0, 1]),
            (["x", "=", 7.5], []), (["x", ">=", 6.5], [1]), (["x", ">", -5.5], [0, 1]),
            (["x", "<", -4.5], [0]), (["x", "=", 7.0], [1]), (["x", "in", [7, 1e30, 7.5]], [1]),
            (["x", "not in", [7, 1e30]], [0]), (["x", "between", [-1e30, 1e30]], [0, 1]),
            (["x", "<", -1e300], []), (["x", "!=", 7.5], [0, 1]), (["x", "=", "7"], [1])):
        assert ids(state.client, name, condition) == wanted, condition


@pytest.mark.parametrize("place", ["value", "key"])
def test_integers_beyond_what_a_double_holds_are_exact(state, name, place):
    small_one, large = 9007199254740992, 9007199254740993
    table = pa.table({"id": [0, 1], "x": [small_one, large]})
    state.store(name, table, *((["x"], ["id"]) if place == "key" else (["id"], [])))
    for condition in (["x", "=", large], ["x", ">", small_one], ["x", "in", [large, 5]],
                      ["x", "not in", [small_one]], ["x", "between", [large, large]],
                      ["x", ">=", large], ["x", "=", str(large)]):
        assert ids(state.client, name, condition) == [1], condition


@pytest.mark.parametrize(("kind", "value"), [
    (pa.date32(), "2024-02-30"), (pa.date32(), 1), (pa.int64(), "abc"), (pa.int64(), True),
    (pa.timestamp("us"), "yesterday"), (pa.timestamp("us", "UTC"), "2024-13-01"), (pa.bool_(), "maybe"),
    (pa.bool_(), 1), (pa.string(), 5), (pa.decimal128(9, 2), "1.2.3"), (pa.time32("s"), "25:00:00"),
    (pa.duration("s"), "five"), (pa.binary(), {"base64": "***"}), (pa.binary(), 7),
    (pa.float64(), "1,5"), (pa.int64(), {"base64": "AA=="}), (pa.int64(), [1])], ids=str)
def test_a_literal_that_is_no_value_of_the_type_is_refused(client, name, kind, value):
    client.put(name, small(kind, None), sharding_key=["id"])
    for op, literal in (("=", value), ("in", [value]), ("<", value)):
        with refused("LITERAL_.*|OPERATOR_TYPE|FILTER_INVALID", "x",
                     value if isinstance(value, str) else ""):
            client.get(name, where=[["x", op, literal]])


def test_decimals_are_compared_exactly(state, name):
    state.store(name, small(pa.decimal128(10, 2), Decimal("12.34"), Decimal("12.35")), ["id"])
    for condition, wanted in (
            (["x", "=", "12.345"], []), (["x", "<=", "12.345"], [0]), (["x", ">", "12.345"], [1]),
            (["x", "=", "12.340"], [0]), (["x", ">", "0.05"], [0, 1]), (["x", "=", 12.34], [0]),
            (["x", "<", 12.35], [0]), (["x", "!=", "12.345"], [0, 1]), (["x", "in", ["12.35", 1]], [1]),
            (["x", ">", "-1e40"], [0, 1]), (["x", "between", ["12.341", "12.350"]], [1])):
        assert ids(state.client, name, condition) == wanted, condition


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"),
                                  pa.timestamp("ns"), pa.timestamp("us", "UTC")], ids=str)
def test_time_literals_in_every_unit(state, name, kind):
    start = datetime.datetime(2024, 1, 1)
    hours = [start + datetime.timedelta(hours=i) for i in range(100)]
    column = pa.array(hours, pa.timestamp("us")).cast(pa.timestamp(kind.unit))
    if kind.tz:
        column = column.view(pa.int64()).view(kind)
    state.store(name, pa.table({"id": list(range(100)), "x": column}), ["id"])
    for text in ("2024-01-03T02:00:00", "2024-01-03 02:00", "2024-01-03T02:00:00.000000000"):
        for op, wanted in ((">", 49), ("<", 50), ("=", 1), (">=", 50), ("<=", 51), ("!=", 99)):
            assert state.client.count(name, where=[["x", op, text]]) == wanted, (op, text)
    assert state.client.count(name, where=[["x", "<", "2024-01-02"]]) == 24
    assert state.client.count(name, where=[["x", "=", "2024-01-03T02:00:00.5"]]) == 0


def test_the_zone_in_a_text_counts(state, name):
    instant = 1_692_864_000_000_000  # 2023-08-24T08:00:00Z
    kind = pa.timestamp("us", "Europe/Paris")
    state.store(name, small(pa.int64(), instant).set_column(
        1, "x", pa.array([instant]).view(kind)), ["id"])
    for text, found in (("2023-08-24T10:00:00+02:00", [0]), ("2023-08-24T08:00:00Z", [0]),
                        ("2023-08-24T10:00:00Z", []), ("2023-08-24T08:00:00", [0]),
                        ("2023-08-24 10:00:00+0200", [0]), ("2023-08-24T04:30:00-03:30", [0])):
        assert ids(state.client, name, ["x", "=", text]) == found, text


def test_a_zone_on_a_zoneless_column_is_refused(client, name):
    client.put(name, small(pa.timestamp("us"), 0), sharding_key=["id"])
    with refused("LITERAL_ZONE|LITERAL_.*", "x", "2023-08-24T08:00:00Z"):
        client.get(name, where=[["x", "=", "2023-08-24T08:00:00Z"]])


PREFIXED = ["zteam", "zteam-x", "zteam\u00ff", "zteam\U0001f600", "zteb", "zteal", "", "\U0010ffff", "z"]


@pytest.mark.parametrize("place", ["sharding", "sorting", "value"])
def test_prefixes_whose_successor_is_odd(state, name, place):
    texts = pa.table({"x": PREFIXED, "id": list(range(len(PREFIXED)))})
    keys = {"sharding": (["x"], ["id"]), "sorting": (["id"], ["x"]), "value": (["id"], [])}[place]
    state.store(name, texts, *keys)
    assert ids(state.client, name, ["x", "starts_with", "zteam"]) == [0, 1, 2, 3]
    assert ids(state.client, name, ["x", "starts_with", ""]) == list(range(len(PREFIXED)))
    assert ids(state.client, name, ["x", "starts_with", "\U0010ffff"]) == [7]
    assert ids(state.client, name, ["x", "starts_with", "zteam-x-and-more"]) == []
    binary = pa.table({"x": pa.array([b"\xff", b"\xffa", b"\xfe", b"\xff\xff"], pa.binary()),
                       "id": [0, 1, 2, 3]})
    state.store(f"{name}_binary", binary, *keys)
    for prefix, wanted in (("/w==", [0, 1, 3]), ("//8=", [3]), ("", [0, 1, 2, 3])):
        assert ids(state.client, f"{name}_binary", ["x", "starts_with", {"base64": prefix}]) == wanted


def test_a_prefix_inside_one_sharding_key_is_a_range(client, name):
    table = pa.table({"k": ["a"] * len(PREFIXED), "x": PREFIXED})
    client.put(name, table, sharding_key=["k"], sorting_key=["x"])
    plan = client.explain(name, where=[["k", "=", "a"], ["x", "starts_with", "zteam"]])
    assert plan["access"] == "range"
    assert plan["residual"] is None


def test_filters_on_columns_that_are_not_returned(state, name):
    n = 500
    table = pa.table({"a": [i % 7 for i in range(n)], "b": [f"b{i}" for i in range(n)],
                      "ts": list(range(n))})
    state.store(name, table, ["a"], ["ts"])
    where = [["ts", ">=", 100], ["a", "=", 3]]
    wanted = [f"b{i}" for i in range(100, n) if i % 7 == 3]
    found = state.client.get(name, columns=["b"], where=where)
    assert found.column_names == ["b"]
    assert values(found, "b") == wanted
    found = state.client.get(name, columns=["ts", "a"], where=[["b", "in", ["b5", "b6"]]], order="asc")
    assert found.column_names == ["ts", "a"]
    assert values(found, "ts", "a") == [(5, 5), (6, 6)]
    for columns in itertools.permutations(table.column_names):
        found = state.client.get(name, columns=list(columns), where=[["ts", "=", 17]])
        assert found.to_pylist() == table.select(list(columns)).slice(17, 1).to_pylist()


def test_a_limit_behind_a_filter_finds_the_last_rows(state, name):
    n = 50_000
    table = ksv(["a"] * n, list(range(n)), [7 if i >= n - 5 else 0 for i in range(n)])
    state.store(name, table, ["k"], ["s"])
    for where in ([["v", "=", 7]], [["k", "=", "a"], ["v", "=", 7]]):
        for order in ({}, {"order": "asc"}, {"order": "desc"}):
            found = state.client.get(name, where=where, limit=5, **order)
            assert sorted(values(found, "s")) == list(range(n - 5, n))
            assert state.client.get(name, where=where, limit=3, **order).num_rows == 3
    assert state.client.get(name, where=[["v", "=", 7]], limit=0).num_rows == 0


def test_repeated_values_give_each_row_once(state, name):
    table = ksv([f"k{i % 30}" for i in range(300)], list(range(300)))
    state.store(name, table, ["k"], ["s"])
    for where in ([["k", "in", ["k1", "k1", "k2"]]], [["s", "in", [1, 1, 31]]],
                  [["k", "in", ["k1", "k1"]], ["s", "in", [1, 1, 31]]],
                  [[["k", "=", "k1"]], [["k", "in", ["k1", "k2"]]]]):
        wanted = sorted(values(state.client.get(name, where=where), "k", "s"))
        assert len(set(wanted)) == len(wanted)
        info = state.client.info(name, where=where, endpoints="slices")
        parts = [state.client.redeem(endpoint) for endpoint in info.endpoints]
        assert sorted(row for part in parts for row in values(part, "k", "s")) == wanted


def test_row_values_compare_as_sql_has_it(state, name):
    rows = [(a, b) for a in range(5) for b in range(5)]
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    state.store(name, table, ["a"], ["b"])
    for op, test in (("<", lambda r: r < (2, 3)), ("<=", lambda r: r <= (2, 3)),
                     (">", lambda r: r > (2, 3)), (">=", lambda r: r >= (2, 3)),
                     ("=", lambda r: r == (2, 3)), ("!=", lambda r: r != (2, 3))):
        found = state.client.get(name, where=[[["a", "b"], op, [2, 3]]])
        assert sorted(values(found, "a", "b")) == [row for row in rows if test(row)], op
    found = state.client.get(name, where=[[["b", "a"], "in", [[1, 0], [2, 2], [9, 9]]]])
    assert sorted(values(found, "a", "b")) == [(0, 1), (2, 2)]


@pytest.mark.parametrize("where", [
    "[" * 1_000, "[" * 400_000, '{"a":' * 400_000, "[[" * 200 + "]]" * 200])
def test_nesting_without_end_is_refused(client, name, where):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    body = f'{{"table": {json.dumps(name)}, "where": {where}}}'.encode()
    for ask in (lambda: client.flight.do_get(flight.Ticket(body)).read_all(),
                lambda: client.flight.get_flight_info(flight.FlightDescriptor.for_command(body)),
                lambda: list(client.flight.do_action(flight.Action("Explain", body)))):
        with refused("DEPTH_LIMIT|QUERY_TOO_LARGE|REQUEST_INVALID|FILTER_INVALID|FIELD_INVALID"):
            ask()


def test_a_query_has_limits_that_name_themselves(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    with refused("IN_LIMIT", "100000"):
        client.get(name, where=[["s", "in", list(range(100_001))]])
    with refused("QUERY_TOO_LARGE", "1"):
        client.get(name, where=[["k", "=", "x" * (1 << 20)]])
    assert client.count(name, where=[["s", "in", list(range(100_000))]]) == 1


@pytest.mark.parametrize(("query", "reason", "word"), [
    ({"colums": ["k"]}, "FIELD_UNKNOWN", "colums"), ({"columns": ["nowhere"]}, "COLUMN_.*", "nowhere"),
    ({"columns": ["k", "k"]}, "COLUMN_.*|FIELD_.*", "k"), ({"where": [["x", "=", 1]]}, "COLUMN_.*", "x"),
    ({"where": [["v", "~", 1]]}, "OPERATOR_.*", "~"), ({"where": [["v", "="]]}, ".*", "v"),
    ({"where": {"v": 1}}, "FIELD_INVALID", "where"), ({"order": "up"}, "FIELD_INVALID", "order"),
    ({"limit": -1}, "FIELD_INVALID", "limit"), ({"limit": "5"}, "FIELD_INVALID", "limit"),
    ({"after": [1]}, "FIELD_CONFLICT", "order"), ({"slices": [99]}, "SLICE.*|FIELD_INVALID", "99"),
    ({"keys": [["a"]], "order": "asc"}, "FIELD_CONFLICT", "keys"),
    ({"snapshot": "nope"}, "SNAPSHOT_NOT_FOUND", "nope"),
    ({"filter": "v = 1"}, "NOT_IMPLEMENTED", "filter"),
    ({"substrait": "AA=="}, "NOT_IMPLEMENTED", "substrait"),
    ({"sql": "SELECT 1"}, "NOT_IMPLEMENTED", "sql"), ({"params": [1]}, "NOT_IMPLEMENTED", "params")],
    ids=str)
def test_a_wrong_query_is_refused_by_name(client, name, query, reason, word):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    with refused(reason, word):
        client.get(name, **query)


def test_repeated_fields_and_broken_text_are_refused(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    broken = b'{"table":"' + name.encode() + b'","columns":["\xff"]}'
    for body, reason in ((f'{{"table":"{name}","table":"{name}"}}'.encode(), "FIELD_REPEATED"),
                         (broken, "REQUEST_INVALID|FIELD_.*"),
                         (f'{{"table":"{name}"}} trailing'.encode(), "REQUEST_INVALID"),
                         (f'{{"Table":"{name}"}}'.encode(), "FIELD_UNKNOWN|FIELD_MISSING")):
        with refused(reason):
            client.flight.do_get(flight.Ticket(body)).read_all()


def test_an_unknown_name_suggests_the_nearest(client, name):
    client.put(f"{name}_trips", ksv(["a"], [1]), sharding_key=["k"])
    with refused("TABLE_NOT_FOUND", f"{name}_trips"):
        client.get(f"{name}_tripz")
    with refused("COLUMN_NOT_FOUND", "k"):
        client.get(f"{name}_trips", columns=["kk"])


def test_reading_by_keys_keeps_the_order_asked(state, name):
    table = ksv([f"k{i % 30}" for i in range(300)], list(range(300)))
    state.store(name, table, ["k"], ["s"])
    asked = [["k5", 35], ["k1", 1], ["k9", 10], ["k5", 5], ["nothing", 1], ["k1", 31]]
    found = state.client.get(name, keys=asked)
    assert values(found, "k", "s") == [("k5", 35), ("k1", 1), ("k5", 5), ("k1", 31)]
    found = state.client.get(name, keys=[["k2"], ["k1"]], columns=["s"])
    assert values(found, "s") == [*range(2, 300, 30), *range(1, 300, 30)]
    found = state.client.get(name, keys=asked, where=[["v", ">", 5]], columns=["k", "s"])
    assert values(found, "k", "s") == [("k5", 35), ("k1", 31)]


def test_nested_columns_take_null_tests_only(state, name):
    table = pa.table({"id": [0, 1, 2], "x": pa.array([[1], None, []], pa.list_(pa.int8())),
                      "y": pa.array([{"a": 1}, None, {"a": None}], pa.struct([("a", pa.int8())]))})
    state.store(name, table, ["id"])
    for column in "xy":
        assert ids(state.client, name, [column, "is null"]) == [1]
        assert ids(state.client, name, [column, "is not null"]) == [0, 2]
        with refused("OPERATOR_TYPE|LITERAL_TYPE|FILTER_INVALID", column):
            state.client.get(name, where=[[column, "=", 1]])


FILTERED = {
    "i": (pa.int16(), [None, -5, 0, 3, 3, 9]), "f": (pa.float32(), [None, -1.5, 0.0, 2.5, math.nan]),
    "t": (pa.string(), [None, "", "a", "ab", "b"]), "b": (pa.bool_(), [None, True, False]),
    "d": (pa.decimal128(6, 1), [None, Decimal("-2.5"), Decimal("0.0"), Decimal("7.5")]),
}
LITERALS = {"i": [-5, 0, 3, 2.5, 100], "f": [-1.5, 0, 2.5, 9], "t": ["", "a", "abc"],
            "b": [True, False], "d": ["-2.5", 0, "7.45", 7.5]}
COMPARE = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
           "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def truth(row, condition):
    """SQL's answer to one condition: True, False or None."""
    column, op, literal = condition
    value = row[column]

    def compare(op, literal):
        if value is None or literal is None:
            return None
        other = Decimal(str(literal)) if column == "d" else literal
        return COMPARE[op](value, other)

    if op in COMPARE:
        return compare(op, literal)
    if op == "between":
        answers = [compare(">=", literal[0]), compare("<=", literal[1])]
        return False if False in answers else None if None in answers else True
    answers = [compare("=", item) for item in literal]
    hit = True if True in answers else None if None in answers else False
    return hit if op == "in" else (None if hit is None else not hit)


def test_random_filters_give_exactly_the_rows_that_hold(state, name):
    rng = random.Random(20240229)
    rows = [{"k": f"k{i % 6}", "s": i, **{column: rng.choice(pool)
                                          for column, (_, pool) in FILTERED.items()}}
            for i in range(600)]
    schema = pa.schema([("k", pa.string()), ("s", pa.int64()),
                        *((column, kind) for column, (kind, _) in FILTERED.items())])
    table = pa.Table.from_pylist(rows, schema=schema)
    state.store(name, table, ["k"], ["s"], slices=3)

    def condition():
        column = rng.choice(list(FILTERED))
        op = rng.choice([*COMPARE, "in", "not in", "between"])
        if column == "b" and op not in ("=", "!=", "in", "not in"):
            op = "="
        if op in COMPARE:
            return [column, op, rng.choice(LITERALS[column])]
        count = 2 if op == "between" else rng.randint(1, 3)
        literals = [rng.choice(LITERALS[column]) for _ in range(count)]
        if op != "between" and rng.random() < 0.2:
            literals.append(None)
        return [column, op, literals]

    for _ in range(60):
        groups = [[condition() for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.4:
            groups = [[["k", "=", "k3"], *group] for group in groups]

        def holds(row, groups=groups):
            return any(all(row["k"] == "k3" if c[0] == "k" else truth(row, c) is True for c in group)
                       for group in groups)

        found = state.client.get(name, where=groups, columns=["k", "s"])
        assert sorted(values(found, "s")) == [row["s"] for row in rows if holds(row)], groups
    same(state.client.get(name), table, "ks")
