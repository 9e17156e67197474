"""Readers that vanish: what they held is given back, others are served."""

import multiprocessing
import os
import signal
import time

import numpy as np
import pyarrow as pa

from . import LONG
from .wire import Client

PROCESSES, READERS = 4, 5  # of each process
ROUNDS = 10 if LONG else 4
ROWS = 10_000_000 if LONG else 2_000_000


def read_one_message_each(address, name, started):
    """A client process: some connections read one message each, then it waits to be killed."""
    readers = []
    for _ in range(READERS):
        client = Client(address, generic_options=[("grpc.use_local_subchannel_pool", 1)])
        readers.append(client.reader(name))
        readers[-1].read_chunk()
    started.release()
    signal.pause()


def test_killed_readers_leave_nothing_behind(own_gateway, name):
    gateway = own_gateway()
    client = gateway.client
    step = 500_000
    schema = pa.schema([("k", pa.int64()), ("text", pa.string())])
    with client.putting(name, schema, sharding_key=["k"]) as stream:
        for first in range(0, ROWS, step):
            ids = np.arange(first, first + step)
            stream.write(pa.record_batch([ids, pa.array(["x" * 40] * step)], schema=schema))
    client.fold(name)
    assert client.count(name) == ROWS

    context = multiprocessing.get_context("spawn")

    def a_round():
        started = context.Semaphore(0)
        readers = [context.Process(target=read_one_message_each, args=(gateway.address, name, started))
                   for _ in range(PROCESSES)]
        for reader in readers:
            reader.start()
        for _ in readers:
            assert started.acquire(timeout=120)
        for reader in readers:
            os.kill(reader.pid, signal.SIGKILL)
        for reader in readers:
            reader.join()
        assert client.count(name, where=[["k", "=", 5]]) == 1

    a_round()  # what the first round leaves are caches
    settled = gateway.memory()
    for _ in range(ROUNDS - 1):
        a_round()
    assert quiet(gateway), "the gateway is still busy with readers that are gone"
    assert gateway.memory() < settled + (256 << 20)
    assert client.count(name) == ROWS


def test_a_reader_that_stops_early_stops_the_scan(own_gateway, name):
    gateway = own_gateway()
    client = gateway.client
    n = 1_000_000
    client.put(name, pa.table({"k": np.arange(n), "text": pa.array(["x" * 60] * n)}), sharding_key=["k"])
    for _ in range(50):
        reader = client.reader(name)
        reader.read_chunk()
        reader.cancel()
    assert quiet(gateway)
    assert client.count(name) == n


def quiet(gateway, seconds=20):
    """Whether the process stops using CPU within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = gateway.cpu_seconds()
        time.sleep(1)
        if gateway.cpu_seconds() - before < 0.2:
            return True
    return False
