"""A pyarrow Flight server with the same calls as golimit/main.go."""

import json
import sys

import pyarrow as pa
import pyarrow.flight as flight
import pyarrow.parquet as pq

BATCH_ROWS = 64 * 1024


class LimitServer(flight.FlightServerBase):
    kept = None

    def do_put(self, context, descriptor, reader, writer):
        if descriptor.path == [b"keep"]:
            self.kept = reader.read_all()
            return
        for _ in reader:
            pass

    def do_get(self, context, ticket):
        ask = json.loads(ticket.ticket)
        table = self.kept
        if ask.get("columns"):
            table = table.select(ask["columns"])
        if ask.get("rows"):
            table = table.slice(0, max(ask["rows"], 0))
        return flight.RecordBatchStream(table)

    def do_action(self, context, action):
        rows = 0
        for batch in pq.ParquetFile(action.body.to_pybytes().decode()).iter_batches(BATCH_ROWS):
            rows += batch.num_rows
        yield flight.Result(pa.py_buffer(str(rows).encode()))


if __name__ == "__main__":
    LimitServer(flight.Location.for_grpc_tcp("127.0.0.1", int(sys.argv[1]))).serve()
