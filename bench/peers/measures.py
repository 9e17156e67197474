"""The names of all measures, their units, and which way is better."""

from typing import NamedTuple


class Measure(NamedTuple):
    unit: str
    more_is_better: bool
    limited: bool = True  # a limit's figure for it says what is possible


MEASURES = {
    "ingest": Measure("rows/s", True),
    "ingest_mb": Measure("MB/s", True),
    "import_parquet": Measure("rows/s", True),
    "upsert": Measure("rows/s", True),
    "small_put_p50": Measure("ms", False),
    "small_put_p99": Measure("ms", False),
    "small_put_open_p50": Measure("ms", False),
    "writers_64": Measure("calls/s", True),
    "scan": Measure("rows/s", True),
    "scan_mb": Measure("MB/s", True),
    "scan_3_columns": Measure("rows/s", True),
    "filter_1_percent": Measure("rows/s", True),
    "scan_unfolded": Measure("rows/s", True),
    "scan_beside_writes": Measure("rows/s", True),
    "written_beside": Measure("rows/s", True),
    "scan_folded": Measure("rows/s", True),
    "round_trip_p50": Measure("ms", False, False),
    "lookup_p50": Measure("ms", False),
    "lookup_p99": Measure("ms", False),
    "lookup_cold_p50": Measure("ms", False),
    "lookup_8_threads": Measure("lookups/s", True),
    "one_row_8_threads": Measure("lookups/s", True, False),
    "range_p50": Measure("ms", False),
    "in_list_p50": Measure("ms", False),
    "settle": Measure("s", False, False),
    "disk": Measure("MB", False, False),
    "disk_vs_parquet": Measure("x", False, False),
    "disk_changed_vs_parquet": Measure("x", False, False),
    "read_3_columns": Measure("MB", False, False),
    "read_all_columns": Measure("MB", False, False),
    "start_clean": Measure("s", False, False),
    "start_killed": Measure("s", False, False),
    "peak_rss": Measure("MB", False, False),
}
