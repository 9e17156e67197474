"""The project's goals, each a ratio of two figures of one run, and what a run reached."""

from dataclasses import dataclass

from .measures import MEASURES

AGAIN = " again"  # what a limit measured once more, after all others, is called
DUCKDB = ("duckdb-flight", "duckdb-flight-sorted", "duckdb-flight-indexed")


class Figures:
    """The figures of one data set: figures[peer, measure], None where there is none. Of a
    peer measured twice the better figure counts: load on the machine only lowers it."""

    def __init__(self, peers, table):
        self.peers, self.table = peers, table

    def __getitem__(self, asked):
        names, measure = asked
        names = names if isinstance(names, tuple) else (names,)
        found = [value for name in names for again in ("", AGAIN)
                 if (value := self._value(name + again, measure)) is not None]
        best = max if MEASURES[measure].more_is_better else min
        return best(found, default=None)

    def _value(self, peer, measure):
        return self.peers.get(peer, {}).get(self.table, {}).get("values", {}).get(measure)

    def fsync_ms(self):
        """One small durable write on this disk, as the run of Sheaf found it."""
        return self.peers.get("sheaf", {}).get(self.table, {}).get("machine", {}).get("fsync_p50_ms")


def over(measure, peers, other=None):
    """Sheaf's figure as a multiple of another's (or of another figure of its own)."""
    def ratio(figures):
        return divided(figures["sheaf", measure], figures[peers, other or measure])

    return ratio


def small_writes(figures):
    parts = (figures["golimit", "round_trip_p50"], figures.fsync_ms())
    return None if None in parts else divided(figures["sheaf", "small_put_open_p50"], sum(parts))


def divided(value, by):
    return None if value is None or not by else value / by


@dataclass(frozen=True)
class Goal:
    """floor and aim are limits of the ratio; more says whether it should lie above them."""

    what: str
    floor: float
    aim: float
    ratio: object  # Figures -> float or None
    more: bool = True
    unit: str = ""
    tables: tuple = ("lineitem", "events")

    def verdict(self, value):
        if value is None:
            return "not measured"
        better = (lambda limit: value >= limit) if self.more else (lambda limit: value <= limit)
        return "aim" if better(self.aim) else "floor" if better(self.floor) else "missed"


CLICKHOUSE = "chdb-local-replacing"
GOALS = [
    Goal("full scan / golimit", 1.15, 1.4, over("scan", "golimit")),
    Goal("full scan / flight-limit", 0.85, 1.1, over("scan", "flight-limit")),
    Goal("3 columns / flight-limit", 0.6, 0.9, over("scan_3_columns", "flight-limit")),
    Goal("full scan / the best DuckDB behind Flight", 1.15, 1.5, over("scan", DUCKDB)),
    Goal("3 columns / the best DuckDB behind Flight", 1, 1.2, over("scan_3_columns", DUCKDB)),
    Goal("durable DoPut of all rows / golimit's discard", 0.3, 0.5, over("ingest", "golimit")),
    Goal("the same / ClickHouse's ReplacingMergeTree in process", 0.8, 1.3,
         over("ingest", CLICKHOUSE)),
    Goal("the same / DuckDB behind Flight, sorted", 1.5, 2.5, over("ingest", "duckdb-flight-sorted")),
    Goal("lookup p50, warm / golimit's empty round trip", 1.5, 1.1,
         over("lookup_p50", "golimit", "round_trip_p50"), more=False),
    Goal("lookup p50, our caches empty / golimit's empty round trip", 2, 1.5,
         over("lookup_cold_p50", "golimit", "round_trip_p50"), more=False),
    Goal("8 threads of lookups / golimit answering one row", 0.6, 0.85,
         over("lookup_8_threads", "golimit", "one_row_8_threads")),
    Goal("8 threads of lookups / PostgreSQL over ADBC", 1.3, 1.8,
         over("lookup_8_threads", "postgres")),
    Goal("upsert of a random 1 % / PostgreSQL", 10, 20, over("upsert", "postgres")),
    Goal("upsert of a random 1 % / ClickHouse's ReplacingMergeTree", 0.7, 1.2,
         over("upsert", CLICKHOUSE)),
    Goal("IN list of 100 sharding keys / one lookup", 20, 10,
         over("in_list_p50", "sheaf", "lookup_p50"), more=False),
    Goal("100 rows on an open stream, p50 / (empty round trip + one fsync)", 1.6, 1.3,
         small_writes, more=False),
    Goal("64 writers of small durable batches / golimit's discard", 0.4, 0.7,
         over("writers_64", "golimit")),
    Goal("scan after a random 10 % upsert, unfolded / clean scan", 0.5, 0.8,
         over("scan_unfolded", "sheaf", "scan")),
    Goal("scan beside 10,000 upserts/s / clean scan", 0.6, 0.8,
         over("scan_beside_writes", "sheaf", "scan")),
    Goal("scan after folding / clean scan", 0.95, 1, over("scan_folded", "sheaf", "scan")),
    Goal("disk after folding / the same rows sorted, as zstd Parquet", 1.2, 1,
         lambda figures: figures["sheaf", "disk_vs_parquet"], more=False),
    Goal("filter keeping 1 % on an unsorted column, rows/s scanned / full scan", 3, 8,
         over("filter_1_percent", "sheaf", "scan")),
    Goal("3 of 300 columns: share of the bytes read", 0.05, 0.02,
         over("read_3_columns", "sheaf", "read_all_columns"), more=False, tables=("wide",)),
]


def scale_goals(scale):
    """The goals that a run at scale answers: (Goal, value); scale is scale.json's content."""
    large = scale.get("large", {})
    return [
        (Goal(f"lookup p50 at {millions(scale)} rows / at 1M rows, our caches empty", 1.5, 1.2, None,
              more=False),
         divided(large.get("lookup_cold_p50"), scale.get("small", {}).get("lookup_cold_p50"))),
        (Goal(f"start-up with {millions(scale)} rows after a clean stop", 1, 0.3, None, more=False,
              unit=" s"), large.get("start_clean")),
        (Goal(f"start-up with {millions(scale)} rows after kill -9", 5, 2, None, more=False,
              unit=" s"), large.get("start_killed")),
    ]


def millions(scale):
    return f"{scale['large']['rows'] / 1e6:,.0f}M" if "rows" in scale.get("large", {}) else "100M"


def table(peers, scale):
    """Markdown: goal, floor, aim, and what each data set reached."""
    lines = ["| ratio | floor | aim | lineitem | events | |", "|---|---:|---:|---:|---:|---|"]
    for goal in GOALS:
        found = {name: goal.ratio(Figures(peers, name)) for name in goal.tables}
        cells = [text(found.get(name)) for name in ("lineitem", "events")]
        if "wide" in found:
            cells = [text(found["wide"]), "–"]
        lines.append(row(goal, cells, found.values()))
    for goal, value in scale_goals(scale):
        lines.append(row(goal, ["–", text(value, goal.unit)], [value]))
    return lines


def row(goal, cells, values):
    verdicts = [goal.verdict(value) for value in values if value is not None]
    order = ["missed", "floor", "aim"]
    worst = min(verdicts, key=order.index) if verdicts else "not measured"
    return (f"| {goal.what} | {text(goal.floor, goal.unit)} | {text(goal.aim, goal.unit)} | "
            + " | ".join(cells) + f" | {worst} |")


def text(value, unit=""):
    return "–" if value is None else f"{value:.3g}{unit}"
