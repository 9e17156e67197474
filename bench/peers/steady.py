"""Upserts rows at a steady pace until stdin ends: address, table, Arrow file, rows a second."""

import json
import sys
import threading
import time

import pyarrow as pa
import pyarrow.flight as flight

BATCH_ROWS = 100


def main(address, table, path, rows_per_second):
    rows = pa.ipc.open_file(path).read_all().combine_chunks()
    batches = rows.to_batches(max_chunksize=BATCH_ROWS)
    command = json.dumps({"table": table, "mode": "upsert"})
    client = flight.FlightClient(f"grpc://{address}")
    writer, acks = client.do_put(flight.FlightDescriptor.for_command(command), rows.schema)
    durable = {"rows": 0}

    def read_acks():
        while (ack := acks.read()) is not None:
            durable["rows"] = json.loads(ack.to_pybytes())["rows"]

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    reader = threading.Thread(target=read_acks)
    reader.start()
    started, sent = time.perf_counter(), 0
    print("writing", flush=True)
    while not ended.is_set():
        writer.write_batch(batches[sent // BATCH_ROWS % len(batches)])
        sent += BATCH_ROWS
        ahead = sent / rows_per_second - (time.perf_counter() - started)
        if ahead > 0:
            time.sleep(ahead)
    writer.done_writing()
    reader.join()
    print(json.dumps({"rows": durable["rows"], "seconds": time.perf_counter() - started}))
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
