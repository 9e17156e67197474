"""`--memory` bounds the process: what reading clients do at once costs a fifth more at most."""

import threading
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

from . import LONG
from .wire import Client

MEMORY = (1 << 30) if LONG else (256 << 20)
MOST = MEMORY * 1.2
SCANS = 64


def gateway_of(own_gateway):
    return own_gateway("--memory", str(MEMORY))


def together(work, threads=SCANS):
    """Run work(number) in as many threads at once; the first error is raised."""
    errors = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def connection(gateway):
    return Client(gateway.address, generic_options=[("grpc.use_local_subchannel_pool", 1)])


def count_rows(reader):
    rows = 0
    for chunk in reader:
        rows += chunk.data.num_rows
    return rows


def test_many_scans_of_ordinary_rows(own_gateway, name):
    gateway = gateway_of(own_gateway)
    rows, step = (6_000_000, 200_000) if LONG else (600_000, 100_000)
    schema = pa.schema([("k", pa.int64()), ("a", pa.float64()), ("text", pa.string())])
    rng = np.random.default_rng(1)
    texts = pa.array([f"a text of some length, number {n}" for n in range(step)])
    with gateway.client.putting(name, schema, sharding_key=["k"]) as stream:
        for first in range(0, rows, step):
            keys = np.arange(first, first + step)
            stream.write(pa.record_batch([keys, rng.random(step), texts], schema=schema))
    # Of several runs that overlap, half of the keys twice.
    again = rng.choice(rows, step, replace=False)
    gateway.client.put(name, pa.table([again, rng.random(step), texts], schema=schema))

    def scan(number):
        with closing(connection(gateway)) as client:
            query = {"order": "asc"} if number % 8 == 0 else {}
            assert count_rows(client.reader(name, **query)) == rows

    together(scan)
    assert gateway.peak_memory() < MOST


def test_many_slow_scans(own_gateway, name):
    """Clients that read a message and then nothing for long hold little, and stop nobody."""
    gateway = gateway_of(own_gateway)
    rows, step = 1_000_000, 100_000
    schema = pa.schema([("k", pa.int64()), ("noise", pa.binary(100))])
    rng = np.random.default_rng(2)
    with gateway.client.putting(name, schema, sharding_key=["k"]) as stream:
        for first in range(0, rows, step):
            noise = pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(100), step, [None, pa.py_buffer(rng.bytes(100 * step))])
            stream.write(pa.record_batch([np.arange(first, first + step), noise], schema=schema))
    readers = []
    for _ in range(SCANS):
        client = connection(gateway)
        reader = client.reader(name)
        readers.append((client, reader, reader.read_chunk().data.num_rows))
    assert gateway.client.count(name, where=[["k", "<", 1000]]) == 1000
    assert gateway.peak_memory() < MOST
    for client, reader, first in readers[:8]:
        assert first + count_rows(reader) == rows
        client.close()
    for client, reader, _ in readers[8:]:
        reader.cancel()
        client.close()


@pytest.mark.parametrize("row_bytes", [1 << 20, 12 << 20])
def test_many_scans_of_large_rows(own_gateway, name, row_bytes):
    gateway = gateway_of(own_gateway)
    rows = (1 << 30 if LONG else 72 << 20) // row_bytes
    schema = pa.schema([("k", pa.int64()), ("noise", pa.binary())])
    rng = np.random.default_rng(3)
    with gateway.client.putting(name, schema, sharding_key=["k"]) as stream:
        for number in range(rows):
            noise = rng.bytes(row_bytes - number)
            stream.write(pa.record_batch([[number], pa.array([noise], pa.binary())], schema=schema))

    def scan(number):
        with closing(connection(gateway)) as client:
            found = {}
            for chunk in client.reader(name):
                for k, noise in zip(chunk.data["k"].to_pylist(), chunk.data["noise"]):
                    found[k] = noise.as_buffer().size
            assert found == {number: row_bytes - number for number in range(rows)}

    together(scan)
    assert gateway.peak_memory() < MOST


def test_many_writers_of_large_messages(own_gateway, name):
    gateway = gateway_of(own_gateway)
    size, rounds = (8 << 20, 20) if LONG else (4 << 20, 4)
    schema = pa.schema([("k", pa.int64()), ("noise", pa.binary(1024))])
    gateway.client.put(name, [], schema=schema, sharding_key=["k"])
    rows = size // 1024
    rng = np.random.default_rng(4)
    noise = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(1024), rows, [None, pa.py_buffer(rng.bytes(1024 * rows))])

    def write(number):
        with closing(connection(gateway)) as client, client.putting(name, schema) as stream:
            for turn in range(rounds):
                first = (number * rounds + turn) * rows
                stream.write(pa.record_batch([np.arange(first, first + rows), noise], schema=schema))

    together(write, 32)
    assert gateway.client.count(name) == 32 * rounds * rows
    # What gRPC holds of messages that are not admitted yet comes on top.
    assert gateway.peak_memory() < 3 * MEMORY
