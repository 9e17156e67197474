"""The process itself: health, reflection, logs, how it stops."""

import json
import threading

import grpc
import numpy as np
import pyarrow as pa
import pytest

from .raw import BreakablePut, RawClient, field
from .rows import ksv
from .wire import keyed


def test_health_and_reflection_are_served(gateway):
    raw = RawClient(gateway.address)
    check = raw.channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"", timeout=10) == b"\x08\x01"  # SERVING
    listing = raw.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    answer, = listing(iter([field(7, b"")]), timeout=10)
    assert b"arrow.flight.protocol.FlightService" in answer
    assert b"grpc.health.v1.Health" in answer
    raw.close()


def test_a_stop_lets_running_streams_finish(own_gateway, name):
    gateway = own_gateway()
    client = gateway.client
    n = 300_000
    table = pa.table({"k": np.arange(n), "text": pa.array(["x" * 60] * n)})
    client.put(name, table, sharding_key=["k"])
    reader = client.reader(name)
    seen = reader.read_chunk().data.num_rows
    gateway.ask_to_stop()
    assert seen + reader.read_all().num_rows == n
    gateway.stop()
    gateway.expect_clean_log()
    with pytest.raises((pa.ArrowException, OSError)):
        client.again().count(name)


def test_a_stop_does_not_wait_for_ever(own_gateway, name):
    """A stream that nobody goes on with is ended; what it acknowledged stays."""
    gateway = own_gateway("--drain", "1s")
    schema = keyed(ksv([], []).schema, ["k"], ["s"])
    stream = BreakablePut(gateway.address, {"table": name}, schema)
    stream.write(ksv(["a"], [1]).to_batches()[0])
    stream.read_acks_until(1)
    gateway.ask_to_stop()
    assert gateway.process.wait(10) == 0
    stream.break_off()
    gateway.start()
    assert gateway.client.count(name) == 1


def test_logs_are_json_lines_without_what_users_stored(own_gateway, name):
    gateway = own_gateway("--log-level", "debug")
    client = gateway.client
    client.put(name, ksv(["a secret key"], [1]), sharding_key=["k"])
    client.get(name, where=[["k", "=", "a secret key"]])
    with pytest.raises((pa.ArrowException, KeyError)):
        client.get("no_such_table")
    gateway.stop()
    lines = gateway.log_path.read_text().splitlines()
    for line in lines:
        entry = json.loads(line)
        assert {"time", "level", "msg"} <= set(entry)
    assert "a secret key" not in "\n".join(lines)
    assert any("TABLE_NOT_FOUND" in line for line in lines)


def test_too_many_streams_are_refused_by_name(own_gateway, name):
    gateway = own_gateway()
    gateway.client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    raw = RawClient(gateway.address)
    stop, calls = threading.Event(), []

    def wait_for_ever():
        stop.wait()
        yield b""

    try:
        for _ in range(1000):
            calls.append(raw.channel.stream_stream("/arrow.flight.protocol.FlightService/DoPut")(
                wait_for_ever()))
        refusals = []
        for _ in range(200):
            try:
                raw.get(name.encode(), timeout=10)
            except grpc.RpcError as error:
                refusals.append(error)
                break
        assert refusals, "a thousand open streams are no limit"
        assert refusals[0].code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "[STREAM_LIMIT]" in refusals[0].details()
        assert "1000" in refusals[0].details().replace(",", "")
    finally:
        for call in calls:
            call.cancel()
        stop.set()
        raw.close()
    assert gateway.client.count(name) == 1
