"""A soak from start to end, and its summary."""

import random
import sys
import time
import traceback

import pyarrow as pa
import pyarrow.compute as pc

from blackbox.gateway import Gateway

from .load import TABLE, Folder, Reader, Shift, Writer
from .model import SCHEMA, Keys, Stripe
from .watch import MIB, Log, Samples, disk_bytes, grown, log_levels

MEMORY = 256 * MIB  # the gateway's --memory
SLACK = 48 * MIB  # what logs and memtables may add to any size on disk
SLICES = 8


class Soak:
    def __init__(self, folder, seconds, seed, devices, places, writers=4, readers=3):
        self.folder, self.seconds, self.rng = folder, seconds, random.Random(seed)
        self.seed, self.keys = seed, Keys(devices, places, writers)
        self.stripes = [Stripe(number, self.keys) for number in range(writers)]
        self.log, self.shift = Log(), Shift()
        self.gateway = Gateway(folder / "gateway", "--memory", str(MEMORY))
        self.workers = [Writer(self, seed * 1000 + n, stripe) for n, stripe in enumerate(self.stripes)]
        self.workers += [Reader(self, seed * 1000 + 100 + n) for n in range(readers)]
        self.workers.append(Folder(self, seed * 1000 + 200))

    quiet = 0, 0  # from when to when no restart was to be

    def views(self):
        return [stripe.reading() for stripe in self.stripes]

    def run(self):
        """Work, restart, check; the summary as a dictionary. Restarts come in the first and
        in the last third of the time; the middle one is for memory and disk to show."""
        self.gateway.start()
        self.samples = Samples(self.gateway, every=min(0.5, self.seconds / 200))
        try:
            self.gateway.client.create(TABLE, SCHEMA, ["k"], ["s"], SLICES)
            self.samples.start()
            for worker in self.workers:
                worker.start()
            self._restarts(0, self.seconds / 3)
            self.quiet = time.monotonic() - self.samples.started, self.seconds * 2 / 3
            self._wait_until(self.seconds * 2 / 3)
            self._restarts(self.seconds * 2 / 3, self.seconds)
            self._restart("stop")
            self.shift.say("end")
            for worker in self.workers:
                worker.join(60)
            self._watched()
            self._delete_most()
            self.gateway.stop()
        except Exception as error:
            self.log.fail(f"{type(error).__name__}: {error}")
            print(traceback.format_exc(), file=sys.stderr)
        finally:
            self.shift.say("end")
            self.samples.ended.set()
            if self.gateway.alive():
                self.gateway.kill()
        return self.summary()

    def _wait_until(self, moment):
        while (left := self.samples.started + moment - time.monotonic()) > 0 and not self.log.failures:
            time.sleep(min(left, 0.2))

    def _restarts(self, low, high):
        every = max(2.0, min(45, self.seconds / 12))
        while low < high and not self.log.failures:
            low += every * self.rng.uniform(0.5, 1.5)
            self._wait_until(min(low, high))
            self._restart(self.rng.choice(["kill", "stop"]))

    def _restart(self, how):
        """End the process under load, start it again, and compare all that is there."""
        self.shift.say("pause")
        started = time.monotonic()
        if how == "kill":
            self.gateway.kill()
        else:
            self.gateway.ask_to_stop()
            self.gateway.process.wait(60)
            self.log.took("stop", time.monotonic() - started)
        if not self.shift.all_parked(len(self.workers), 60):
            raise RuntimeError(f"workers hang after the gateway ended:\n{self._where()}")
        self.log.took("start", self.gateway.start())
        self.log.count("restarts after " + {"kill": "kill -9", "stop": "SIGTERM"}[how])
        found = self.keys.observe(self.gateway.client.get(TABLE))
        for stripe, observed in zip(self.stripes, found):
            self.log.count("operations lost unacknowledged", stripe.settle(observed))
        self.shift.say("work")

    def _where(self):
        frames = sys._current_frames()
        return "\n".join(f"{worker.name}: " + traceback.format_stack(frames[worker.ident])[-1]
                         for worker in self.workers if worker.is_alive() and worker.ident in frames)

    def _watched(self):
        """Flat memory within one life of the process, bounded disk over all of them."""
        third, (began, ended) = self.seconds / 3, self.quiet
        quarter = (ended - began) / 4
        within = [(began + quarter, began + 2 * quarter), (ended - quarter, ended)]
        early, late = (self.samples.between(self.samples.memory, *span) for span in within)
        overall = [(third, 2 * third), (2 * third, self.seconds)]
        disks = [self.samples.between(self.samples.disk, *span) for span in overall]
        for problem in (grown("memory", early, late, 1.25, 64 * MIB),
                        grown("disk", *disks, 1.5, SLACK)):
            if problem:
                self.log.fail(problem)

    def _delete_most(self):
        """Delete nine devices in ten and fold: the disk must hold about what a fresh store does."""
        client, doomed = self.gateway.client, range(self.keys.devices * 9 // 10)
        rows = client.get(TABLE)
        for first in range(0, len(doomed), 5000):
            client.delete(TABLE, where=[["k", "in", [f"d{n}" for n in doomed[first:first + 5000]]]])
        client.fold(TABLE)
        left = client.get(TABLE)
        kept = rows.filter(pc.invert(pc.is_in(
            rows["k"], value_set=pa.array([f"d{n}" for n in doomed]))))
        by = [("k", "ascending"), ("s", "ascending")]
        if not left.sort_by(by).equals(kept.sort_by(by)):
            self.log.fail(f"after deleting nine tenths {left.num_rows} rows are left, "
                          f"not {kept.num_rows}, or they differ")
        fresh = Gateway(self.folder / "fresh", "--memory", str(MEMORY))
        fresh.start()
        try:
            fresh.client.create(TABLE, SCHEMA, ["k"], ["s"], SLICES)
            fresh.client.put(TABLE, kept)
            fresh.client.fold(TABLE)
            tables = [one.act("Stats", table=TABLE)["bytes"] for one in (client, fresh.client)]
            fresh.stop()
            sizes = disk_bytes(self.gateway.data, ".sst"), disk_bytes(fresh.data, ".sst")
        finally:
            if fresh.alive():
                fresh.kill()
        self.sizes = {"after_deletes": tables[0], "fresh": tables[1],
                      "files": sizes[0], "fresh_files": sizes[1]}
        for what, (after, fresh), slack in (("table", tables, MIB // 8), ("files", sizes, SLACK)):
            if after > 1.3 * fresh + slack:
                self.log.fail(f"{what}: {after / MIB:.1f} MiB after deleting nine tenths, "
                              f"{fresh / MIB:.1f} MiB in a fresh store")

    def summary(self):
        levels, bad = log_levels(self.gateway)
        for line in bad[:5]:
            self.log.fail(f"in the log: {line}")
        memory = [value for _, value in self.samples.memory]
        disk = [value for _, value in self.samples.disk]
        found = {
            "passed": not self.log.failures, "failures": self.log.failures,
            "minutes": self.seconds / 60, "seed": self.seed,
            "keys": self.keys.size * self.keys.stripes, "memory_flag": MEMORY,
            "counts": dict(self.log.counts), "operations": self.log.operations(),
            "memory": spread(memory), "disk": spread(disk),
            "disk_after_deletes": getattr(self, "sizes", {}), "log": levels,
        }
        return {**found, "text": text(found)}


def spread(values):
    values = sorted(values) or [0]
    return {"median": values[len(values) // 2], "max": values[-1]}


def text(found):
    """The summary as Markdown."""
    verdict = "passed" if found["passed"] else "FAILED"
    counts = ", ".join(f"{number:,} {what}" for what, number in sorted(found["counts"].items()))
    lines = [f"A soak of {found['minutes']:.3g} minutes over {found['keys']:,} keys {verdict}: {counts}. "
             f"Resident memory {found['memory']['median'] / MIB:.0f} MiB in the median, "
             f"{found['memory']['max'] / MIB:.0f} at most (`--memory` {found['memory_flag'] / MIB:.0f} MiB); "
             f"disk {found['disk']['median'] / MIB:.0f} MiB in the median, "
             f"{found['disk']['max'] / MIB:.0f} at most."]
    if sizes := found["disk_after_deletes"]:
        lines[0] += (f" After deleting nine tenths of the devices and folding, a table of "
                     f"{sizes['after_deletes'] / MIB:.1f} MiB; a fresh one of the same rows has "
                     f"{sizes['fresh'] / MIB:.1f} MiB.")
    lines += ["", "| operation | count | p50 ms | p99 ms | most ms |", "|---|---:|---:|---:|---:|"]
    for kind, one in found["operations"].items():
        lines.append(f"| {kind} | {one['count']:,} | {one['p50_ms']:,.1f} | {one['p99_ms']:,.1f} "
                     f"| {one['max_ms']:,.1f} |")
    return "\n".join([*lines, *(f"- {failure}" for failure in found["failures"])]) + "\n"
