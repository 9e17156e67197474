"""What every system under test must offer, and the helpers they share."""

import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pyarrow as pa

PACKAGE = Path(__file__).parent


class NotSupported(Exception):
    """This system has no way to do what was asked."""


class Peer:
    """A system holding one table, keyed by the dataset's shard and sort columns.

    Every write returns only once the rows are on disk. Every read returns a
    pyarrow Table. Reads may come from several threads.
    """

    kind = "network"  # or "in-process"
    keeps_writes = True  # False for a limit, which drops them
    folds = False  # True where background work must settle what was changed
    notes = ""  # its configuration, in one line for the report

    def __init__(self, dataset, workdir):
        self.dataset = dataset
        self.spec = dataset.spec
        self.workdir = Path(workdir)

    def start(self):
        """Start on an empty working directory."""

    def stop(self):
        """End every process that start() began."""

    def ingest(self, reader):
        """Store a whole table from a RecordBatchReader, ready for reading."""
        raise NotSupported

    def settle(self):
        """Finish background work after ingest (timed apart from it)."""

    def append(self, table):
        """Store a few rows with new keys."""
        raise NotSupported

    def upsert(self, table):
        """Replace the rows that have these keys."""
        raise NotSupported

    def open_writer(self):
        """A context whose write(table) stores a few rows and returns when they are
        durable, on one stream or transaction-less connection that stays open."""
        raise NotSupported

    def writers_target(self):
        """What the program bench/writers must be told to write to this system."""
        raise NotSupported

    def steady_writer(self, rows, rows_per_second):
        """A context in which another process upserts these rows again and again at this
        pace; its `rate` is what it reached, once the context is left."""
        raise NotSupported

    def restart(self, kill=False):
        """End the server, by SIGTERM or SIGKILL, and start it on the same data; the
        seconds from its start to its first answer."""
        raise NotSupported

    def import_parquet(self, path):
        """Load a Parquet file that the system reads for itself."""
        raise NotSupported

    def scan(self, columns=None):
        raise NotSupported

    def lookup(self, shard):
        raise NotSupported

    def range(self, shard, low, high):
        """Rows of one shard with low <= sort < high."""
        raise NotSupported

    def in_list(self, shards):
        raise NotSupported

    def filter(self, column, low, high):
        """Rows with low <= column < high, for a column that is no key."""
        raise NotSupported

    def bytes_read(self):
        """Bytes that the server has read from its files, cached by the kernel or not."""
        raise NotSupported

    def disk_bytes(self):
        raise NotSupported

    def peak_rss_bytes(self):
        raise NotSupported


class SqlMixin:
    """Answers every read through one method, query(sql)."""

    table_name = "t"

    def query(self, sql):
        raise NotImplementedError

    def scan(self, columns=None):
        return self.query(f"SELECT {', '.join(columns) if columns else '*'} FROM {self.table_name}")

    def lookup(self, shard):
        return self.query(
            f"SELECT * FROM {self.table_name} WHERE {self.spec.shard} = {literal(shard)}")

    def range(self, shard, low, high):
        return self.query(
            f"SELECT * FROM {self.table_name} WHERE {self.spec.shard} = {literal(shard)} "
            f"AND {self.spec.sort} >= {literal(low)} AND {self.spec.sort} < {literal(high)}")

    def filter(self, column, low, high):
        return self.query(
            f"SELECT * FROM {self.table_name} WHERE {column} >= {literal(low)} "
            f"AND {column} < {literal(high)}")

    def in_list(self, shards):
        listed = ", ".join(literal(s) for s in shards)
        return self.query(
            f"SELECT * FROM {self.table_name} WHERE {self.spec.shard} IN ({listed})")


def literal(value):
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"TIMESTAMP '{value.isoformat(sep=' ')}'"


class PerThread:
    """One connection per thread, made on first use."""

    def __init__(self, connect):
        self._connect = connect
        self._local = threading.local()
        self._all = []

    def get(self):
        if not hasattr(self._local, "value"):
            self._local.value = self._connect()
            self._all.append(self._local.value)
        return self._local.value

    def close(self):
        for value in self._all:
            value.close()
        self._all.clear()
        self._local = threading.local()


class ServerProcess:
    """A child process that listens on a loopback port."""

    def __init__(self, command, port, log, timeout=60, **popen):
        self.log = Path(log).open("ab")  # noqa: SIM115, closed by stop()
        self.process = subprocess.Popen(
            [str(part) for part in command], stdout=self.log, stderr=self.log, **popen)
        deadline = time.monotonic() + timeout
        while not is_listening(port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"{command[0]} did not start, see {log}")
            time.sleep(0.005)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def peak_rss_bytes(self):
        return peak_rss_bytes(self.process.pid)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def peak_rss_bytes(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise NotSupported


def tree_bytes(path):
    return sum(f.stat().st_blocks * 512 for f in Path(path).rglob("*") if f.is_file())


def fsync_tree(path):
    """Make files durable for systems that leave that to the caller."""
    for file in [p for p in Path(path).rglob("*") if p.is_file()] + [Path(path)]:
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def empty_directory(path):
    shutil.rmtree(path, ignore_errors=True)
    Path(path).mkdir(parents=True)


def reader_of(table, batch_rows):
    return pa.RecordBatchReader.from_batches(
        table.schema, table.to_batches(max_chunksize=batch_rows))
