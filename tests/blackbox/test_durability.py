"""Acknowledged means on disk, whenever the process dies."""

import random
import threading
import time

import pyarrow as pa
import pytest

from . import LONG
from .gateway import Gateway
from .raw import BreakablePut
from .rows import ksv, values

MOMENTS = 50 if LONG else 6


class Writer(threading.Thread):
    """Writes commits to a table until the gateway dies. Each commit is one batch whose
    rows carry its number, so that a half commit would show."""

    def __init__(self, client, name, number, sizes):
        super().__init__()
        self.client, self.name, self.number, self.sizes = client.again(), name, number, sizes
        self.sent = self.acknowledged = 0
        self.surprise = None

    def run(self):
        try:
            with self.client.putting(self.name, ksv([], []).schema) as stream:
                while True:
                    size = self.sizes[self.sent % len(self.sizes)]
                    rows = ksv([f"w{self.number}-{i % 50}" for i in range(size)],
                               [self.sent * 1_000_000 + i for i in range(size)], [self.sent] * size)
                    self.sent += 1
                    stream.write(rows.combine_chunks().to_batches()[0])
                    while self.acknowledged < self.sent:
                        self.acknowledged = stream.read_ack().batches
        except (pa.ArrowException, OSError, AttributeError):
            pass  # the gateway was killed; read_ack gave None
        except Exception as error:
            self.surprise = error


def check(client, name, writers):
    """Every acknowledged commit is there, whole; of each other one, all or nothing."""
    for writer in writers:
        assert writer.surprise is None, writer.surprise
        found = client.get(name, where=[["k", "in", [f"w{writer.number}-{i}" for i in range(50)]]],
                           columns=["v"])
        counts = {item["values"]: item["counts"] for item in found["v"].combine_chunks()
                  .value_counts().to_pylist()} if found.num_rows else {}
        for commit in range(writer.sent):
            size = writer.sizes[commit % len(writer.sizes)]
            rows = counts.get(commit, 0)
            if commit < writer.acknowledged:
                assert rows == size, f"commit {commit} of writer {writer.number}: {rows} of {size} rows"
            else:
                assert rows in (0, size), f"half a commit: {rows} of {size} rows"


def test_no_acknowledged_row_is_lost_by_a_kill(tmp_path, name):
    rng, acknowledged = random.Random(MOMENTS), 0
    gateway = Gateway(tmp_path)
    gateway.start()
    try:
        for moment in range(MOMENTS):
            table = f"{name}_{moment}"
            gateway.client.create(table, ksv([], []).schema, ["k"], ["s"], 8)
            writers = [Writer(gateway.client, table, 0, [5, 1, 100]),
                       Writer(gateway.client, table, 1, [60_000, 3]),
                       Writer(gateway.client, table, 2, [20, 2000])]
            for writer in writers:
                writer.start()
            folder = threading.Thread(target=fold_for_ever, args=(gateway.client.again(), table))
            folder.start()
            time.sleep(rng.uniform(0.05, 1.2))
            gateway.kill()
            for thread in (*writers, folder):
                thread.join()
            assert gateway.start() < 10
            check(gateway.client, table, writers)
            acknowledged += sum(writer.acknowledged for writer in writers)
            if moment % 5 == 4:
                gateway.client.fold(table)
                check(gateway.client, table, writers)
        assert acknowledged > 10 * MOMENTS  # there was something to lose
        gateway.stop()
        gateway.expect_clean_log()
    finally:
        if gateway.alive():
            gateway.kill()


def fold_for_ever(client, name):
    try:
        while True:
            client.fold(name)
    except (pa.ArrowException, OSError):
        pass


@pytest.mark.parametrize("cut", [1, 7, 64])
def test_a_torn_log_takes_no_more_than_its_end(tmp_path, name, cut):
    gateway = Gateway(tmp_path)
    gateway.start()
    gateway.client.create(name, ksv([], []).schema, ["k"], ["s"], 4)
    for number in range(40):
        gateway.client.put(name, ksv(["a"] * 25, [number * 25 + i for i in range(25)], [number] * 25))
    gateway.kill()
    logs = sorted(gateway.data.rglob("*.log"), key=lambda path: path.stat().st_mtime)
    assert logs, f"no log among {sorted(gateway.data.rglob('*'))}"
    with logs[-1].open("r+b") as log:
        log.truncate(max(0, logs[-1].stat().st_size - cut))
    gateway.start()
    found = values(gateway.client.get(name), "v")
    whole = {number: found.count(number) for number in set(found)}
    assert set(whole.values()) <= {25}
    assert set(whole) == set(range(len(whole)))  # only the newest may be gone
    assert len(whole) >= 38
    gateway.client.put(name, ksv(["a"], [10_000], [99]))
    gateway.stop()


def test_a_store_opens_fast(own_gateway, name):
    """Start-up reads manifests only, however many rows there are."""
    rows = 10_000_000 if LONG else 1_000_000
    gateway = own_gateway()
    step = 250_000
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    with gateway.client.putting(name, schema, sharding_key=["k"]) as stream:
        for first in range(0, rows, step):
            ids = pa.array(range(first, first + step))
            stream.write(pa.record_batch([ids, ids], schema=schema))
    gateway.kill()
    assert gateway.start() < 2 * max(1, rows / 10_000_000)
    assert gateway.client.count(name) == rows


def test_a_killed_replace_leaves_the_old_rows(own_gateway, name):
    gateway = own_gateway()
    gateway.client.put(name, ksv(["old"] * 500, list(range(500))), sharding_key=["k"], sorting_key=["s"])
    new = ksv([f"k{i % 99}" for i in range(400_000)], list(range(400_000))).combine_chunks()
    stream = BreakablePut(gateway.address, {"table": name, "mode": "replace_table"}, new.schema)
    for batch in new.to_batches(max_chunksize=50_000):
        stream.write(batch)
    gateway.kill()
    stream.break_off()
    gateway.start()
    assert gateway.client.count(name) == 500
    size = sum(path.stat().st_size for path in gateway.data.rglob("*")
               if path.is_file() and path.name != "ballast")
    assert size < 20 << 20  # the broken stream's files are gone
