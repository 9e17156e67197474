"""The two tables, the key samples drawn from them, and the answers expected."""

import functools
import subprocess
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BATCH_ROWS = 64 * 1024
SEED = 20240229
SECONDS_PER_DAY = 86_400


@dataclass(frozen=True)
class Spec:
    name: str
    shard: str  # sharding key column
    sort: str  # sorting key column
    projection: tuple  # the columns of the projected scan
    update: tuple  # (column, new value) that the upsert writes
    new_sort_offset: object  # added to a sort value to make a row with a new key
    range_width: object  # width of the sort-key ranges asked for
    filter: str  # column that rows are not sorted by, for a range of 1 % of them
    wide: bool = False  # only loaded and scanned: for its number of columns


SPECS = {
    "lineitem": Spec(
        "lineitem", "l_orderkey", "l_linenumber",
        ("l_orderkey", "l_extendedprice", "l_shipdate"),
        ("l_comment", "upserted"), 10, 2, "l_partkey",
    ),
    "events": Spec(
        "events", "device", "ts",
        ("device", "ts", "temperature"),
        ("temperature", -1.0),
        timedelta(days=31), timedelta(days=1), "load",
    ),
    "wide": Spec(
        "wide", "device", "ts",
        ("device", "m007", "m203"),
        ("m007", -1.0),
        timedelta(days=31), timedelta(days=1), "m010", wide=True,
    ),
}


def make_lineitem(scale, directory):
    """TPC-H lineitem, in key order as the generator writes it."""
    tool = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run(
        [tool, "parquet", "-s", str(scale), "-T", "lineitem", "-o", directory, "--overwrite"],
        check=True, stdout=subprocess.DEVNULL,
    )
    raw = Path(directory) / "lineitem.parquet"
    table = pq.read_table(raw)
    raw.unlink()
    plain = {pa.string_view(): pa.string()}
    return table.cast(pa.schema([(f.name, plain.get(f.type, f.type)) for f in table.schema]))


def make_events(scale, directory):
    """Synthetic device events: in time order per device, slightly out of order overall."""
    rng = np.random.default_rng(SEED)
    rows, devices = int(10_000_000 * scale), 10_000
    weight = 1 / np.arange(1, devices + 1) ** 0.8
    device = rng.choice(devices, rows, p=weight / weight.sum()).astype(np.int32)
    step_us = 30 * SECONDS_PER_DAY * 1_000_000 // rows
    ts = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(step_us, "us")
    delay = rng.integers(0, 60_000_000, devices).astype("timedelta64[us]")
    arrival = np.argsort(ts + delay[device], kind="stable")
    device, ts = device[arrival], ts[arrival]

    names = pa.array([f"device-{i:05d}" for i in rng.permutation(devices)])
    statuses = pa.array(["ok", "idle", "busy", "degraded", "failed"])
    messages = pa.array([
        f"{verb} {noun} after {n} ms"
        for verb in ("retried", "dropped", "accepted", "rejected", "queued")
        for noun in ("request", "sample", "heartbeat", "upload")
        for n in range(5_000)
    ])
    return pa.table({
        "device": names.take(pa.array(device)),
        "ts": ts,
        "temperature": np.round(rng.normal(21, 4, rows), 2),
        "load": rng.random(rows),
        "latency": np.round(rng.exponential(20, rows), 3),
        "count": rng.integers(0, 1_000, rows),
        "status": statuses.take(pa.array(rng.choice(5, rows, p=[.8, .1, .06, .03, .01]))),
        "message": messages.take(pa.array(rng.integers(0, len(messages), rows),
                                          mask=rng.random(rows) < 0.3)),
    })


def make_wide(scale, directory, columns=300):
    """Measurements in 300 columns: one in three whole numbers, floats, or mostly null."""
    rng = np.random.default_rng(SEED)
    rows = int(100_000 * scale)
    table = {
        "device": pa.array([f"device-{i // 100:05d}" for i in range(rows)]),
        "ts": np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "s"),
    }
    for number in range(columns - len(table)):
        if number % 3 == 0:
            values = pa.array(rng.integers(0, 1 << 20, rows))
        elif number % 3 == 1:
            values = pa.array(rng.normal(0, 1, rows))
        else:
            values = pa.array(rng.random(rows), mask=rng.random(rows) < 0.8)
        table[f"m{number:03d}"] = values
    return pa.table(table)


MAKERS = {"lineitem": make_lineitem, "events": make_events, "wide": make_wide}


def write_parquet(table, path):
    """Write through a temporary name, so that a broken run leaves no half file."""
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial, compression="zstd", row_group_size=BATCH_ROWS,
                   write_page_index=True)
    partial.rename(path)


class Dataset:
    """One table: Parquet files in arrival order and in key order, and its key samples."""

    def __init__(self, name, directory, scale=1.0, rows=None):
        self.spec = SPECS[name]
        label = f"{name}-s{scale:g}" + (f"-r{rows}" if rows else "")
        self.arrival_path = Path(directory) / f"{label}.parquet"
        self.sorted_path = Path(directory) / f"{label}-sorted.parquet"
        if not self.sorted_path.exists():
            Path(directory).mkdir(parents=True, exist_ok=True)
            table = MAKERS[name](scale, directory).slice(0, rows).combine_chunks()
            write_parquet(table, self.arrival_path)
            order = [(self.spec.shard, "ascending"), (self.spec.sort, "ascending")]
            write_parquet(table.sort_by(order), self.sorted_path)

    @functools.cached_property
    def table(self):
        return pq.read_table(self.arrival_path)

    @functools.cached_property
    def schema(self):
        return pq.read_schema(self.arrival_path)

    @functools.cached_property
    def samples(self):
        return Samples(self)


class Samples:
    """Seeded questions with the number of rows that a right answer holds."""

    def __init__(self, dataset, lookups=500, ranges=200, in_lists=20, in_list_size=100):
        spec, table = dataset.spec, dataset.table
        rng = np.random.default_rng(SEED)
        shards = table[spec.shard].unique().sort().to_numpy(zero_copy_only=False)
        in_list_size = min(in_list_size, len(shards))
        self.lookups = rng.choice(shards, lookups).tolist()
        self.in_lists = [rng.choice(shards, in_list_size, replace=False).tolist()
                         for _ in range(in_lists)]
        starts = table.select([spec.shard, spec.sort]).take(
            rng.integers(0, table.num_rows, ranges))
        self.ranges = [
            (shard, low, low + spec.range_width)
            for shard, low in zip(starts[0].to_pylist(), starts[1].to_pylist())
        ]
        self._count(dataset)
        self.filter = self._draw_filter(dataset)
        self._dataset, self._rng = dataset, rng
        self._draw_writes()

    def _draw_filter(self, dataset, share=0.01):
        """(column, low, high, rows with low <= value < high), about a share of all rows."""
        column = dataset.table[dataset.spec.filter]
        low, high = pc.quantile(column, [0.5, 0.5 + share], interpolation="lower").to_pylist()
        inside = pc.and_(pc.greater_equal(column, low), pc.less(column, high))
        return dataset.spec.filter, low, high, pc.sum(inside).as_py()

    def _count(self, dataset):
        shard, sort = dataset.spec.shard, dataset.spec.sort
        keys = dataset.table.select([shard, sort])
        asked = pa.array({*self.lookups, *(s for group in self.in_lists for s in group)},
                         keys.schema.field(shard).type)
        asked_ranges = pa.table({
            "i": range(len(self.ranges)),
            "s": pa.array([r[0] for r in self.ranges], keys.schema.field(shard).type),
            "lo": pa.array([r[1] for r in self.ranges], keys.schema.field(sort).type),
            "hi": pa.array([r[2] for r in self.ranges], keys.schema.field(sort).type),
        })
        con = duckdb.connect()
        con.register("asked_ranges", asked_ranges)
        con.register("asked_shards", pa.table({"s": asked}))
        per_shard = dict(con.execute(
            f"SELECT s, count(*) FROM keys JOIN asked_shards ON s = {shard} GROUP BY s"
        ).fetchall())
        per_range = dict(con.execute(
            f"SELECT i, count(*) FROM keys JOIN asked_ranges "
            f"ON s = {shard} AND {sort} >= lo AND {sort} < hi GROUP BY i"
        ).fetchall())
        self.lookup_rows = [per_shard[s] for s in self.lookups]
        self.in_list_rows = [sum(per_shard[s] for s in group) for group in self.in_lists]
        self.range_rows = [per_range[i] for i in range(len(self.ranges))]

    def _pick(self, count):
        """So many rows of the table, drawn at random, in its order."""
        table = self._dataset.table
        return table.take(np.sort(self._rng.choice(table.num_rows, count, replace=False)))

    def _changed(self, rows):
        """The rows with one column replaced by a constant."""
        column, value = self._dataset.spec.update
        constant = pa.repeat(pa.scalar(value, rows.schema.field(column).type), len(rows))
        return replaced(rows, column, constant)

    def _draw_writes(self, small_writes=500, small_rows=100):
        spec, table = self._dataset.spec, self._dataset.table
        self.upsert = self._changed(self._pick(table.num_rows // 100))
        new = self._pick(min(small_writes * small_rows, table.num_rows))
        new = new.take(self._rng.permutation(len(new)))
        moved = pc.add(new[spec.sort], pa.scalar(spec.new_sort_offset))
        new = replaced(new, spec.sort, moved.cast(new.schema.field(spec.sort).type))
        self.small_writes = [new.slice(i, small_rows) for i in range(0, len(new), small_rows)]

    @functools.cached_property
    def tenth(self):
        """A random tenth of the rows, changed."""
        return self._changed(self._pick(self._dataset.table.num_rows // 10))

    @functools.cached_property
    def steady(self):
        """Rows all over the table, changed, in random order, to be written again and again."""
        rows = self._pick(min(100_000, self._dataset.table.num_rows))
        return self._changed(rows.take(self._rng.permutation(len(rows))))


def replaced(rows, name, values):
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(name), values).combine_chunks()
