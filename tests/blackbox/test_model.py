"""A table against a plain dictionary: random writes in every mode, deletes, folds,
restarts, changes of the schema, snapshots; random reads in every form. What the gateway
answers is what the dictionary says, every time."""

import os
import random

import pyarrow as pa
import pytest

from . import LONG
from .rows import values
from .wire import b64, refused

OPERATIONS = int(os.environ.get("SHEAF_SOAK") or 0) // 20 if LONG else 250
COLUMNS = ("v", "t")


class Model:
    """The rows as (k, s) -> {column: value}, and the same operations on both sides."""

    def __init__(self, gateway, name, seed):
        self.gateway, self.name, self.rng = gateway, name, random.Random(seed)
        self.rows, self.pinned = {}, None
        self.types = {"k": pa.string(), "s": pa.int32(), "v": pa.int64(), "t": pa.string()}
        self.gateway.client.create(name, pa.schema(list(self.types.items())), ["k"], ["s"], 4)

    @property
    def client(self):
        return self.gateway.client

    def some_rows(self, columns, count):
        """Random rows with keys from a small space, so that they meet others."""
        columns = ["k", "s", *columns]
        rows = [{"k": f"k{self.rng.randrange(12)}", "s": self.rng.randrange(-40, 40),
                 "v": self.rng.choice([None, self.rng.randrange(10), 1 << 40]),
                 "t": self.rng.choice([None, "", "x", "word", "w" * self.rng.randrange(50)]),
                 "extra": self.rng.choice([None, 1.5, -2.0])} for _ in range(count)]
        schema = pa.schema([(column, self.types[column]) for column in columns])
        return [{column: row[column] for column in columns} for row in rows], schema

    def write(self):
        mode = self.rng.choice(["upsert"] * 4 + ["merge", "insert_ignore", "delete", "update", "insert"])
        columns = [c for c in self.types if c not in "ks"]
        if mode in ("merge", "update") and self.rng.random() < 0.7:
            columns = self.rng.sample(columns, self.rng.randint(1, len(columns)))
        count = self.rng.choice([1, 3, 30, 400])
        rows, schema = self.some_rows(columns, count)
        if mode == "update" and self.rows:  # keys that exist; a missing one is tried elsewhere
            keys = self.rng.choices(list(self.rows), k=count)
            rows = [{**row, "k": k, "s": s} for row, (k, s) in zip(rows, keys)]
        batches = pa.Table.from_pylist(rows, schema=schema).to_batches(
            max_chunksize=self.rng.choice([1, 7, 1000]) if count < 50 else 1000)
        self.after = dict(self.rows)
        problem = self.apply(mode, rows)
        if problem:
            with refused(problem):
                self.client.put(self.name, batches, schema=schema, mode=mode, atomic=True)
            return
        self.client.put(self.name, batches, schema=schema, mode=mode, atomic=self.rng.random() < 0.3)
        self.rows = self.after

    def apply(self, mode, rows):
        """The mode's effect on self.after, or the reason why it is refused."""
        empty = {column: None for column in self.types if column not in "ks"}
        for row in rows:
            key = (row["k"], row["s"])
            sent = {column: value for column, value in row.items() if column not in "ks"}
            there = key in self.after
            if mode == "insert" and there:
                return "KEY_EXISTS"
            if mode == "update" and not there:
                return "ROW_NOT_FOUND"
            if mode == "delete":
                self.after.pop(key, None)
            elif mode in ("merge", "update") and there:
                self.after[key] = {**self.after[key], **sent}
            elif not (mode == "insert_ignore" and there):
                self.after[key] = {**empty, **sent}
        return None

    def delete_by_filter(self):
        where, test = self.condition()
        doomed = [key for key, row in self.rows.items() if test(key, row)]
        assert self.client.delete(self.name, where=where)["rows"] == len(doomed)
        for key in doomed:
            del self.rows[key]

    def fold(self):
        self.client.fold(self.name)

    def restart(self):
        self.gateway.restart()
        self.pinned = None

    def pin(self):
        """Remember a moment; later() finds it unchanged."""
        if self.pinned is None:
            self.pinned = (self.client.info(self.name, endpoints=self.rng.choice(["slices", 3])),
                           dict(self.rows), list(self.types))

    def later(self):
        if self.pinned:
            info, rows, columns = self.pinned
            parts = [self.client.redeem(endpoint) for endpoint in info.endpoints]
            self.compare(pa.concat_tables(parts).select(columns), rows, columns)

    def change_schema(self):
        if "extra" in self.types:
            self.client.act("AlterTable", table=self.name, drop_columns=["extra"])
            del self.types["extra"]
            self.rows = {key: {c: v for c, v in row.items() if c != "extra"}
                         for key, row in self.rows.items()}
        else:
            self.types["extra"] = pa.float64()
            added = pa.schema([("extra", pa.float64())])
            self.client.act("AlterTable", table=self.name, add_columns=b64(added.serialize()))
            self.rows = {key: {**row, "extra": None} for key, row in self.rows.items()}

    def condition(self):
        """A `where` and the same as a Python test."""
        k, s, v = f"k{self.rng.randrange(13)}", self.rng.randrange(-42, 42), self.rng.randrange(10)
        other = f"k{self.rng.randrange(13)}"
        return self.rng.choice([
            ([["k", "=", k]], lambda key, row: key[0] == k),
            ([["k", "in", [k, other, k]]], lambda key, row: key[0] in (k, other)),
            ([["k", "=", k], ["s", "=", s]], lambda key, row: key == (k, s)),
            ([["k", "=", k], ["s", ">=", s], ["s", "<", s + 9]],
             lambda key, row: key[0] == k and s <= key[1] < s + 9),
            ([["k", "in", [k, other]], ["s", "in", [s, s + 1]]],
             lambda key, row: key[0] in (k, other) and key[1] in (s, s + 1)),
            ([["s", "<", s]], lambda key, row: key[1] < s),
            ([["v", "=", v]], lambda key, row: row["v"] == v),
            ([["v", "is null"], ["k", "!=", k]], lambda key, row: row["v"] is None and key[0] != k),
            ([[["t", "starts_with", "w"]], [["v", ">", v]]],
             lambda key, row: (row["t"] or "").startswith("w") or (row["v"] is not None and row["v"] > v)),
            ([[["k", "s"], ">=", [k, s]]], lambda key, row: key >= (k, s)),
        ])

    def read(self):
        where, test = self.condition()
        columns = self.rng.sample(list(self.types), self.rng.randint(1, len(self.types)))
        if not {"k", "s"} <= set(columns):
            columns = ["k", "s", *(c for c in columns if c not in "ks")]
        order = self.rng.choice([None, "asc", "desc"])
        query = {"where": where, "columns": columns, **({"order": order} if order else {})}
        wanted = {key: row for key, row in self.rows.items() if test(key, row)}
        if order and self.rng.random() < 0.5:
            pages = self.client.pages(self.name, **query, limit=self.rng.choice([1, 5, 50]) if len(
                wanted) < 60 else 50)
            found = pa.concat_tables(pages)
        else:
            found = self.client.get(self.name, **query)
        self.compare(found, wanted, columns)
        if order:
            keys = values(found, "k", "s")
            assert keys == sorted(keys, reverse=order == "desc")

    def read_all(self):
        self.compare(self.client.get(self.name), self.rows, list(self.types))
        assert self.client.count(self.name) == len(self.rows)

    def compare(self, found, rows, columns):
        wanted = sorted([{"k": k, "s": s, **row} for (k, s), row in rows.items()],
                        key=lambda row: (row["k"], row["s"]))
        got = sorted(found.to_pylist(), key=lambda row: (row["k"], row["s"]))
        assert got == [{column: row[column] for column in columns} for row in wanted]

    def step(self):
        self.rng.choice([self.write] * 8 + [self.read] * 12 + [self.delete_by_filter, self.read_all,
                        self.pin, self.later] + [self.fold] * (self.rng.random() < 0.5)
                        + [self.change_schema] * (self.rng.random() < 0.3)
                        + [self.restart] * (self.rng.random() < 0.05))()


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_agree_with_a_dictionary(own_gateway, name, seed):
    model = Model(own_gateway(), name, seed)
    for _ in range(OPERATIONS):
        model.step()
    model.read_all()
    model.restart()
    model.fold()
    model.read_all()
