"""A Flight server over one DuckDB table: port, file, layout, shard, sort."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

sys.path.insert(0, str(Path(__file__).parents[2]))
from peers.duckdb_table import DuckdbTable

BATCH_ROWS = 64 * 1024


class DuckdbServer(flight.FlightServerBase):
    def __init__(self, location, table):
        self.table = table  # first, since calls come in as soon as the server is made
        super().__init__(location)

    def do_put(self, context, descriptor, reader, writer):
        write = {"ingest": self.table.load_reader, "append": self.table.append,
                 "upsert": self.table.upsert}[descriptor.path[0].decode()]
        write(reader.to_reader())

    def do_get(self, context, ticket):
        result = self.table.read(ticket.ticket.decode(), BATCH_ROWS)
        return flight.RecordBatchStream(result)

    def do_action(self, context, action):
        body = action.body.to_pybytes().decode()
        if action.type == "import":
            self.table.load(f"read_parquet('{body}')")
        else:
            self.table.cursor().execute(body)
        yield flight.Result(pa.py_buffer(b"done"))


if __name__ == "__main__":
    port, path, layout, shard, sort = sys.argv[1:]
    DuckdbServer(flight.Location.for_grpc_tcp("127.0.0.1", int(port)),
                 DuckdbTable(path, layout, shard, sort)).serve()
