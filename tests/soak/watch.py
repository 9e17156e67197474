"""What is watched from outside: memory, disk, the log, and how long operations take."""

import contextlib
import json
import statistics
import threading
import time
from collections import Counter, defaultdict

MIB = 1 << 20
# Seconds that an operation may take on a machine that does other things besides.
SLOW = {"lookup": 10, "acknowledgement": 20, "delete by filter": 30, "fold": 180, "start": 15,
        "stop": 40, "scan": 60, "ordered scan": 60, "filtered scan": 60, "part of a snapshot": 60}


class Log:
    """Counts, durations and failures, from all threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.counts, self.durations, self.failures = Counter(), defaultdict(list), []

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def took(self, kind, seconds):
        with self.lock:
            self.durations[kind].append(seconds)
        if seconds > SLOW[kind]:
            self.fail(f"slow: {kind} took {seconds:.1f} s")

    def fail(self, what):
        with self.lock:
            if len(self.failures) < 50:
                self.failures.append(what)

    def operations(self):
        with self.lock:
            return {kind: {"count": len(times), "p50_ms": 1e3 * statistics.median(times),
                           "p99_ms": 1e3 * sorted(times)[int(len(times) * 0.99)], "max_ms": 1e3 * max(times)}
                    for kind, times in sorted(self.durations.items())}


class Samples(threading.Thread):
    """Memory and disk of a gateway every so many seconds, with the time since the start."""

    def __init__(self, gateway, every):
        super().__init__(daemon=True)
        self.gateway, self.every = gateway, every
        self.ended, self.started = threading.Event(), time.monotonic()
        self.memory, self.disk = [], []

    def run(self):
        while not self.ended.wait(self.every):
            now = time.monotonic() - self.started
            with contextlib.suppress(Exception):  # the process may just have ended
                self.memory.append((now, self.gateway.memory()))
            self.disk.append((now, disk_bytes(self.gateway.data)))

    def between(self, samples, low, high):
        return [value for at, value in samples if low <= at < high]


def disk_bytes(folder, suffix=""):
    """Bytes of the files below, without the ballast, whose size is fixed."""
    total = 0
    for path in folder.rglob(f"*{suffix}"):
        with contextlib.suppress(OSError):  # files come and go
            if path.is_file() and path.name != "ballast":
                total += path.stat().st_blocks * 512
    return total


def grown(what, early, late, factor, slack):
    """A sentence if the later samples lie above the earlier ones by more than allowed."""
    if not early or not late:
        return f"{what} was not measured"
    before, after = statistics.median(early), statistics.median(late)
    if after > factor * before + slack:
        return f"{what} grew from {before / MIB:.0f} to {after / MIB:.0f} MiB"
    return None


def log_levels(gateway):
    """How many lines of each level the log has, and the lines that must not be there."""
    levels, bad = Counter(), []
    for line in gateway.log_lines():
        level, text = line.get("level", "raw").upper(), json.dumps(line)
        levels[level] += 1
        if level in ("ERROR", "RAW") or "panic" in text or "goroutine " in text:
            bad.append(text[:300])
    return dict(levels), bad
