"""A private PostgreSQL cluster through ADBC."""

import getpass
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import adbc_driver_postgresql.dbapi as adbc
import psutil

from ..data import BATCH_ROWS
from ..peer import (
    NotSupported,
    Peer,
    PerThread,
    ServerProcess,
    SqlMixin,
    free_port,
    reader_of,
    tree_bytes,
)

SETTINGS = {
    "shared_buffers": "4GB", "maintenance_work_mem": "2GB", "work_mem": "256MB",
    "effective_cache_size": "12GB", "wal_level": "minimal", "max_wal_senders": "0",
    "max_wal_size": "16GB", "checkpoint_timeout": "30min", "jit": "off",
    "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
}


class Postgres(SqlMixin, Peer):
    notes = ("PostgreSQL through ADBC: COPY then PRIMARY KEY (shard, sort) in one transaction, "
             "synchronous_commit on, upsert by COPY to a temporary table and ON CONFLICT")

    def start(self):
        data, as_user = self.workdir / "data", {}
        data.mkdir()
        if os.geteuid() == 0:  # the server refuses to run as root
            as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
            shutil.chown(data, "postgres", "postgres")
        user = as_user.get("user", getpass.getuser())
        subprocess.run([program("initdb"), "-D", data, "-U", user, "--auth=trust", "-E", "UTF8"],
                       check=True, stdout=subprocess.DEVNULL, cwd="/", **as_user)
        self.peak_before, self.user, self.as_user = 0, user, as_user
        self._serve()

    def _serve(self):
        data, port = self.workdir / "data", free_port()
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        self.server = ServerProcess([program("postgres"), "-D", data, "-p", port, *settings],
                                    port, self.workdir / "server.log", cwd="/", **self.as_user)
        uri = f"postgresql://{self.user}@127.0.0.1:{port}/postgres"
        self.connections = PerThread(lambda: adbc.connect(uri))
        self._wait_until_ready()
        self.memory = MemorySampler(self.server.process.pid)

    def _wait_until_ready(self, timeout=30):
        """The server listens before it lets anyone in."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.connections.get()
            except adbc.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def stop(self):
        self.memory.stop()
        self.peak_before = self.peak_rss_bytes()
        self.connections.close()
        self.server.stop()

    def restart(self, kill=False):
        if kill:  # of one process of several: the others would outlive it for a while
            raise NotSupported
        self.stop()
        started = time.perf_counter()
        self._serve()
        return time.perf_counter() - started

    def _write(self, *steps):
        """Run the steps, each taking a cursor, in one transaction."""
        connection = self.connections.get()
        with connection.cursor() as cursor:
            for step in steps:
                step(cursor)
        connection.commit()

    def ingest(self, reader):
        self._write(
            lambda c: c.adbc_ingest("t", reader, mode="create"),
            lambda c: c.execute(
                f"ALTER TABLE t ADD PRIMARY KEY ({self.spec.shard}, {self.spec.sort})"))

    def settle(self):
        connection = self.connections.get()
        connection.adbc_connection.set_autocommit(True)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE t")
            cursor.execute("CHECKPOINT")
        connection.adbc_connection.set_autocommit(False)

    def append(self, table):
        self._write(lambda c: c.adbc_ingest("t", table, mode="append"))

    def upsert(self, table):
        sets = ", ".join(f"{name} = excluded.{name}" for name in table.schema.names)
        self._write(
            lambda c: c.adbc_ingest("incoming", reader_of(table, BATCH_ROWS), mode="create",
                                    temporary=True),
            lambda c: c.execute(f"INSERT INTO t SELECT * FROM incoming ON CONFLICT "
                                f"({self.spec.shard}, {self.spec.sort}) DO UPDATE SET {sets}"),
            lambda c: c.execute("DROP TABLE incoming"))

    def query(self, sql):
        connection = self.connections.get()
        with connection.cursor() as cursor:
            cursor.execute(sql)
            table = cursor.fetch_arrow_table()
        connection.commit()
        return table

    def disk_bytes(self):
        return tree_bytes(self.workdir / "data" / "base")

    def peak_rss_bytes(self):
        return max(self.peak_before, self.memory.peak)


class MemorySampler:
    """Peak of a process family's memory, counting shared memory once."""

    def __init__(self, pid, every_s=0.25):
        self.peak = 0
        self._root, self._every_s = psutil.Process(pid), every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._done.wait(self._every_s):
            infos = []
            try:
                for process in [self._root, *self._root.children(recursive=True)]:
                    infos.append(process.memory_info())
            except psutil.NoSuchProcess:
                continue
            own = sum(i.rss - i.shared for i in infos)
            self.peak = max(self.peak, own + max(i.shared for i in infos))

    def stop(self):
        self._done.set()
        self._thread.join()


def program(name):
    if found := shutil.which(name):
        return found
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
