"""The states in which stored rows must look the same.

fresh: just written, as the test cuts the batches. folded: after Fold.
restarted: after a restart of the gateway. rebatched: the same rows, cut into
batches of other lengths.
"""

import itertools

import pyarrow as pa

from .wire import keyed

STATES = ("fresh", "folded", "restarted", "rebatched")
OTHER_LENGTHS = (1, 3, 2, 7, 64, 1, 500)


class State:
    """How rows get into a table, and what happens before they are looked at."""

    def __init__(self, label, gateway):
        self.label = label
        self.gateway = gateway

    @property
    def client(self):
        return self.gateway.client

    def cut(self, rows):
        """The batches of a table, or of a list of batches, as this state has them."""
        if isinstance(rows, pa.RecordBatch):
            rows = [rows]
        batches = rows.to_batches() if isinstance(rows, pa.Table) else list(rows)
        if self.label != "rebatched":
            return batches
        lengths, cut = itertools.cycle(OTHER_LENGTHS), []
        for batch in batches:
            at = 0
            while at < batch.num_rows:
                length = next(lengths)
                cut.append(batch.slice(at, length))
                at += length
        return cut

    def store(self, name, rows, sharding=None, sorting=None, slices=None, **command):
        """Write rows (making the table if keys are given) and bring them into this state."""
        schema = rows.schema if isinstance(rows, (pa.Table, pa.RecordBatch)) else rows[0].schema
        if sharding is not None:
            schema = keyed(schema, sharding, sorting, slices)
        ack = self.client.put(name, self.cut(rows), schema=schema, **command)
        self.settle(name)
        return ack

    def settle(self, name):
        if self.label == "folded":
            self.client.fold(name)
        elif self.label == "restarted":
            self.gateway.restart()
