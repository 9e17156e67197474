"""Sheaf: keyed slices on Pebble behind Arrow Flight.

The server is $SHEAF_BIN, or is built from this project.
"""

import json
import os
import subprocess
from pathlib import Path

import pyarrow.flight as flight

from ..peer import PACKAGE, Peer, PerThread, ServerProcess, free_port, tree_bytes

TABLE = "bench"


class Sheaf(Peer):
    notes = "Sheaf: DoPut upsert acked when durable, JSON tickets, 16 slices"
    slices = 16

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

    def stop(self):
        self.connections.close()
        self.server.stop()

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

    def in_list(self, shards):
        return self.ask(where=[[self.spec.shard, "in", list(shards)]])

    # Size

    def disk_bytes(self):
        return tree_bytes(Path(self.workdir) / "data")

    def peak_rss_bytes(self):
        return self.server.peak_rss_bytes()


def said(value):
    """A sort-key value as the contract's JSON has it."""
    return value.isoformat() if hasattr(value, "isoformat") else value
