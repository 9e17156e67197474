"""Scans of a table that changes."""

import statistics

from .peer import NotSupported

STEADY_ROWS_PER_SECOND = 10_000


def scans(m):
    """The whole table: after a random tenth of its rows was replaced, while another
    process goes on replacing rows, and when background work has settled that."""
    if not m.peer.folds:
        raise NotSupported
    m.peer.upsert(m.dataset.samples.tenth)
    scan(m, "scan_unfolded")
    m.attempt(beside_writes, m)
    m.peer.settle()
    scan(m, "scan_folded")
    size = m.peer.disk_bytes() / m.dataset.sorted_path.stat().st_size
    m.record("disk_changed_vs_parquet", size, 1)


def beside_writes(m):
    with m.peer.steady_writer(m.dataset.samples.steady, STEADY_ROWS_PER_SECOND) as steady:
        scan(m, "scan_beside_writes")
    m.record("written_beside", steady.rate, 1)


def scan(m, name):
    times = m.repeated(m.timed_scan)
    m.record(name, m.dataset.table.num_rows / statistics.median(times), len(times))
