"""The same questions to Sheaf with 1 million and with 100 million rows.

Events are made while they are sent, never held whole, and every device has a thousand
rows in the mean in both tables, so that answers are alike and only the table is larger."""

import json
import shutil
import statistics
import sys
import time

import numpy as np
import pyarrow as pa

from .data import SEED, SPECS
from .measure import percentile, seconds
from .systems.sheaf import Sheaf

SMALL_ROWS = 1_000_000
CHUNK_ROWS = 1_000_000
ROWS_PER_DEVICE = 1_000
BYTES_PER_ROW = 120  # on disk, while a fold has old and new runs, with room to spare
LOOKUPS = 200  # few enough that most find a block that none before them touched
UNITS = {"rows": "rows", "load": "rows/s", "scan": "rows/s", "disk_per_row": "bytes"}


class Stream:
    """So many events as a RecordBatchReader, and the devices that they are of."""

    def __init__(self, rows):
        self.rows, self.devices = rows, max(1, rows // ROWS_PER_DEVICE)
        rng = np.random.default_rng(SEED)
        self.names = pa.array([f"device-{i:07d}" for i in rng.permutation(self.devices)])
        self.values = values(rng)
        self.schema = self.chunk(0, 1).schema

    def reader(self):
        batches = (batch for first in range(0, self.rows, CHUNK_ROWS)
                   for batch in pa.Table.from_batches(
                       [self.chunk(first, min(CHUNK_ROWS, self.rows - first))]).to_batches(64 * 1024))
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def chunk(self, first, rows):
        """Rows first, first + 1, …, in time order; a device's share falls with its number."""
        rng = np.random.default_rng([SEED, first])
        device = (rng.random(rows) ** 5 * self.devices).astype(np.int64)
        ts = np.datetime64("2024-01-01", "us") + (first + np.arange(rows)) * np.timedelta64(25_000, "us")
        turn = int(rng.integers(CHUNK_ROWS))
        rest = pa.concat_tables([self.values.slice(turn), self.values.slice(0, turn)]).slice(0, rows)
        keys = pa.table({"device": self.names.take(pa.array(device)), "ts": ts})
        for name in rest.column_names:
            keys = keys.append_column(name, rest[name])
        return keys.combine_chunks().to_batches()[0]


def values(rng):
    """The columns without the keys, for a chunk; each chunk has them turned by another number
    of rows, since drawing them anew would take longer than storing them."""
    rows = CHUNK_ROWS
    statuses = pa.array(["ok", "idle", "busy", "degraded", "failed"])
    messages = pa.array([f"{verb} request after {n} ms" for n in range(5_000)
                         for verb in ("retried", "dropped", "accepted", "rejected")])
    return pa.table({
        "temperature": np.round(rng.normal(21, 4, rows), 2),
        "load": rng.random(rows),
        "latency": np.round(rng.exponential(20, rows), 3),
        "count": rng.integers(0, 1_000, rows),
        "status": statuses.take(pa.array(rng.choice(5, rows, p=[.8, .1, .06, .03, .01]))),
        "message": messages.take(pa.array(rng.integers(0, len(messages), rows))),
    })


class ScaleTable:
    """What the peer wants to know of a data set."""

    spec = SPECS["events"]

    def __init__(self, schema):
        self.schema = schema


def run(rows, work, out):
    """Measure both sizes, write scale.json into out, and leave nothing else behind."""
    work.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(work).free
    if rows * BYTES_PER_ROW > free:
        sys.exit(f"{rows:,} rows may need {rows * BYTES_PER_ROW >> 30} GiB of disk, {free >> 30} are free: "
                 f"ask for fewer with --rows")
    found = {"units": UNITS}
    for size, number in (("small", min(SMALL_ROWS, rows)), ("large", rows)):
        folder = work / f"scale-{size}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            found[size] = measure(Stream(number), folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"{number:,} rows: {found[size]}", file=sys.stderr)
    out.mkdir(parents=True, exist_ok=True)
    (out / "scale.json").write_text(json.dumps(found, indent=1))


def measure(stream, folder):
    peer = Sheaf(ScaleTable(stream.schema), folder)
    peer.start()
    try:
        found = {"rows": stream.rows,
                 "load": stream.rows / seconds(peer.ingest, stream.reader()),
                 "settle": seconds(peer.settle)}
        found["disk"] = peer.disk_bytes() / 1e6
        found["disk_per_row"] = peer.disk_bytes() / stream.rows
        found["start_clean"] = statistics.median(peer.restart() for _ in range(3))
        count, found["scan"] = scan(peer, stream.rows)
        if count != stream.rows:
            raise RuntimeError(f"{count} rows scanned of {stream.rows}")
        found["lookup_cold_p50"], found["lookup_p50"] = lookups(peer, stream)
        found["start_killed"] = statistics.median(killed(peer, stream) for _ in range(3))
        found["peak_rss"] = peer.peak_rss_bytes() / 1e6
        return found
    finally:
        peer.stop()


def scan(peer, rows):
    """Rows counted as they arrive, and rows a second."""
    started, count = time.perf_counter(), 0
    for batch in peer.stream():
        count += batch.num_rows
    return count, rows / (time.perf_counter() - started)


def lookups(peer, stream):
    """Medians in ms for many devices: at first touch, after a restart; and asked again.
    They are read once before, so that the kernel has the pages and only our caches are empty."""
    rng = np.random.default_rng(SEED)
    asked = rng.choice(stream.devices, min(LOOKUPS, stream.devices), replace=False)
    shards = stream.names.take(pa.array(asked)).to_pylist()
    for shard in shards:
        if peer.lookup(shard).num_rows == 0 and stream.rows > 10 * CHUNK_ROWS:
            raise RuntimeError(f"{shard} has no rows")
    peer.restart()
    cold = [seconds(peer.lookup, shard) for shard in shards]
    warm = [seconds(peer.lookup, shard) for shard in shards]
    return percentile(cold, .5) * 1e3, percentile(warm, .5) * 1e3


def killed(peer, stream):
    """Seconds to start after a kill that follows a hundred small writes."""
    rows = pa.Table.from_batches([stream.chunk(0, 10_000)])
    with peer.open_writer() as writer:
        for first in range(0, rows.num_rows, 100):
            writer.write(rows.slice(first, 100))
    return peer.restart(kill=True)
