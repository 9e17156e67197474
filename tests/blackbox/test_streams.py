"""DoPut and DoGet streams: acknowledgements, empty and odd messages, message sizes."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from .raw import BreakablePut
from .rows import ksv, same, values
from .wire import Durable, keyed, refused


def test_a_refusal_reaches_a_client_that_only_writes(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    before = client.get(name)
    other = keyed(ksv(["a"], [1]).schema, ["s"], ["k"])
    with refused("KEY_CONFLICT", "k", "s"):
        described = flight.FlightDescriptor.for_command(json.dumps({"table": name}))
        writer, _ = client.flight.do_put(described, other)
        batch = ksv(["b"] * 100, list(range(100))).to_batches()[0]
        with contextlib.suppress(OSError, pa.ArrowException):
            for _ in range(1000):
                writer.write_batch(batch)
        writer.close()
    same(client.get(name), before, "ks")


@pytest.mark.parametrize("read", ["never", "late"])
def test_a_client_need_not_read_acknowledgements(client, name, read):
    rows, batches = 5, 20_000
    table = ksv([f"k{i % 500}" for i in range(rows * batches)], list(range(rows * batches)))
    described = flight.FlightDescriptor.for_command(json.dumps({"table": name}))
    writer, acks = client.flight.do_put(described, keyed(table.schema, ["k"], ["s"]))
    for batch in table.combine_chunks().to_batches(max_chunksize=rows):
        writer.write_batch(batch)
    writer.done_writing()
    if read == "late":
        last = None
        while (ack := acks.read()) is not None:
            last = json.loads(ack.to_pybytes())
        assert (last["batches"], last["rows"]) == (batches, rows * batches)
    writer.close()
    same(client.get(name), table, "ks")


def test_a_stream_without_a_batch_makes_the_table(client, name):
    schema = keyed(ksv([], []).schema, ["k"], ["s"])
    with client.putting(name, schema) as stream:
        pass
    assert stream.acks == [Durable(0, 0, 0)]
    assert client.get(name).num_rows == 0
    assert client.describe(name)["rows"] == 0


def test_the_first_acknowledgement_needs_no_end_of_the_stream(client, name):
    schema = keyed(ksv([], []).schema, ["k"], ["s"])
    with client.putting(name, schema) as stream:
        for n in range(1, 4):
            stream.write(ksv(["a"], [n]).to_batches()[0])
            while stream.read_ack().rows < n:
                pass
            assert client.count(name) == n  # acknowledged is visible
    assert stream.acks[-1].rows == 3


def test_batches_of_no_rows_count_and_carry_nothing(state, name):
    kinds = pa.schema([("k", pa.string()), ("word", pa.dictionary(pa.int8(), pa.string()))])

    def batch(keys):
        return pa.record_batch([keys, pa.array(keys).dictionary_encode().cast(kinds.field(1).type)],
                               schema=kinds)

    with state.client.putting(name, keyed(kinds, ["k"])) as stream:
        for keys in (["a", "b", "c"], [], ["d", "e"]):
            stream.write(batch(keys))
    assert stream.acks[-1].batches == 3
    assert stream.acks[-1].rows == 5
    state.settle(name)
    chunks = state.client.chunks(name)
    assert all(found.num_rows for found, _ in chunks)
    words = [word for found, _ in chunks for word in found["word"].to_pylist()]
    assert sorted(words) == list("abcde")


def test_a_message_far_above_the_grpc_default_is_taken(client, name):
    n = 1_200_000
    table = pa.table({"k": np.arange(n), "text": pa.array(["x" * 50] * n)})
    assert table.nbytes > 64 << 20
    ack = client.put(name, [table.combine_chunks().to_batches()[0]],
                     schema=keyed(table.schema, ["k"]))
    assert (ack.batches, ack.rows) == (1, n)
    assert client.count(name) == n


def test_a_message_above_max_message_is_refused_by_that_name(own_gateway, name):
    client = own_gateway("--max-message", "8MiB").client
    table = pa.table({"k": np.arange(600_000), "text": pa.array(["x" * 50] * 600_000)})
    big = table.combine_chunks().to_batches()[0]
    with refused("MESSAGE_TOO_LARGE", "8", "smaller", "durable: "):
        with client.putting(name, keyed(table.schema, ["k"])) as stream:
            stream.write(big.slice(0, 1000))
            while stream.read_ack().rows < 1000:
                pass
            stream.write(big)
    assert client.count(name) == 1000
    client.put(name, table.combine_chunks().to_batches(max_chunksize=50_000), schema=table.schema)
    assert client.count(name) == 600_000


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_bodies_compressed_by_ipc_are_taken(state, name, codec):
    table = ksv([f"k{i % 9}" for i in range(3000)], list(range(3000)))
    described = flight.FlightDescriptor.for_command(json.dumps({"table": name}))
    options = flight.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression=codec))
    writer, _ = state.client.flight.do_put(described, keyed(table.schema, ["k"], ["s"]), options)
    with writer:
        for batch in state.cut(table):
            writer.write_batch(batch)
    state.settle(name)
    same(state.client.get(name), table, "ks")


def test_no_message_exceeds_what_a_default_client_takes(state, name):
    n = 60_000
    table = pa.table({"k": np.arange(n), "text": pa.array([f"{i:0200d}" for i in range(n)])})
    state.store(name, table, ["k"])
    small = state.client.again(generic_options=[("grpc.max_receive_message_length", 4 << 20)])
    found = small.get(name)
    assert found.num_rows == n
    assert values(found.sort_by("k"), "text")[-1] == f"{n - 1:0200d}"


def test_a_row_larger_than_a_message_arrives_whole(state, name):
    large = "y" * (6 << 20)
    table = pa.table({"k": list(range(50)), "text": ["x" * 100] * 25 + [large] + ["z"] * 24})
    state.store(name, table, ["k"])
    same(state.client.get(name), table, "k")
    reader = state.client.reader(name, where=[["k", "=", 25]])
    assert values(reader.read_all(), "text") == [large]


def test_a_row_above_the_row_limit_is_refused(client, name):
    rows = pa.table({"k": [1, 2], "text": ["small", "x" * (17 << 20)]})
    with refused("ROW_TOO_LARGE", "16", "row 1"):
        client.put(name, rows, schema=keyed(rows.schema, ["k"]))
    assert client.count(name) == 0


def test_a_message_with_metadata_only_changes_nothing(client, name):
    schema = keyed(ksv([], []).schema, ["k"], ["s"])
    with client.putting(name, schema) as stream:
        stream.write(ksv(["a"], [1]).to_batches()[0])
        stream.writer.write_metadata(b"a note")
        stream.write(ksv(["a"], [2]).to_batches()[0], b"a note beside a batch")
        stream.writer.write_metadata(b"")
    assert (stream.acks[-1].batches, stream.acks[-1].rows) == (2, 2)
    assert client.count(name) == 2


def test_rows_without_columns_are_counted(state, name):
    n = 20_000
    state.store(name, ksv([f"k{i % 40}" for i in range(n)], list(range(n)),
                          [i % 10 for i in range(n)]), ["k"], ["s"])
    for query, wanted in (({}, n), ({"where": [["v", ">", 5]]}, n * 4 // 10), ({"limit": 7}, 7),
                          ({"where": [["k", "=", "k3"]]}, n // 40),
                          ({"where": [["k", "=", "nothing"]]}, 0)):
        chunks = state.client.chunks(name, columns=[], **query)
        assert sum(batch.num_rows for batch, _ in chunks) == wanted
        assert all(batch.num_columns == 0 for batch, _ in chunks)


def test_a_put_may_be_broken_off_at_any_moment(gateway, name):
    schema = keyed(ksv([], []).schema, ["k"], ["s"])
    gateway.client.put(name, [], schema=schema)
    for sent in range(5):
        stream = BreakablePut(gateway.address, {"table": name}, schema)
        for i in range(sent):
            stream.write(ksv(["a"] * 10, list(range(i * 10, i * 10 + 10))).to_batches()[0])
        if sent > 2:
            stream.read_acks_until(sent - 1)
        stream.break_off()
    assert gateway.client.count(name) >= 30
    assert gateway.client.count(name) % 10 == 0  # whole batches only


def test_calls_go_on_beside_a_client_that_reads_slowly(client, name):
    n = 400_000
    client.put(name, pa.table({"k": np.arange(n), "text": pa.array(["x" * 40] * n)}),
               sharding_key=["k"])
    slow = client.reader(name)
    slow.read_chunk()
    for _ in range(20):
        assert client.count(name, where=[["k", "=", 5]]) == 1
    assert slow.read_all().num_rows < n  # the rest of it is whole
