"""The wire contract as plain pyarrow calls: what a user writes, made short."""

import base64
import contextlib
import json
import re
import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.flight as flight
import pytest


@dataclass(frozen=True)
class Durable:
    """One acknowledgement."""

    batches: int
    rows: int
    commit: int


class Client:
    """A connection and the calls of the contract."""

    def __init__(self, address, **options):
        host, port = address.rsplit(":", 1)
        self.location = flight.Location.for_grpc_tcp(host, int(port))
        self.flight = flight.FlightClient(self.location, **options)

    def close(self):
        self.flight.close()

    def again(self, **options):
        """A further connection to the same gateway."""
        other = Client.__new__(Client)
        other.location = self.location
        other.flight = flight.FlightClient(self.location, **options)
        return other

    def wait(self, seconds=30):
        """Until the gateway answers."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                return list(self.flight.list_flights())
            except flight.FlightUnavailableError:
                if time.monotonic() > deadline:
                    raise

    # Writing

    def put(self, name, rows, *, schema=None, **command):
        """Write a table, or batches of `schema`, and return the last acknowledgement."""
        with self.putting(name, schema or rows.schema, **command) as stream:
            for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
                stream.write(batch)
        return stream.acks[-1]

    @contextlib.contextmanager
    def putting(self, name, schema, **command):
        """A DoPut stream to write batches to; on leaving it, all is acknowledged."""
        stream = PutStream(self.flight, {"table": name, **command}, schema)
        try:
            yield stream
        except BaseException:
            with contextlib.suppress(Exception):
                stream.writer.close()
            raise
        stream.finish()

    def create(self, name, schema, sharding, sorting=None, slices=None, **more):
        body = {"table": name, "schema": b64(schema.serialize()), "sharding_key": sharding, **more}
        if sorting is not None:
            body["sorting_key"] = sorting
        if slices is not None:
            body["slices"] = slices
        return self.act("CreateTable", **body)

    # Reading

    def get(self, name, **query):
        """The rows of a query, as one table."""
        return self.reader(name, **query).read_all()

    def reader(self, name, **query):
        return self.flight.do_get(ticket(name, **query))

    def chunks(self, name, **query):
        """The messages of a query: (batch, metadata as an object)."""
        found = []
        reader = self.reader(name, **query)
        while True:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return found
            metadata = chunk.app_metadata.to_pybytes() if chunk.app_metadata else b""
            found.append((chunk.data, json.loads(metadata) if metadata else {}))

    def pages(self, name, **query):
        """Follow the markers of a query to its end: one table a page."""
        while True:
            chunks = self.chunks(name, **query)
            schema = self.get(name, **{**query, "limit": 0}).schema if not chunks else None
            batches = [batch for batch, _ in chunks]
            yield pa.Table.from_batches(batches, schema=schema or batches[0].schema)
            after = chunks[-1][1].get("after") if chunks else None
            if after is None:
                return
            query = {**query, "after": after}

    def count(self, name, **query):
        return sum(batch.num_rows for batch, _ in self.chunks(name, columns=[], **query))

    def info(self, name, **query):
        return self.flight.get_flight_info(descriptor(name, **query))

    def redeem(self, endpoint):
        return self.flight.do_get(endpoint.ticket).read_all()

    def schema(self, name, **query):
        return self.flight.get_schema(descriptor(name, **query)).schema

    def explain(self, name, **query):
        return self.act("Explain", table=name, **query)

    # Actions

    def act(self, action, **body):
        results = list(self.flight.do_action(flight.Action(action, json.dumps(body).encode())))
        assert len(results) == 1, f"{action} gave {len(results)} results"
        return json.loads(results[0].body.to_pybytes())

    def fold(self, name):
        self.act("Fold", table=name)

    def drop(self, name):
        self.act("DropTable", table=name)

    def describe(self, name):
        return self.act("DescribeTable", table=name)

    def delete(self, name, **query):
        return self.act("Delete", table=name, **query)


class PutStream:
    """An open DoPut."""

    def __init__(self, connection, command, schema):
        described = flight.FlightDescriptor.for_command(json.dumps(command).encode())
        self.writer, self.reader = connection.do_put(described, schema)
        self.acks = []

    def write(self, batch, metadata=None):
        """Send a batch; a refusal is raised as the gateway worded it."""
        try:
            if metadata is None:
                self.writer.write_batch(batch)
            else:
                self.writer.write_with_metadata(batch, metadata)
        except (pa.ArrowException, OSError):
            self.writer.close()  # raises what the gateway said
            raise

    def read_ack(self):
        """The next acknowledgement, None at the end."""
        found = self.reader.read()
        if found is None:
            return None
        self.acks.append(Durable(**json.loads(found.to_pybytes())))
        return self.acks[-1]

    def finish(self):
        """End the stream and read what it says until it ends."""
        try:
            self.writer.done_writing()
            while self.read_ack() is not None:
                pass
        finally:
            self.writer.close()
        assert self.acks, "a stream ended without an acknowledgement"
        assert self.acks == sorted(self.acks, key=lambda ack: (ack.batches, ack.rows, ack.commit))


def ticket(name, **query):
    return flight.Ticket(json.dumps({"table": name, **query}).encode())


def descriptor(name, **query):
    return flight.FlightDescriptor.for_command(json.dumps({"table": name, **query}).encode())


def keyed(schema, sharding, sorting=None, slices=None):
    """The schema, with the metadata that names a table's keys added."""
    metadata = {**(schema.metadata or {}), "sheaf.sharding_key": json.dumps(sharding)}
    if sorting is not None:
        metadata["sheaf.sorting_key"] = json.dumps(sorting)
    if slices is not None:
        metadata["sheaf.slices"] = str(slices)
    return schema.with_metadata(metadata)


def b64(data):
    return base64.b64encode(data).decode()


@contextlib.contextmanager
def refused(reason, *words):
    """What is inside must be refused with this reason (a regular expression) and all
    the words in the message, in any order."""
    with pytest.raises((pa.ArrowException, OSError, KeyError)) as caught:
        yield caught
    message = str(caught.value)
    found = re.search(r"\[([A-Z][A-Z0-9_]*)\]", message)
    assert found, f"no reason in: {message}"
    assert re.fullmatch(reason, found[1]), f"{found[1]} is not {reason}: {message}"
    for word in words:
        assert str(word) in message, f"{word!r} is missing in: {message}"
    assert "goroutine" not in message
    assert ".go:" not in message


def durable_in(error):
    """The counts that the error of a failed stream carries."""
    found = re.search(r"\(durable: (\d+) batches, (\d+) rows, commit (\d+)\)", str(error))
    assert found, f"no durable counts in: {error}"
    return Durable(*map(int, found.groups()))
