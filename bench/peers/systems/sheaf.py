"""Sheaf: keyed slices on Pebble behind Arrow Flight.

The server is $SHEAF_BIN, or is built from this project.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

from ..peer import PACKAGE, Peer, PerThread, ServerProcess, free_port

TABLE = "bench"


class Sheaf(Peer):
    notes = ("Sheaf: DoPut upsert acked when durable, JSON tickets, 16 slices; disk with the 16 MiB set "
             "aside for a full disk, without space that the log reserved and has not written")
    folds = True
    slices = 16
    peak_before = 0  # of server processes that have ended

    def start(self):
        port = free_port()
        self.server = ServerProcess(
            [self.binary(), "serve", "--data", self.workdir / "data",
             "--listen", f"127.0.0.1:{port}"], port, self.workdir / "server.log")
        self.address = f"127.0.0.1:{port}"
        location = flight.Location.for_grpc_tcp("127.0.0.1", port)
        self.connections = PerThread(lambda: flight.FlightClient(location))

    def binary(self):
        if given := os.environ.get("SHEAF_BIN"):
            return given
        # Beside the working directory, which is emptied, so that it is built once.
        built = os.path.abspath(self.workdir.parent / "sheaf-server")
        subprocess.run(["go", "build", "-o", built, "./cmd/sheaf"],
                       cwd=PACKAGE.parents[1], check=True)
        return built

    def stop(self, kill=False):
        self.peak_before = self.peak_rss_bytes()
        self.connections.close()
        if kill:
            self.server.kill()
        else:
            self.server.stop()

    def restart(self, kill=False):
        self.stop(kill)
        started = time.perf_counter()
        self.start()
        self.round_trip()
        return time.perf_counter() - started

    # Writing

    def ingest(self, reader):
        keys = {"sheaf.sharding_key": json.dumps([self.spec.shard]),
                "sheaf.sorting_key": json.dumps([self.spec.sort]),
                "sheaf.slices": str(self.slices)}
        self._put(reader.schema.with_metadata(keys), reader, "upsert")

    def settle(self):
        self._act("Fold", table=TABLE)

    def append(self, table):
        self._put(table.schema.remove_metadata(), table.to_batches(), "upsert")

    def upsert(self, table):
        self._put(table.schema.remove_metadata(), table.to_batches(), "upsert")

    def import_parquet(self, path):
        """By the command line, which is a Flight client like any other."""
        subprocess.run([self.binary(), "import", TABLE, path, "--server", self.address, "--quiet",
                        "--sharding-key", self.spec.shard, "--sorting-key", self.spec.sort,
                        "--slices", str(self.slices)], check=True, stdout=subprocess.DEVNULL)

    def open_writer(self):
        return OpenWriter(self.connections.get(), self.dataset.schema.remove_metadata())

    def writers_target(self):
        return ["-address", self.address, "-command", json.dumps({"table": TABLE, "mode": "upsert"})]

    def steady_writer(self, rows, rows_per_second):
        return SteadyWriter(self.address, rows, rows_per_second, self.workdir / "steady.arrow")

    def _put(self, schema, batches, mode):
        """Returns when the last row is durable; reads the acks only then."""
        command = json.dumps({"table": TABLE, "mode": mode})
        writer, acks = self.connections.get().do_put(
            flight.FlightDescriptor.for_command(command), schema)
        with writer:
            sent = 0
            for batch in batches:
                writer.write_batch(batch)
                sent += batch.num_rows
            writer.done_writing()
            last = None
            while (ack := acks.read()) is not None:
                last = json.loads(ack.to_pybytes())
        if last is None or last["rows"] != sent:
            raise RuntimeError(f"{sent} rows sent, last ack {last}")

    def _act(self, kind, **body):
        action = flight.Action(kind, json.dumps(body).encode())
        return list(self.connections.get().do_action(action))

    # Reading

    def ask(self, **query):
        ticket = flight.Ticket(json.dumps({"table": TABLE, **query}).encode())
        return self.connections.get().do_get(ticket).read_all()

    def stream(self):
        """The batches of a full scan as they arrive."""
        ticket = flight.Ticket(json.dumps({"table": TABLE}).encode())
        for chunk in self.connections.get().do_get(ticket):
            yield chunk.data

    def round_trip(self):
        """The least answer: one shard that is not there."""
        return self.ask(where=[[self.spec.shard, "=", 0 if self.integer_shard else "nothing"]],
                        columns=[self.spec.shard])

    @property
    def integer_shard(self):
        return self.dataset.schema.field(self.spec.shard).type in ("int32", "int64")

    def scan(self, columns=None):
        return self.ask(**({"columns": list(columns)} if columns else {}))

    def lookup(self, shard):
        return self.ask(where=[[self.spec.shard, "=", shard]])

    def range(self, shard, low, high):
        return self.ask(where=[[self.spec.shard, "=", shard], [self.spec.sort, ">=", said(low)],
                               [self.spec.sort, "<", said(high)]])

    def filter(self, column, low, high):
        return self.ask(where=[[column, ">=", low], [column, "<", high]])

    def in_list(self, shards):
        return self.ask(where=[[self.spec.shard, "in", list(shards)]])

    # Size

    def bytes_read(self):
        status = Path(f"/proc/{self.server.process.pid}/io").read_text()
        return int(status.split("rchar: ")[1].split()[0])

    def disk_bytes(self):
        """Contents of files: the log reserves blocks ahead of what it holds."""
        data = Path(self.workdir) / "data"
        return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())

    def peak_rss_bytes(self):
        return max(self.peak_before, self.server.peak_rss_bytes())


class OpenWriter:
    """A DoPut stream that stays open; write returns once its rows are durable."""

    def __init__(self, client, schema):
        command = json.dumps({"table": TABLE, "mode": "upsert"})
        self.writer, self.acks = client.do_put(flight.FlightDescriptor.for_command(command), schema)
        self.sent = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.writer.done_writing()
        while self.acks.read() is not None:
            pass
        self.writer.close()

    def write(self, table):
        for batch in table.combine_chunks().to_batches():
            self.writer.write_batch(batch)
            self.sent += batch.num_rows
        while json.loads(self.acks.read().to_pybytes())["rows"] < self.sent:
            pass


class SteadyWriter:
    """Another process that upserts at a steady pace: see peers/steady.py."""

    def __init__(self, address, rows, rows_per_second, path):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)
        self.command = [sys.executable, "-m", "peers.steady", address, TABLE, str(path),
                        str(rows_per_second)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, cwd=PACKAGE.parent, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()  # it has begun
        return self

    def __exit__(self, *_):
        answer, _ = self.process.communicate()  # ends its stdin: it stops and says what it did
        done = json.loads(answer)
        self.rate = done["rows"] / done["seconds"]


def said(value):
    """A sort-key value as the contract's JSON has it."""
    return value.isoformat() if hasattr(value, "isoformat") else value
