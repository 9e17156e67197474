"""The workers: writers with a stripe each, readers, and one that folds."""

import random
import threading
import time

import numpy as np
import pyarrow as pa

from blackbox.wire import PutStream

from .model import SCHEMA, Wrong

TABLE = "soak"
WINDOW = 8  # batches sent and not acknowledged


class Shift:
    """Says when to work. While it is paused the gateway may be gone, and errors are no
    surprise; every worker stops at the gate until it is opened again."""

    def __init__(self):
        self.changed = threading.Condition()
        self.state, self.parked = "work", 0

    def gate(self):
        """Wait while there is a pause; False at the end of the shift."""
        with self.changed:
            self.parked += 1
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.state != "pause")
            self.parked -= 1
            return self.state == "work"

    def say(self, state):
        with self.changed:
            self.state = state
            self.changed.notify_all()

    def all_parked(self, workers, timeout):
        with self.changed:
            return self.changed.wait_for(lambda: self.parked == workers, timeout)


class Worker(threading.Thread):
    """Repeats step() through a shift and tells the log how long things took."""

    def __init__(self, soak, seed):
        super().__init__(daemon=True, name=f"{type(self).__name__} {seed}")
        self.soak, self.shift, self.log = soak, soak.shift, soak.log
        self.rng = random.Random(seed)

    def run(self):
        while self.shift.gate():
            try:
                self.client = self.soak.gateway.client.again()
                while self.shift.state == "work":
                    self.step()
                self.client.close()
            except Wrong as error:
                self.log.fail(f"{self.name}: {error}")
            except Exception as error:
                if self.shift.state != "pause":
                    self.log.fail(f"{self.name}: {type(error).__name__}: {error}")
                    time.sleep(1)

    def timed(self, kind, call, *args, **more):
        started = time.monotonic()
        result = call(*args, **more)
        self.log.took(kind, time.monotonic() - started)
        return result


class Writer(Worker):
    """Owns a stripe: only it changes these keys."""

    def __init__(self, soak, seed, stripe):
        super().__init__(soak, seed)
        self.stripe, self.keys = stripe, soak.keys
        self.choose = np.random.default_rng(seed)

    def step(self):
        kind = self.rng.choices(["small", "bulk", "delete", "filter", "merge"], [8, 1, 3, 2, 2])[0]
        if kind == "filter":
            return self.delete_by_filter()
        mode = {"delete": "delete", "merge": "merge"}.get(kind, "upsert")
        sizes = [self.rng.choice([1, 10, 100, 400]) for _ in range(self.rng.randint(1, 40))]
        if kind == "bulk":
            sizes = [self.keys.size // 3] * self.rng.randint(1, 3)
        return self.stream(mode, [min(size, self.keys.size) for size in sizes])

    def stream(self, mode, sizes):
        """One DoPut: batches sent a few ahead of their acknowledgements."""
        stream = PutStream(self.client.flight, {"table": TABLE, "mode": mode}, SCHEMA)
        first, sent = self.stripe.sent, 0
        for size in sizes:
            indices = self.choose.choice(self.keys.size, size, replace=False)
            number = self.stripe.sending(indices, mode == "delete")
            stream.write(self.keys.batch(self.stripe.number, indices, number))
            sent += 1
            self.log.count("rows deleted" if mode == "delete" else "rows written", size)
            while sent - self.acknowledged(stream, first) >= WINDOW:
                self.read(stream)
        stream.writer.done_writing()
        while self.acknowledged(stream, first) < sent:
            self.timed("acknowledgement", self.read, stream)
        stream.writer.close()

    def read(self, stream):
        if stream.read_ack() is None:
            stream.writer.close()  # raises what the gateway said
            raise RuntimeError("a stream ended before everything was acknowledged")

    def acknowledged(self, stream, first):
        """Batches acknowledged; the model learns of them."""
        batches = stream.acks[-1].batches if stream.acks else 0
        self.stripe.acknowledge(first + batches)
        return batches

    def delete_by_filter(self):
        """A range of places of one device, in one call."""
        first, high = self.range_of_a_device()
        device = int(self.keys.device(self.stripe.number, first))
        place = int(first % self.keys.places)
        where = [["k", "=", f"d{device}"], ["s", ">=", place], ["s", "<", place + int(high - first)]]
        there = int((self.stripe.state[first:high] > 0).sum())
        number = self.stripe.sending(np.arange(first, high), delete=True)
        rows = self.timed("delete by filter", self.client.delete, TABLE, where=where)["rows"]
        if rows != there:
            raise Wrong(f"{rows} rows deleted by filter, {there} were there")
        self.log.count("rows deleted", rows)
        self.stripe.acknowledge(number)

    def range_of_a_device(self):
        device = self.rng.randrange(self.keys.size // self.keys.places)
        low = self.rng.randrange(self.keys.places)
        high = self.rng.randint(low + 1, self.keys.places)
        return device * self.keys.places + low, device * self.keys.places + high


class Reader(Worker):
    """Asks questions of every kind and compares the answers."""

    def step(self):
        kinds = {self.lookup: 20, self.scan: 2, self.ordered: 1, self.filtered: 2, self.snapshot: 1}
        self.rng.choices(list(kinds), list(kinds.values()))[0]()
        time.sleep(self.rng.uniform(0, 0.02))

    def ask(self, kind, **query):
        return self.timed(kind, self.client.get, TABLE, **query)

    def lookup(self):
        keys, stripe = self.soak.keys, self.rng.choice(self.soak.stripes)
        device = self.rng.randrange(keys.size // keys.places)
        low = self.rng.choice([0, self.rng.randrange(keys.places)])
        where = [["k", "=", f"d{int(keys.device(stripe.number, device * keys.places))}"]]
        if low:
            where.append(["s", ">=", low])
        with stripe.reading() as view:
            found = self.ask("lookup", where=where)
            view.end()
            observed = self.only(keys.observe(found), {stripe.number})[stripe.number]
            if low and (observed[device * keys.places:device * keys.places + low] > 0).any():
                raise Wrong("a lookup answered with rows below its range")
            view.check(observed, device * keys.places + low, (device + 1) * keys.places)

    def only(self, observed, stripes):
        for number, versions in enumerate(observed):
            if number not in stripes and (versions > 0).any():
                raise Wrong("an answer with rows of other keys than asked for")
        return observed

    def scan(self):
        self.whole("scan")

    def ordered(self):
        order = self.rng.choice(["asc", "desc"])
        found = self.whole("ordered scan", order=order)
        by = [(name, "ascending" if order == "asc" else "descending") for name in ("k", "s")]
        if not found.select(["k", "s"]).equals(found.select(["k", "s"]).sort_by(by)):
            raise Wrong("an ordered scan is not in order")

    def filtered(self):
        """Rows of the newer versions: a filter on a column that is no key."""
        above = int(self.rng.random() * max(stripe.sent for stripe in self.soak.stripes))
        self.whole("filtered scan", above=above, where=[["v", ">", above]])

    def whole(self, kind, above=0, **query):
        views = self.soak.views()
        try:
            found = self.ask(kind, **query)
            self.compare(views, found, above)
        finally:
            close(views)
        return found

    def compare(self, views, found, above=0):
        for view in views:
            view.end()
        for view, observed in zip(views, self.soak.keys.observe(found)):
            view.check(observed, above=above)

    def snapshot(self):
        """A moment, read twice with other work between."""
        views = self.soak.views()
        try:
            info = self.client.info(TABLE, endpoints=self.rng.choice(["slices", 3]))
            for view in views:
                view.end()
            for _ in range(2):
                found = pa.concat_tables([self.timed("part of a snapshot", self.client.redeem, endpoint)
                                          for endpoint in info.endpoints])
                self.compare_pinned(views, found)
                time.sleep(self.rng.uniform(0, 0.5))
                if self.shift.state != "work":
                    return
        finally:
            close(views)

    def compare_pinned(self, views, found):
        """As compare, but nothing sent after the snapshot was taken can be in it."""
        for view, observed in zip(views, self.soak.keys.observe(found)):
            number = view.check(observed)
            if number != getattr(view, "number", number):
                raise Wrong(f"a snapshot showed operation {view.number}, then {number}")
            view.number = number


class Folder(Worker):
    """Folds now and then, besides what the gateway does by itself."""

    def step(self):
        self.timed("fold", self.client.fold, TABLE)
        time.sleep(self.rng.uniform(0, 2))


def close(views):
    for view in views:
        view.close()
