"""Every system under test, by the name the command line knows it by.

A system's module is imported only when it is measured, so that a run needs the
client libraries of the systems it names and no others.
"""

import importlib


def lazily(module, name, *first):
    """A constructor `(dataset, workdir)` of the class `name` in `module`."""

    def make(dataset, workdir):
        found = getattr(importlib.import_module(f".{module}", __package__), name)
        return found(*first, dataset, workdir)

    return make


PEERS = {
    "golimit": lazily("flight_limit", "GoLimit"),
    "flight-limit": lazily("flight_limit", "PythonLimit"),
    "sheaf": lazily("sheaf", "Sheaf"),
    "duckdb-flight": lazily("duckdb_flight", "DuckdbFlight", "plain"),
    "duckdb-flight-sorted": lazily("duckdb_flight", "DuckdbFlight", "sorted"),
    "duckdb-flight-indexed": lazily("duckdb_flight", "DuckdbFlight", "indexed"),
    "postgres": lazily("postgres", "Postgres"),
    "roapi": lazily("roapi", "Roapi"),
    "duckdb-local": lazily("duckdb_local", "DuckdbLocal"),
    "parquet-local": lazily("parquet_local", "ParquetLocal"),
    "chdb-local": lazily("chdb_local", "ChdbLocal", "merge"),
    "chdb-local-replacing": lazily("chdb_local", "ChdbLocal", "replacing"),
}
# What "all" names: one of each kind. The others are the same engines without the wire, or
# without upserts.
ALL = [name for name in PEERS if name not in ("duckdb-local", "chdb-local")]
LIMITS_AND_SHEAF = ("golimit", "flight-limit", "sheaf")
