"""What each mode writes, which row wins, and what a failed stream leaves."""

import threading

import pyarrow as pa
import pytest

from .raw import BreakablePut
from .rows import ksv, same, values
from .wire import PutStream, durable_in, keyed, refused


def rows_of(client, name):
    return sorted(values(client.get(name), "k", "s", "v"))


@pytest.mark.parametrize("spread", ["one batch", "three batches", "three streams"])
def test_a_key_brought_three_times(state, name, spread):
    def bring(table_name, mode):
        parts = [ksv(["a"], [1], [v]) for v in (1, 2, 3)]
        if spread == "one batch":
            parts = [pa.concat_tables(parts).combine_chunks()]
        streams = [[part] for part in parts] if spread == "three streams" else [parts]
        for stream in streams:
            state.client.put(table_name, state.cut([b for part in stream for b in part.to_batches()]),
                             schema=keyed(parts[0].schema, ["k"], ["s"]), mode=mode)

    bring(f"{name}_u", "upsert")
    bring(f"{name}_i", "insert_ignore")
    state.settle(f"{name}_u")
    assert rows_of(state.client, f"{name}_u") == [("a", 1, 3)]
    assert rows_of(state.client, f"{name}_i") == [("a", 1, 1)]
    with refused("KEY_EXISTS", "a"):
        bring(f"{name}_x", "insert")
    state.client.fold(f"{name}_u")
    assert rows_of(state.client, f"{name}_u") == [("a", 1, 3)]


def test_deleted_rows_stay_deleted(state, name):
    state.store(name, ksv(["a"] * 10, list(range(1, 11))), ["k"], ["s"])
    client = state.client
    client.fold(name)
    client.put(name, ksv(["a"] * 5, [1, 2, 3, 4, 5]), mode="delete")
    client.put(name, ksv(["a"], [3], [33]))
    wanted = [("a", 3, 33), *(("a", s, s - 1) for s in range(6, 11))]
    assert rows_of(client, name) == wanted
    for i in range(300):
        client.put(name, ksv([f"other{i}"], [i]))
    state.settle(name)
    client = state.client
    found = client.get(name, where=[["k", "=", "a"]])
    assert sorted(values(found, "k", "s", "v")) == wanted
    state.client.fold(name)
    found = state.client.get(name, where=[["k", "=", "a"]])
    assert sorted(values(found, "k", "s", "v")) == wanted
    assert state.client.count(name) == 306


def test_insert_refuses_a_key_that_exists_and_writes_nothing_of_that_commit(state, name):
    state.store(name, ksv(["a", "b"], [1, 1]), ["k"], ["s"])
    with refused("KEY_EXISTS", "row 1", "b"):
        state.client.put(name, ksv(["c", "b", "d"], [1, 1, 1]), mode="insert", atomic=True)
    assert state.client.count(name) == 2
    state.store(name, ksv(["c", "d"], [1, 1]), mode="insert")
    assert state.client.count(name) == 4


def test_insert_ignore_keeps_what_is_there(state, name):
    state.store(name, ksv(["a", "b"], [1, 1], [1, 2]), ["k"], ["s"])
    state.store(name, ksv(["b", "c", "c"], [1, 1, 1], [20, 30, 31]), mode="insert_ignore")
    assert rows_of(state.client, name) == [("a", 1, 1), ("b", 1, 2), ("c", 1, 30)]


def wide(**columns):
    return pa.table({key: pa.array(column, pa.string() if key == "k" else pa.int64())
                     for key, column in columns.items()})


def test_merge_changes_the_columns_sent(state, name):
    state.store(name, wide(k=["x"], a=[1], b=[2]), ["k"])

    def now():
        return sorted(values(state.client.get(name), "k", "a", "b"))

    state.store(name, wide(k=["x"], b=[None]), mode="merge")
    assert now() == [("x", 1, None)]
    state.store(name, wide(k=["x"], a=[5]), mode="merge")
    assert now() == [("x", 5, None)]
    state.store(name, wide(k=["y", "x"], a=[7, 8]), mode="merge")
    assert now() == [("x", 8, None), ("y", 7, None)]
    state.store(name, wide(k=["y", "y"], b=[1, 2]), mode="merge")
    assert now() == [("x", 8, None), ("y", 7, 2)]


def test_update_refuses_a_missing_key(state, name):
    state.store(name, wide(k=["x"], a=[1], b=[2]), ["k"])
    state.store(name, wide(k=["x"], a=[5]), mode="update")
    with refused("ROW_NOT_FOUND|KEY_NOT_FOUND", "row 1", "y"):
        state.client.put(name, wide(k=["x", "y"], a=[6, 7]), mode="update")
    assert values(state.client.get(name), "k", "a", "b") == [("x", 5, 2)]


def test_merge_without_a_not_null_column_is_refused_for_new_rows(client, name):
    schema = pa.schema([("k", pa.string()), pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())])
    client.create(name, schema, ["k"])
    client.put(name, wide(k=["x"], a=[1], b=[1]))
    client.put(name, wide(k=["x"], b=[5]), mode="merge")
    with refused("NULL_VALUE|COLUMN_.*", "a"):
        client.put(name, wide(k=["y"], b=[5]), mode="merge")
    assert values(client.get(name), "k", "a", "b") == [("x", 1, 5)]


def test_delete_needs_keys_only_and_ignores_the_rest(state, name):
    state.store(name, ksv(["a"] * 4, [1, 2, 3, 4]), ["k"], ["s"])
    keys = pa.table({"k": ["a", "a"], "s": [1, 9]})
    state.store(name, keys, mode="delete")
    state.store(name, ksv(["a"], [2], [777]), mode="delete")
    assert sorted(values(state.client.get(name), "s")) == [3, 4]


def test_delete_by_filter(state, name):
    n = 5000
    state.store(name, ksv([f"k{i % 50}" for i in range(n)], list(range(n))), ["k"], ["s"])
    client = state.client
    for where, count in (([["k", "=", "k3"]], 100), ([["k", "=", "k3"]], 0),
                         ([["v", ">=", 4000]], 980), ([["k", "=", "k4"], ["s", "<", 1000]], 20)):
        result = client.delete(name, where=where)
        assert result["rows"] == count, where
        assert client.count(name, where=where) == 0
    state.settle(name)
    assert state.client.count(name) == n - 100 - 980 - 20
    with refused("FIELD_MISSING|FIELD_.*|REQUEST_.*", "all"):
        state.client.delete(name)
    assert state.client.delete(name, all=True)["rows"] == n - 1100
    assert state.client.count(name) == 0


def test_a_failure_in_the_last_batch_leaves_what_is_durable(client, name):
    loose = pa.schema([("k", pa.string()), ("s", pa.int64()), ("at", pa.timestamp("us"))])

    def batch(number, bad=False):
        at = [number * 10 + i for i in range(100)]
        if bad:
            at[3] = 253_402_214_400_000_000  # 9999-12-31 does not fit nanoseconds
        return pa.record_batch([[f"k{i}" for i in range(100)], [number * 100 + i for i in range(100)],
                                pa.array(at).view(pa.timestamp("us"))], schema=loose)

    strict = loose.set(2, pa.field("at", pa.timestamp("ns")))
    client.create(name, strict, ["k"], ["s"])
    with refused("VALUE_OUT_OF_RANGE", "batch 49", "row 3", "at") as caught:
        with client.putting(name, loose) as stream:
            for number in range(50):
                stream.write(batch(number, bad=number == 49))
    kept = durable_in(caught.value)
    assert kept.rows == kept.batches * 100
    assert client.count(name) == kept.rows
    rest = client.put(name, [batch(number) for number in range(kept.batches, 50)], schema=loose)
    assert rest.rows == 5000 - kept.rows
    assert client.count(name) == 5000


@pytest.mark.parametrize("mode", ["upsert", "insert", "merge", "replace_table"])
def test_an_atomic_stream_is_all_or_nothing(gateway, client, name, mode):
    before = ksv(["z"], [0])
    client.put(name, before, sharding_key=["k"], sorting_key=["s"])
    schema = before.schema
    stream = BreakablePut(gateway.address, {"table": name, "mode": mode, "atomic": True}, schema)
    for i in range(30):
        stream.write(ksv(["a"] * 1000, list(range(i * 1000, i * 1000 + 1000))).to_batches()[0])
    assert client.count(name) == 1
    stream.break_off()
    same(client.get(name), before, "ks")
    ack = client.put(name, [ksv(["a"] * 1000, list(range(i * 1000, i * 1000 + 1000))).to_batches()[0]
                            for i in range(30)], schema=schema, mode=mode, atomic=True)
    assert (ack.batches, ack.rows) == (30, 30_000)
    commits = set(values(client.get(name, columns=["_sheaf_commit"], where=[["k", "=", "a"]]),
                         "_sheaf_commit"))
    assert len(commits) == 1 or mode == "replace_table"
    assert client.count(name) == (30_000 if mode == "replace_table" else 30_001)


def test_replace_table_shows_the_old_or_the_new_rows(own_gateway, name):
    gateway = own_gateway()
    client = gateway.client
    old = ksv(["old"] * 500, list(range(500)))
    client.put(name, old, sharding_key=["k"], sorting_key=["s"])
    n, done, seen = 200_000, threading.Event(), set()

    def count():
        other = client.again()
        while not done.is_set():
            seen.add(other.count(name))

    counter = threading.Thread(target=count)
    counter.start()
    try:
        new = ksv([f"k{i % 99}" for i in range(n)], list(range(n))).combine_chunks()
        broken = BreakablePut(gateway.address, {"table": name, "mode": "replace_table"}, new.schema)
        for batch in new.to_batches(max_chunksize=20_000)[:5]:
            broken.write(batch)
        broken.break_off()
        assert client.count(name) == 500
        client.put(name, new.to_batches(max_chunksize=20_000), schema=new.schema, mode="replace_table")
        assert client.count(name) == n
    finally:
        done.set()
        counter.join()
    assert seen <= {500, n}
    assert client.describe(name)["sharding_key"] == ["k"]
    client.put(name, new.slice(0, 0), mode="replace_table")
    assert client.count(name) == 0


def test_a_resumed_stream_doubles_nothing(state, name):
    batches = [ksv(["a"] * 100, list(range(i * 100, i * 100 + 100))).to_batches()[0] for i in range(20)]
    schema = keyed(batches[0].schema, [])  # a table without key, where a double would show

    stream = BreakablePut(state.gateway.address, {"table": name, "resume": "load-1"}, schema)
    assert stream.read_ack() == {"batches": 0, "rows": 0, "commit": 0}
    for batch in batches[:8]:
        stream.write(batch)
    stream.read_acks_until(8)
    stream.break_off()
    state.settle(name)

    stream = PutStream(state.client.flight, {"table": name, "resume": "load-1"}, schema)
    before = stream.read_ack()
    assert (before.batches, before.rows) == (8, 800)
    for batch in batches[before.batches:]:
        stream.write(batch)
    stream.finish()
    assert (stream.acks[-1].batches, stream.acks[-1].rows) == (20, 2000)
    assert sorted(values(state.client.get(name), "s")) == list(range(2000))


def test_add_columns_adds_what_is_unknown(state, name):
    state.store(name, ksv(["a"], [1]), ["k"], ["s"])
    more = ksv(["b"], [1]).append_column("note", pa.array(["new"]))
    with refused("COLUMN_NOT_FOUND|COLUMN_UNKNOWN", "note"):
        state.client.put(name, more)
    state.store(name, more, add_columns=True)
    found = state.client.get(name, order="asc")
    assert found.column_names == ["k", "s", "v", "note"]
    assert values(found, "k", "note") == [("a", None), ("b", "new")]


def test_columns_are_matched_by_name(state, name):
    state.store(name, wide(k=["x"], a=[1], b=[2]), ["k"])
    state.store(name, wide(b=[20], k=["y"]))
    state.store(name, wide(a=[30], b=[31], k=["z"]))
    assert sorted(values(state.client.get(name), "k", "a", "b")) == [
        ("x", 1, 2), ("y", None, 20), ("z", 30, 31)]


def test_a_repeated_column_is_refused(client, name):
    schema = pa.schema([("k", pa.string()), ("k", pa.string())])
    with refused("COLUMN_REPEATED|COLUMN_.*", "k"):
        client.put(name, pa.table([["a"], ["b"]], schema=schema), sharding_key=["k"])


def test_a_column_dropped_and_added_again_is_empty(state, name):
    table = wide(k=["a", "b", "c"], x=[1, 2, 3], y=[4, 5, 6])
    state.store(name, table.slice(0, 2), ["k"])
    client = state.client
    client.fold(name)
    client.put(name, table.slice(2))
    client.act("AlterTable", table=name, rename_columns={"y": "z"})
    client.act("AlterTable", table=name, drop_columns=["x"])
    assert client.get(name).column_names == ["k", "z"]
    from .wire import b64
    for kind in (pa.int64(), pa.string()):
        client.act("AlterTable", table=name, add_columns=b64(pa.schema([("x", kind)]).serialize()))
        state.settle(name)
        client = state.client
        found = client.get(name, order="asc")
        assert found.schema.field("x").type == kind
        assert values(found, "k", "z", "x") == [("a", 4, None), ("b", 5, None), ("c", 6, None)]
        client.act("AlterTable", table=name, drop_columns=["x"])


def test_a_column_widens_under_its_rows(state, name):
    from .wire import b64

    narrow = pa.table({"k": ["a", "b"], "n": pa.array([1, None], pa.int8()),
                       "at": pa.array([5, 6], pa.time32("s"))})
    state.store(name, narrow, ["k"])
    wider = pa.schema([("n", pa.int64()), ("at", pa.time64("us"))])
    state.client.act("AlterTable", table=name, widen_columns=b64(wider.serialize()))
    state.store(name, pa.table({"k": ["c"], "n": [1 << 40], "at": pa.array([7], pa.time64("us"))}))
    found = state.client.get(name, order="asc")
    assert values(found, "n") == [1, None, 1 << 40]
    assert found["at"].cast(pa.int64()).to_pylist() == [5_000_000, 6_000_000, 7]
    assert values(state.client.get(name, where=[["n", ">=", 1]]), "k") in (["a", "c"], ["c", "a"])
    with refused("WIDEN_INVALID|ALTER_INVALID", "n"):
        state.client.act("AlterTable", table=name,
                         widen_columns=b64(pa.schema([("n", pa.int32())]).serialize()))


def test_keys_are_renamed_only(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    for change in ({"drop_columns": ["k"]}, {"drop_columns": ["s"]}):
        with refused("KEY_IMMUTABLE|KEY_.*", *change["drop_columns"]):
            client.act("AlterTable", table=name, **change)
    client.act("AlterTable", table=name, rename_columns={"k": "key"})
    assert client.describe(name)["sharding_key"] == ["key"]
    assert client.count(name, where=[["key", "=", "a"], ["s", "=", 1]]) == 1


@pytest.mark.parametrize("field", ["stage", "transaction", "if", "ttl", "returning", "upsert"])
def test_reserved_and_unknown_command_fields_are_refused(client, name, field):
    with refused("NOT_IMPLEMENTED|FIELD_UNKNOWN", field):
        client.put(name, ksv(["a"], [1]), sharding_key=["k"], **{field: "x"})
    with refused("TABLE_NOT_FOUND"):
        client.describe(name)


def test_an_unknown_mode_is_refused(client, name):
    with refused("MODE_UNKNOWN|FIELD_INVALID", "upsrt"):
        client.put(name, ksv(["a"], [1]), sharding_key=["k"], mode="upsrt")


def test_two_inserts_of_one_key_at_once(own_gateway, name):
    client = own_gateway().client
    client.create(name, ksv([], []).schema, ["k"], ["s"])
    for number in range(30):
        outcomes, ready = [], threading.Barrier(4)

        def insert(who, number=number, outcomes=outcomes, ready=ready):
            ready.wait()
            try:
                client.put(name, ksv(["a"], [number], [who]), mode="insert")
                outcomes.append(who)
            except Exception as error:
                assert "KEY_EXISTS" in str(error)

        threads = [threading.Thread(target=insert, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(outcomes) == 1
        assert values(client.get(name, where=[["k", "=", "a"], ["s", "=", number]]), "v") == outcomes
