"""Many rows, many commits, many clients."""

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from . import LONG
from .rows import ksv, same, values

ROWS = 10_000_000 if LONG else 1_000_000


def test_many_rows_are_written_and_read(own_gateway, name):
    gateway = own_gateway("--memory", "512MiB")
    client = gateway.client
    schema = pa.schema([("device", pa.string()), ("ts", pa.timestamp("us")), ("value", pa.float64()),
                        ("status", pa.string())])
    statuses = np.array(["ok", "idle", "busy"])
    step = 65_536

    def batch(first):
        ids = np.arange(first, min(first + step, ROWS))
        return pa.record_batch([
            pa.array([f"device-{i % 1000:04d}" for i in ids]), pa.array(ids).view(pa.timestamp("us")),
            pa.array(np.round(ids * 0.01, 2)), pa.array(statuses[ids % 3])], schema=schema)

    with client.putting(name, schema, sharding_key=["device"], sorting_key=["ts"]) as stream:
        for first in range(0, ROWS, step):
            stream.write(batch(first))
    assert stream.acks[-1].rows == ROWS

    for folded in (False, True):
        if folded:
            client.fold(name)
        rows, total = 0, 0
        for chunk in client.reader(name, columns=["ts", "value"]):
            rows += chunk.data.num_rows
            total += int(np.sum(chunk.data["ts"].view(pa.int64()).to_numpy()))
        assert rows == ROWS
        assert total == ROWS * (ROWS - 1) // 2
        one = client.get(name, where=[["device", "=", "device-0007"]])
        assert one["ts"].cast(pa.int64()).to_pylist() == list(range(7, ROWS, 1000))
        assert one["value"].to_pylist() == [round(i * 0.01, 2) for i in range(7, ROWS, 1000)]
    assert gateway.memory() < 1 << 30


def test_writers_and_readers_at_once_find_each_acknowledged_row_exactly_once(own_gateway, name):
    writers, readers, seconds = 8, 8, 60 if LONG else 6
    gateway = own_gateway()
    client = gateway.client
    client.put(name, ksv([], []), sharding_key=["k"], sorting_key=["s"])
    acknowledged = [0] * writers
    failures, done = [], threading.Event()

    def guarded(work, *args):
        try:
            work(*args)
        except Exception as error:
            failures.append(error)
            done.set()

    def write(number):
        sent, other = 0, client.again()
        while not done.is_set():
            size = (1, 50, 4000)[sent % 3]
            with other.putting(name, ksv([], []).schema) as stream:
                for _ in range(3):
                    rows = range(sent, sent + size)
                    stream.write(ksv([f"w{number}-{i % 20}" for i in rows], list(rows), list(rows))
                                 .combine_chunks().to_batches()[0])
                    sent += size
            acknowledged[number] = sent

    def read(number):
        other, sharding = client.again(), [f"w{number}-{i}" for i in range(20)]
        while not done.is_set():
            least = acknowledged[number]
            found = values(other.get(name, where=[["k", "in", sharding]], columns=["s"]), "s")
            assert len(set(found)) == len(found), "a row was found twice"
            assert set(found) >= set(range(least)), "an acknowledged row is missing"

    def timer():
        done.wait(seconds)
        done.set()

    threads = [threading.Thread(target=guarded, args=(write, n)) for n in range(writers)]
    threads += [threading.Thread(target=guarded, args=(read, n % writers)) for n in range(readers)]
    threads.append(threading.Thread(target=timer))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    found = sorted(values(client.get(name), "k", "s"))
    wanted = sorted((f"w{n}-{i % 20}", i) for n in range(writers) for i in range(acknowledged[n]))
    assert found == wanted


def test_many_tiny_streams_stay_fast(own_gateway, name):
    streams = 20_000 if LONG else 2_000
    client = own_gateway().client
    client.put(name, ksv([], []), sharding_key=["k"], sorting_key=["s"], slices=16)
    for number in range(streams):
        client.put(name, ksv([f"k{number % 300}"], [number]))
    assert client.count(name) == streams
    times = []
    for number in range(0, streams, streams // 200):
        began = time.perf_counter()
        assert client.count(name, where=[["k", "=", f"k{number % 300}"], ["s", "=", number]]) == 1
        times.append(time.perf_counter() - began)
    assert sorted(times)[len(times) // 2] < 0.05
    client.fold(name)
    assert client.count(name) == streams


def test_a_load_into_very_many_slices(own_gateway, name):
    n = 200_000
    gateway = own_gateway()
    table = pa.table({"k": np.arange(n), "text": pa.array([f"text {i}" for i in range(n)])})
    gateway.client.put(name, table, sharding_key=["k"], slices=1024)
    stats = gateway.client.act("Stats", table=name)["slices"]
    assert len(stats) == 1024
    assert sum(one["rows"] for one in stats) == n
    same(gateway.client.get(name), table, "k")
    gateway.restart()
    gateway.client.fold(name)
    same(gateway.client.get(name), table, "k")


@pytest.mark.parametrize("mode", ["upsert", "replace_table"])
def test_a_stream_far_larger_than_memory(own_gateway, name, mode):
    memory, total = ("1GiB", 6 << 30) if LONG else ("128MiB", 300 << 20)
    gateway = own_gateway("--memory", memory)
    client, step = gateway.client, 16_384
    schema = pa.schema([("k", pa.int64()), ("noise", pa.binary(1000))])
    client.put(name, [], schema=schema, sharding_key=["k"])
    rng, rows = np.random.default_rng(5), total // 1008 // step * step
    noise = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(1000), step, [None, pa.py_buffer(rng.bytes(1000 * step))])
    with client.putting(name, schema, mode=mode) as stream:
        for first in range(0, rows, step):
            stream.write(pa.record_batch([np.arange(first, first + step), noise], schema=schema))
    assert stream.acks[-1].rows == rows
    assert client.count(name) == rows
    found = client.get(name, where=[["k", "=", rows - 1]])
    assert found["noise"][0].as_py() == noise[step - 1].as_py()
    assert gateway.peak_memory() < (2 << 30 if LONG else 600 << 20)


def test_very_many_tables(own_gateway):
    gateway = own_gateway()
    client = gateway.client
    for number in range(200):
        client.put(f"space{number % 10}.t{number}", ksv([f"k{number}"], [1]), sharding_key=["k"])
    gateway.restart()
    client = gateway.client
    assert len(list(client.flight.list_flights())) == 200
    for number in range(0, 200, 17):
        assert values(client.get(f"space{number % 10}.t{number}"), "k") == [f"k{number}"]


def test_very_many_columns(own_gateway, name):
    client = own_gateway().client
    columns = {"id": list(range(500)), **{f"c{i}": pa.array(np.arange(500) * i) for i in range(1000)}}
    table = pa.table(columns)
    client.put(name, table, sharding_key=["id"], slices=2)
    client.fold(name)
    same(client.get(name), table, ["id"])
    some = ["c999", "c3", "id"]
    same(client.get(name, columns=some, where=[["c500", ">", 100_000]]),
         table.filter(pa.compute.greater(table["c500"], 100_000)).select(some), ["id"])
    wide = pa.schema([("id", pa.int64()), *((f"c{i}", pa.int8()) for i in range(4096))])
    from .wire import refused

    with refused("COLUMNS_LIMIT", "4096"):
        client.create(f"{name}_wider", wide, ["id"])
