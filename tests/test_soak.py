"""The soak in short, and that it would see what it is there to see."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from soak.model import Keys, Stripe, Wrong
from soak.run import Soak
from soak.watch import MIB, Log, grown


def test_a_short_soak(tmp_path):
    found = Soak(tmp_path, seconds=9, seed=7, devices=200, places=50).run()
    assert found["passed"], found["text"]
    for what in ("rows written", "rows deleted", "restarts after kill -9", "restarts after SIGTERM"):
        assert found["counts"].get(what), found["counts"]
    for kind in ("lookup", "scan", "fold", "part of a snapshot", "delete by filter"):
        assert found["operations"].get(kind), found["operations"]


@pytest.fixture
def stripe():
    """Ten operations, of which six are acknowledged: operation n wrote keys n to n + 9,
    operation 5 deleted its keys."""
    stripe = Stripe(1, Keys(devices=8, places=10, stripes=2))
    for number in range(1, 11):
        stripe.sending(np.arange(number, number + 10), delete=number == 5)
        if number == 6:
            stripe.acknowledge(6)
    return stripe


def after(stripe, operations):
    """What the stripe holds when so many operations have taken effect, as a table."""
    versions = np.zeros(stripe.keys.size, np.int64)
    for number in range(1, operations + 1):
        versions[number:number + 10] = 0 if number == 5 else number
    there = np.flatnonzero(versions)
    return pa.Table.from_batches([stripe.keys.batch(1, there, versions[there])])


def observed(stripe, table):
    return stripe.keys.observe(table)[1]


@pytest.mark.parametrize("operations", range(6, 11))
def test_any_first_part_of_what_was_sent_explains_an_answer(stripe, operations):
    with stripe.reading() as view:
        assert view.check(observed(stripe, after(stripe, operations))) == operations
        low = stripe.keys.places
        view.check(observed(stripe, after(stripe, operations)), low, 2 * low)
        newer = after(stripe, operations)
        newer = newer.filter(pc.greater(newer["v"], 3))
        view.check(observed(stripe, newer), above=3)


def test_a_restart_may_lose_only_what_was_not_acknowledged(stripe):
    assert stripe.settle(observed(stripe, after(stripe, 8))) == 2
    with stripe.reading() as view:
        view.check(observed(stripe, after(stripe, 8)))
        with pytest.raises(Wrong, match="too many"):
            view.check(observed(stripe, after(stripe, 9)))


@pytest.mark.parametrize("operations", range(6))
def test_an_acknowledged_operation_that_is_missing_is_seen(stripe, operations):
    with pytest.raises(Wrong, match="explains the answer"):
        stripe.settle(observed(stripe, after(stripe, operations)))


def test_a_lost_row_is_seen(stripe):
    with pytest.raises(Wrong, match="1 rows missing"):
        stripe.settle(observed(stripe, after(stripe, 7).slice(1)))


def test_half_an_operation_is_seen(stripe):
    half = np.where(np.arange(stripe.keys.size) < 12, observed(stripe, after(stripe, 7)),
                    observed(stripe, after(stripe, 6)))
    with pytest.raises(Wrong, match="explains the answer"):
        stripe.settle(half)


def test_a_row_twice_is_seen(stripe):
    rows = after(stripe, 7)
    twice = pa.concat_tables([rows, rows.slice(2, 1)])
    with pytest.raises(Wrong, match="more than one row"):
        stripe.keys.observe(twice)


def test_a_row_that_nobody_wrote_is_seen(stripe):
    rows = after(stripe, 7)
    unknown = rows.set_column(1, "s", pa.array([999, *rows["s"].to_pylist()[1:]]))
    with pytest.raises(Wrong, match="never written"):
        stripe.keys.observe(unknown)


@pytest.mark.parametrize(("column", "value"), [("t", "another"), ("t", None), ("x", 0.125), ("x", None)])
def test_a_wrong_value_is_seen(stripe, column, value):
    rows = after(stripe, 7)
    at = rows.column_names.index(column)
    wrong = pa.array([value, *rows[column].to_pylist()[1:]], rows.schema.field(column).type)
    with pytest.raises(Wrong, match=f"column {column} is not what was written"):
        stripe.keys.observe(rows.set_column(at, column, wrong))


def test_growth_and_slowness_are_seen():
    assert grown("memory", [100 * MIB] * 9, [120 * MIB] * 9, 1.25, 0) is None
    assert "from 100 to 130 MiB" in grown("memory", [100 * MIB] * 9, [130 * MIB] * 9, 1.25, 0)
    assert "not measured" in grown("disk", [], [1], 1, 0)
    log = Log()
    log.took("lookup", 0.1)
    assert not log.failures
    log.took("lookup", 100)
    assert "slow: lookup" in log.failures[0]
