"""Bytes that no library sends: refused by name, and nobody else notices."""

import random

import grpc
import numpy as np
import pyarrow as pa
import pytest

from .raw import RawClient, command, field, flight_data, messages_of
from .rows import ksv
from .wire import keyed, refused

SCHEMA = keyed(pa.schema([("k", pa.int64()), ("text", pa.string())]), ["k"])


@pytest.fixture
def raw(gateway):
    client = RawClient(gateway.address)
    yield client
    client.close()


@pytest.fixture
def bystander(gateway, name):
    """A stream that is open while the test does its worst, and must finish."""
    client = gateway.client.again()
    with client.putting(f"{name}_bystander", keyed(ksv([], []).schema, ["k"], ["s"])) as stream:
        stream.write(ksv(["a"], [1]).to_batches()[0])
        yield
        stream.write(ksv(["a"], [2]).to_batches()[0])
    assert client.count(f"{name}_bystander") == 2


def expect(code, call, *words):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    found = caught.value
    codes = code if isinstance(code, tuple) else (code,)
    assert found.code() in codes, f"{found.code()}: {found.details()}"
    for word in words:
        assert word in found.details(), found.details()
    assert found.details().startswith("["), found.details()
    return found


INVALID = grpc.StatusCode.INVALID_ARGUMENT


def put(raw, name, messages, **more):
    first, rest = messages[0], messages[1:]
    return raw.put([flight_data(*first, descriptor=command(table=name, **more)),
                    *(flight_data(*message) for message in rest)])


def test_the_handmade_messages_are_right_otherwise(raw, client, name):
    batch = pa.record_batch([[1, 2], ["a", "b"]], schema=SCHEMA)
    results = put(raw, name, messages_of(SCHEMA, [batch]))
    assert b'"rows":2' in results[-1].replace(b" ", b"")
    assert client.count(name) == 2


@pytest.mark.parametrize("offsets", [[0, 5, 0], [0, 1, 2 ** 31 - 1], [0, -5, 3], [7, 8, 9], [2, 1, 0],
                                     [-1, 0, 1], [0, 2 ** 31 - 1, 3]], ids=str)
@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.list_(pa.int8()), pa.large_string(),
                                  pa.large_list(pa.int16()), pa.map_(pa.int8(), pa.int8())], ids=str)
def test_offsets_that_point_outside(raw, client, name, bystander, offsets, kind):
    sample = {"string": ["a", "bc"], "large_string": ["a", "bc"], "binary": [b"a", b"bc"]}.get(
        str(kind), [[(1, 1)], [(2, 2), (3, 3)]] if pa.types.is_map(kind) else [[1], [2, 3]])
    schema = keyed(pa.schema([("k", pa.int64()), ("text", kind)]), ["k"])
    batch = pa.record_batch([pa.array([1, 2]), pa.array(sample, kind)], schema=schema)
    (schema_message, _), (header, body) = messages_of(schema, [batch])
    width = np.int64 if "large" in str(kind) else np.int32
    good = np.array([0, 1, 3], width).tobytes()
    assert body.count(good) == 1
    broken = body.replace(good, np.array(offsets, width).tobytes())
    expect(INVALID, lambda: put(raw, name, [(schema_message, b""), (header, broken)]), "text")
    assert client.count(name) == 0


def broken_batches():
    """Batch messages whose header promises what the body does not hold."""
    batch = pa.record_batch([list(range(128)), ["x" * 10] * 128], schema=SCHEMA)
    (schema, _), (header, body) = messages_of(SCHEMA, [batch])
    rng = random.Random(3)
    yield "body cut short", [(schema, b""), (header, body[:100])]
    yield "body missing", [(schema, b""), (header, b"")]
    yield "header cut after 4 bytes", [(schema, b""), (header[:4], body)]
    yield "header cut in half", [(schema, b""), (header[:len(header) // 2], body)]
    yield "header of zeros", [(schema, b""), (bytes(200), body)]
    yield "header of random bytes", [(schema, b""), (rng.randbytes(200), body)]
    yield "body without header between", [(schema, b""), (b"", body), (header, body)]
    yield "batch before the schema", [(header, body)]
    yield "schema of random bytes", [(rng.randbytes(300), b"")]
    yield "schema cut", [(schema[:len(schema) // 2], b"")]
    yield "the schema twice", [(schema, b""), (schema, b""), (header, body)]


@pytest.mark.parametrize("messages", [pytest.param(messages, id=label)
                                      for label, messages in broken_batches()])
def test_messages_that_are_cut_off_or_garbage(raw, client, name, bystander, messages):
    expect(INVALID, lambda: put(raw, name, messages))
    assert stored(client, name) == 0


def stored(client, name):
    """Rows of a table, 0 if it was not even made."""
    listed = [info.descriptor.path[-1].decode() for info in client.flight.list_flights(name.encode())]
    return client.count(name) if name in listed else 0


def test_flipped_bits_never_end_the_process(raw, client, name, bystander):
    """Random damage to good messages: stored whole or refused, and never a crash."""
    batch = pa.record_batch([list(range(64)), [f"text {i}" for i in range(64)]], schema=SCHEMA)
    messages = messages_of(SCHEMA, [batch, batch])
    rng = random.Random(11)
    for _ in range(150):
        at, part = rng.randrange(len(messages)), rng.randrange(2)
        changed = [list(message) for message in messages]
        if not changed[at][part]:
            continue
        damaged = bytearray(changed[at][part])
        for _ in range(rng.choice((1, 4, 16))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        changed[at][part] = bytes(damaged)
        try:
            put(raw, name, [tuple(message) for message in changed])
        except grpc.RpcError as error:
            assert error.code() in (INVALID, grpc.StatusCode.RESOURCE_EXHAUSTED,
                                    grpc.StatusCode.FAILED_PRECONDITION,
                                    grpc.StatusCode.UNIMPLEMENTED), error.details()
    assert stored(client, name) <= 128


def test_calls_without_messages(raw, client, name, bystander):
    expect(INVALID, lambda: raw.put([]))
    expect(INVALID, lambda: raw.put([b""]))
    expect(INVALID, lambda: raw.put([flight_data(metadata=b"only metadata")]))
    (schema, _), = messages_of(SCHEMA, [])
    expect(INVALID, lambda: raw.put([flight_data(schema)]))  # no descriptor
    empty, _ = messages_of(pa.schema([]), [])[0], None
    expect(INVALID, lambda: put(raw, name, [empty], sharding_key=[]))  # a schema without fields
    call = raw.channel.stream_stream("/arrow.flight.protocol.FlightService/DoPut")(iter([]))
    call.cancel()


@pytest.mark.parametrize("descriptor", [
    b"", field(2, b""), field(2, b"not json"), field(2, b'{"table":5}'), field(2, b"[]"),
    field(2, b'{"table":"x","mode":5}'), b"\x08\x02" + field(2, b"\xff\xfe"), b"\x08\x01",
    b"\x08\x01" + field(3, b"") * 2, b"\x08\x01" + field(3, b"a") * 3, b"\x08\x07",
    b"\x08\x01" + field(3, b"a-b")])
def test_descriptors_that_name_nothing(raw, name, descriptor):
    (schema, _), = messages_of(SCHEMA, [])
    expect(INVALID, lambda: raw.put([flight_data(schema, descriptor=descriptor)]))


@pytest.mark.parametrize("ticket", [
    b"", random.Random(1).randbytes(32), b'{"table":5}', b"{", b"\x00", b"no-such-name!", b"\xff" * 100,
    field(1, b"type.googleapis.com/nobody.knows.This") + field(2, b"x"), b'{"table":"x"', b"   "])
def test_tickets_of_strangers(raw, name, bystander, ticket):
    refusals = (INVALID, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED)
    expect(refusals, lambda: raw.get(ticket))
    expect(refusals, lambda: raw.info(b"\x08\x02" + field(2, ticket)))


def test_flight_sql_and_sql_wait_for_their_time(raw, client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    statement = field(1, b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery") + field(
        2, field(1, b"SELECT 1"))
    expect(grpc.StatusCode.UNIMPLEMENTED, lambda: raw.info(b"\x08\x02" + field(2, statement)))
    expect((grpc.StatusCode.UNIMPLEMENTED, INVALID), lambda: raw.get(f"SELECT * FROM {name}".encode()))


def test_a_ticket_changed_by_one_byte(raw, client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    ticket = client.info(name, endpoints="slices").endpoints[0].ticket.ticket
    for at in range(0, len(ticket), 3):
        changed = bytearray(ticket)
        changed[at] ^= 0x10
        expect((INVALID, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED),
               lambda changed=changed: raw.get(bytes(changed)))


def test_codes_are_those_of_the_contract(raw, client, name):
    import json

    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    body = json.dumps({"table": name}).encode()
    expect(grpc.StatusCode.NOT_FOUND, lambda: raw.get(b"no_such_table"), "[TABLE_NOT_FOUND]")
    expect(grpc.StatusCode.NOT_FOUND, lambda: raw.info(b"\x08\x01" + field(3, b"no_such_table")))
    expect(grpc.StatusCode.UNIMPLEMENTED, lambda: raw.act("NoSuchAction", body))
    found = expect(grpc.StatusCode.ALREADY_EXISTS, lambda: put(
        raw, name, messages_of(ksv(["a"], [1]).schema, ksv(["a"], [1]).to_batches()), mode="insert"))
    trailers = {key: value for key, value in found.trailing_metadata()}
    assert b"KEY_EXISTS" in trailers["grpc-status-details-bin"]
    assert b"ErrorInfo" in trailers["grpc-status-details-bin"]
    expect(grpc.StatusCode.FAILED_PRECONDITION, lambda: put(
        raw, name, messages_of(ksv(["a"], [1]).schema, []), sharding_key=["s"]), "[KEY_CONFLICT]")
    wide = pa.schema([(f"c{i}", pa.int8()) for i in range(4097)])
    expect(grpc.StatusCode.RESOURCE_EXHAUSTED, lambda: put(
        raw, f"{name}_wide", messages_of(wide, []), sharding_key=["c0"]), "[COLUMNS_LIMIT]")


def test_text_that_is_not_utf8_is_refused(raw, client, name):
    """One writer must not make a table that readers cannot decode."""
    schema = pa.schema([("k", pa.int64()), ("word", pa.string())])
    words = pa.array([b"right", b"\xffwrong"]).view(pa.string())
    batch = pa.record_batch([pa.array([1, 2]), words], schema=schema)
    expect(INVALID, lambda: put(raw, name, messages_of(schema, [batch]), sharding_key=["k"]),
           "[BAD_ARRAY]", "word", "row 1", "UTF-8")
    assert client.count(name) == 0


def test_dictionary_batches_that_do_not_fit(raw, client, name):
    words = pa.array(["a", "b"]).dictionary_encode()
    schema = keyed(pa.schema([("k", pa.int64()), ("word", words.type)]), ["k"])
    batch = pa.record_batch([pa.array([1, 2]), words], schema=schema)
    schema_message, dictionary, rows = messages_of(schema, [batch])
    for messages in ([schema_message, rows], [schema_message, (dictionary[0], b""), rows],
                     [schema_message, (dictionary[0], dictionary[1][:8]), rows]):
        expect(INVALID, lambda messages=messages: put(raw, name, messages))
    bad = pa.DictionaryArray.from_arrays(pa.array([0, 9], pa.int32()), ["a", "b"], safe=False)
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), bad], schema=schema)
    expect(INVALID, lambda: put(raw, name, messages_of(schema, [batch])), "word")
    assert client.count(name) == 0


def test_refusals_leave_the_connection_usable(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    for _ in range(200):
        with refused("COLUMN_NOT_FOUND"):
            client.get(name, columns=["nope"])
        assert client.count(name) == 1
