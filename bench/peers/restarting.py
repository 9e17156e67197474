"""What a system does with nothing in memory: its first answers, and how soon it gives them."""

import time

from .peer import NotSupported

STARTS = 3


def cold_lookups(m):
    """Each sharding key once, just after a restart. The kernel's page cache is warm: what
    the system itself had cached is what is missing."""
    samples = m.dataset.samples
    wanted = dict(zip(samples.lookups, samples.lookup_rows))
    m.peer.restart()
    if hasattr(m.peer, "round_trip"):
        m.peer.round_trip()  # opens the connection
    times = m.each(m.peer.lookup, [(shard,) for shard in wanted], list(wanted.values()))
    m.record_percentile("lookup_cold_p50", times, .5)


def start_up(m):
    """From the start of the process to its first answer, of a system that was asked to
    stop and of one that was killed just after it took small writes."""
    for name, kill in (("start_clean", False), ("start_killed", True)):
        times = []
        for number in range(STARTS):
            if kill:
                for table in m.dataset.samples.small_writes[number * 20:][:20]:
                    m.peer.upsert(table)  # they are there already
            times.append(m.peer.restart(kill))
        m.record(name, sorted(times)[STARTS // 2], STARTS)


def bytes_read(m):
    """Bytes that the server reads from files for three columns, and for all."""
    columns = list(m.dataset.spec.projection)
    for name, asked in (("read_3_columns", columns), ("read_all_columns", None)):
        m.peer.restart()
        before = m.peer.bytes_read()
        m.timed_scan(asked)
        time.sleep(0.1)
        read = m.peer.bytes_read() - before
        if read <= 0:
            raise NotSupported
        m.record(name, read / 1e6, 1)
