"""What the table may hold at any moment.

The keys are dealt out to stripes; one writer writes a stripe, operation after operation,
each with a number that is also the version (the column v) of the rows it writes. So a
stripe's content is right if it is what some first n operations leave behind, where n is
at least what was acknowledged when the read began and at most what was sent when it
ended. That holds across a kill too: of what was not acknowledged, some first part may be
there, each operation whole or not at all. All other columns follow from key and version."""

import threading
from collections import deque

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WORDS = pa.array(["", "word", "a longer sentence about nothing", "näher", "x" * 90,
                  *(f"value {n} of many" for n in range(95))])
SCHEMA = pa.schema([("k", pa.string()), ("s", pa.int64()), ("v", pa.int64()),
                    ("t", pa.string()), ("x", pa.float64())])


class Wrong(Exception):
    """An answer that no order of events explains."""


class Keys:
    """The key space: devices (sharding key) and places (sorting key), both from 0."""

    def __init__(self, devices, places, stripes):
        self.devices, self.places, self.stripes = devices // stripes * stripes, places, stripes
        self.size = self.devices // stripes * places  # keys of a stripe

    def device(self, stripe, index):
        return index // self.places * self.stripes + stripe

    def batch(self, stripe, indices, version):
        """The rows of these keys of a stripe, as this operation writes them."""
        device, place = self.device(stripe, indices), indices % self.places
        version = np.broadcast_to(np.asarray(version, np.int64), indices.shape)
        text, number = content(device * self.places + place, version)
        return pa.record_batch([names(device), pa.array(place), pa.array(version), text, number],
                               schema=SCHEMA)

    def observe(self, table):
        """The versions found, one array a stripe, 0 where no row is; rows must be of known
        keys, each at most once, with what their key and version say in the other columns."""
        device = pc.cast(pc.utf8_slice_codeunits(table["k"], 1), pa.int64()).to_numpy()
        place, version = table["s"].to_numpy(), table["v"].to_numpy()
        if len(device) and not (device.min() >= 0 and device.max() < self.devices
                                and place.min() >= 0 and place.max() < self.places):
            raise Wrong("a row with a key that was never written")
        index = device // self.stripes * self.places + place
        where = device % self.stripes * self.size + index
        counts = np.bincount(where, minlength=self.stripes * self.size)
        if counts.max() > 1:
            raise Wrong(f"{(counts > 1).sum()} keys have more than one row")
        text, number = content(device * self.places + place, version)
        for name, wanted in (("t", text), ("x", number)):
            right = pc.fill_null(pc.equal(table[name], wanted), False)
            if not pc.all(right, min_count=0).as_py():
                raise Wrong(f"column {name} is not what was written")
        found = np.zeros(self.stripes * self.size, np.int64)
        found[where] = version
        return found.reshape(self.stripes, self.size)


def names(devices):
    return pc.binary_join_element_wise("d", pc.cast(pa.array(devices), pa.string()), "")


def content(key, version):
    """The columns t and x of these keys at these versions."""
    number = key * 7919 + version * 104_729
    return WORDS.take(pa.array(number % len(WORDS))), pa.array(number % 100_003 * 0.25)


class Stripe:
    """One writer's keys: what is acknowledged, and the operations since."""

    def __init__(self, number, keys):
        self.number, self.keys = number, keys
        self.lock = threading.Lock()
        self.state = np.zeros(keys.size, np.int64)  # as acknowledged
        self.acked = self.sent = 0
        self.journal = deque()  # (number, indices, version or 0), what readers may need
        self.views = []

    def sending(self, indices, delete=False):
        """An operation on these keys, each named once, is about to be sent: its number."""
        with self.lock:
            self.sent += 1
            self.journal.append((self.sent, indices, 0 if delete else self.sent))
            return self.sent

    def acknowledge(self, number):
        """All operations up to this number are durable."""
        with self.lock:
            for entry in self.journal:
                if self.acked < entry[0] <= number:
                    self.state[entry[1]] = entry[2]
            self.acked = max(self.acked, number)
            oldest = min([self.acked, *(view.base for view in self.views)])
            while self.journal and self.journal[0][0] <= oldest:
                self.journal.popleft()

    def settle(self, observed):
        """After a restart: what is there is what the operations up to some number left.
        Those after it are lost, as they may be; returns how many."""
        with self.reading() as view:
            number = view.check(observed)
        with self.lock:
            lost = self.sent - number
            self.state, self.acked = observed.copy(), self.sent
            self.journal.clear()
        return lost

    def reading(self):
        return View(self)


class View:
    """What a read that begins now may find. Close it: it keeps the journal."""

    def __init__(self, stripe):
        self.stripe = stripe
        with stripe.lock:
            self.base, self.state = stripe.acked, stripe.state.copy()
            stripe.views.append(self)
        self.until = None

    def end(self):
        """The read has ended: nothing sent later can be in it."""
        with self.stripe.lock:
            self.until = self.stripe.sent

    def close(self):
        with self.stripe.lock:
            self.stripe.views.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def check(self, observed, low=0, high=None, above=0):
        """The number of operations that explains the versions observed for the keys from
        low to high, where only versions above `above` were asked for."""
        if self.until is None:
            self.end()
        high = len(self.state) if high is None else high
        state = np.where(self.state[low:high] > above, self.state[low:high], 0)
        found = observed[low:high]
        differs = state != found
        wrong = int(differs.sum())
        if not wrong:
            return self.base
        with self.stripe.lock:
            entries = [e for e in self.stripe.journal if self.base < e[0] <= self.until]
        first = self._said(state, found)
        for number, indices, version in entries:
            inside = indices[(indices >= low) & (indices < high)] - low
            wrong -= int(differs[inside].sum())
            state[inside] = version if version > above else 0
            differs[inside] = state[inside] != found[inside]
            wrong += int(differs[inside].sum())
            if not wrong:
                return number
        raise Wrong(f"stripe {self.stripe.number}, keys {low} to {high}: no number of operations from "
                    f"{self.base} to {self.until} explains the answer; against the first {first}, "
                    f"against the last {self._said(state, found)}")

    def _said(self, state, found):
        missing, extra = (state > 0) & (found == 0), (state == 0) & (found > 0)
        other = (state > 0) & (found > 0) & (state != found)
        return f"{missing.sum()} rows missing, {extra.sum()} too many, {other.sum()} of other versions"
