"""Tables and their descriptions: every action, every listing."""

import json

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from .raw import RawClient
from .rows import ksv, values
from .wire import b64, refused

ACTIONS = {"CreateTable", "DescribeTable", "DropTable", "AlterTable", "Delete", "Explain", "Stats", "Fold",
           "RenewSnapshot", "ReleaseSnapshot"}

SCHEMA = pa.schema([
    pa.field("k", pa.string(), nullable=False), ("s", pa.int64()), ("v", pa.float64()),
    ("at", pa.timestamp("us", "UTC")), ("word", pa.dictionary(pa.int8(), pa.string())),
    ("m", pa.decimal128(12, 2)), ("items", pa.list_(pa.int32())), ("half", pa.float16()),
    ("id", pa.binary(16)), ("text", pa.large_string()), ("view", pa.string_view()),
    ("pair", pa.struct([("x", pa.int8()), ("y", pa.bool_())])), ("map", pa.map_(pa.string(), pa.int32())),
    ("d", pa.duration("ms")), ("day", pa.date32()), ("clock", pa.time64("ns")),
    ("runs", pa.run_end_encoded(pa.int32(), pa.int8())), ("fixed", pa.list_(pa.uint8(), 3)),
    ("interval", pa.month_day_nano_interval()), ("nothing", pa.null())])


def test_a_table_is_created_described_and_dropped(client, name):
    made = client.create(name, SCHEMA, ["k"], ["s"], 32)
    assert made == client.describe(name)
    assert made["table"].split(".")[-1] == name
    assert (made["sharding_key"], made["sorting_key"], made["slices"]) == (["k"], ["s"], 32)
    assert (made["rows"], made["rows_exact"], made["commit"]) == (0, True, 0)
    for column, field in zip(made["columns"], SCHEMA, strict=True):
        assert column["name"] == field.name
        assert column["type"] == str(field.type)
        assert column["nullable"] == field.nullable
        assert column["key"] == {"k": "sharding", "s": "sorting"}.get(field.name)
    import base64

    handed_out = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(made["schema"])))
    assert handed_out.remove_metadata().equals(SCHEMA.remove_metadata())
    assert client.act("DropTable", table=name) == {}
    with refused("TABLE_NOT_FOUND", name):
        client.describe(name)
    with refused("TABLE_NOT_FOUND", name):
        client.drop(name)
    assert client.act("DropTable", table=name, if_exists=True) == {}


def test_creating_twice(client, name):
    client.create(name, SCHEMA, ["k"], ["s"])
    with refused("TABLE_EXISTS", name):
        client.create(name, SCHEMA, ["k"], ["s"])
    assert client.create(name, SCHEMA, ["k"], ["s"], if_not_exists=True)["slices"] == 16
    with refused("KEY_CONFLICT", "s"):
        client.create(name, SCHEMA, ["k"], ["at"], if_not_exists=True)


@pytest.mark.parametrize("bad", ["", "1abc", "a-b", "a b", "a.b.c", "ä", "x" * 256, "_sheaf.a.b", ".a", "a."])
def test_impossible_names_are_refused(client, bad):
    with refused("NAME_INVALID|FIELD_.*"):
        client.create(bad, SCHEMA, ["k"])


def test_namespaces(client, name):
    for table in (f"{name}_one.t", f"{name}_one.u", f"{name}_two.t"):
        client.put(table, ksv([table], [1]), sharding_key=["k"])
    assert values(client.get(f"{name}_one.t"), "k") == [f"{name}_one.t"]
    for path in ([f"{name}_two", "t"], [f"{name}_two.t"]):
        described = flight.FlightDescriptor.for_path(*path)
        info = client.flight.get_flight_info(described)
        assert client.redeem(info.endpoints[0])["k"][0].as_py() == f"{name}_two.t"
        assert client.flight.get_schema(described).schema.names == ["k", "s", "v"]
    listed = [".".join(part.decode() for part in info.descriptor.path)
              for info in client.flight.list_flights(f"{name}_one".encode())]
    assert sorted(listed) == [f"{name}_one.t", f"{name}_one.u"]
    client.put(name, ksv(["main"], [1]), sharding_key=["k"])
    assert client.count(f"main.{name}") == 1


def test_a_ticket_may_be_a_bare_name(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    for ticket in (name, f"main.{name}", f"  {name}".encode(), f' \n{{"table": "{name}"}}'):
        assert client.flight.do_get(flight.Ticket(ticket)).read_all().num_rows == 1


def test_list_flights_tells_each_table_once(client, name):
    client.put(name, ksv(["a", "b"], [1, 1]), sharding_key=["k"], sorting_key=["s"])
    client.fold(name)
    infos = list(client.flight.list_flights(name.encode()))
    assert len(infos) == 1
    assert infos[0].total_records == 2
    assert infos[0].schema.names == ["k", "s", "v"]
    assert len(infos[0].endpoints) == 1
    assert client.redeem(infos[0].endpoints[0]).num_rows == 2
    assert list(client.flight.list_flights(b"no_such_prefix_")) == []


def test_list_actions_describes_every_action(client):
    listed = {action.type: action.description for action in client.flight.list_actions()}
    assert set(listed) >= ACTIONS
    assert all(listed[action] for action in ACTIONS)


def test_unknown_and_later_actions(client, name):
    with refused("ACTION_UNKNOWN|NOT_IMPLEMENTED", "Vacuum"):
        client.act("Vacuum", table=name)
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    with refused("NOT_IMPLEMENTED"):
        client.act("Update", table=name, set={"v": 1}, all=True)
    with refused("NOT_IMPLEMENTED", "ttl"):
        client.create(f"{name}_ttl", SCHEMA, ["k"], ttl="1h")


def test_bodies_of_actions_are_read_strictly(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    for body in (b"", b"[]", b"null", b"5", b"{", b'{"table":5}', b'{"table":""}', b"{}", b"\xff\xfe",
                 b'{"table":"' + name.encode() + b'","more":1}'):
        for action in ("DescribeTable", "DropTable", "Fold", "Stats"):
            with refused("REQUEST_INVALID|FIELD_.*|NAME_INVALID"):
                list(client.flight.do_action(flight.Action(action, body)))
    assert client.count(name) == 1


def test_flight_info_says_what_is_known(client, name):
    client.put(name, ksv([f"k{i % 9}" for i in range(500)], list(range(500))), sharding_key=["k"],
               sorting_key=["s"], slices=4)
    info = client.info(name)
    assert info.total_records in (500, -1)
    assert info.ordered is False
    assert client.info(name, order="asc").ordered is True
    filtered = client.info(name, where=[["v", "=", 3]])
    assert filtered.total_records == -1
    plan = json.loads(client.info(name, where=[["k", "=", "k1"]]).app_metadata)
    assert plan["access"] == "shard"
    for endpoint in client.info(name, endpoints="slices").endpoints:
        about = json.loads(endpoint.app_metadata)
        assert 0 <= about["slice"] < 4


def test_stats_tell_rows_and_runs_of_each_slice(client, name):
    client.put(name, ksv([f"k{i % 50}" for i in range(5000)], list(range(5000))), sharding_key=["k"],
               sorting_key=["s"], slices=4)
    client.fold(name)
    stats = client.act("Stats", table=name)
    assert len(stats["slices"]) == 4
    assert sum(one["rows"] for one in stats["slices"]) == 5000
    assert stats["snapshots"] == []


def test_alter_takes_one_change_at_a_time(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    more = b64(pa.schema([("w", pa.int8())]).serialize())
    for body, word in (({}, "add_columns"), ({"add_columns": more, "drop_columns": ["v"]}, "one"),
                       ({"drop_columns": ["nowhere"]}, "nowhere"), ({"rename_columns": {"v": "k"}}, "k"),
                       ({"rename_columns": {"nowhere": "x"}}, "nowhere"),
                       ({"add_columns": b64(pa.schema([("v", pa.int8())]).serialize())}, "v"),
                       ({"add_columns": "???"}, "add_columns"), ({"add_columns": "AAAA"}, ""),
                       ({"add_columns": b64(pa.schema([pa.field("w", pa.int8(), nullable=False)])
                                            .serialize())}, "w")):
        with refused("FIELD_.*|COLUMN_.*|ALTER_.*|SCHEMA_.*|REQUEST_.*|MESSAGE_.*", word):
            client.act("AlterTable", table=name, **body)
    described = client.act("AlterTable", table=name, add_columns=more)
    assert [column["name"] for column in described["columns"]] == ["k", "s", "v", "w"]
    assert client.get(name).column_names == ["k", "s", "v", "w"]


def test_a_writer_does_not_miss_a_change_of_the_schema(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    with client.putting(name, ksv([], []).schema) as stream:
        stream.write(ksv(["a"], [2]).to_batches()[0])
        while stream.read_ack().rows < 1:
            pass
        client.act("AlterTable", table=name, add_columns=b64(pa.schema([("w", pa.int8())]).serialize()))
        stream.write(ksv(["a"], [3]).to_batches()[0])
    assert sorted(values(client.get(name), "s", "w")) == [(1, None), (2, None), (3, None)]


def test_any_handshake_and_authorization_are_accepted(gateway, name):
    client = gateway.client
    client.put(name, ksv(["a"], [1]), sharding_key=["k"])
    for token in (b"Bearer whatever", b"Basic c29tZWJvZHk6c2VjcmV0"):
        header = flight.FlightCallOptions(headers=[(b"authorization", token)])
        ticket = flight.Ticket(json.dumps({"table": name}))
        assert client.flight.do_get(ticket, header).read_all().num_rows == 1
    RawClient(gateway.address).handshake(b"somebody")


def test_do_exchange_is_not_offered(client):
    with refused("NOT_IMPLEMENTED"):
        writer, reader = client.flight.do_exchange(flight.FlightDescriptor.for_path("x"))
        writer.done_writing()
        reader.read_all()
