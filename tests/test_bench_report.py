"""What the harness makes of the figures of a run: ratios, goals, the page."""

import json
from pathlib import Path

import pytest

from peers import report
from peers.goals import GOALS, Figures, Goal, scale_goals
from peers.measures import MEASURES

PROJECT = Path(__file__).parents[1]
TABLES = ["lineitem", "events", "wide"]
STORED = Path(__file__).parent / "testdata" / "bench-results.json"


@pytest.fixture
def results():
    """A run's results, as the harness leaves them, cut down to figures easy to follow."""
    return json.loads(STORED.read_text())


def rows_of(text):
    """The rows of all Markdown tables: lists of cells, by their first cell."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in lines}


def goal_rows(results):
    return rows_of("\n".join(report.ratios(results)))


@pytest.mark.parametrize(("what", "cells"), [
    # the better of golimit's two figures counts: 6M rows/s, not 5M
    ("full scan / golimit", ["1.15", "1.4", "1.25", "1", "missed"]),
    ("full scan / the best DuckDB behind Flight", ["1.15", "1.5", "1.5", "–", "aim"]),
    # less is better here, and the round trip is golimit's
    ("lookup p50, warm / golimit's empty round trip", ["1.5", "1.1", "1.5", "–", "floor"]),
    ("100 rows on an open stream, p50 / (empty round trip + one fsync)",
     ["1.6", "1.3", "1.8", "–", "missed"]),
    ("IN list of 100 sharding keys / one lookup", ["20", "10", "8", "–", "aim"]),
    ("disk after folding / the same rows sorted, as zstd Parquet", ["1.2", "1", "1.19", "–", "floor"]),
    ("3 of 300 columns: share of the bytes read", ["0.05", "0.02", "0.025", "–", "floor"]),
    ("lookup p50 at 100M rows / at 1M rows, our caches empty", ["1.5", "1.2", "–", "1.25", "floor"]),
    ("start-up with 100M rows after kill -9", ["5 s", "2 s", "–", "1.5 s", "aim"]),
    ("upsert of a random 1 % / PostgreSQL", ["10", "20", "–", "–", "not measured"]),
])
def test_goals_are_ratios_of_the_run(results, what, cells):
    assert goal_rows(results)[what] == cells


def test_figures_come_with_their_share_of_the_limit(results):
    text = "\n".join(report.figures(results, TABLES, "golimit"))
    lines = [line for line in text.splitlines() if line.startswith("| lineitem | scan |")]
    assert lines == ["| lineitem | scan | rows/s | 5,000,000 (0.83) | 7,500,000 (1.25) | "
                     "5,000,000 (0.83) | 6,000,000 (1.00) |"]
    assert "| lineitem | lookup_p50 | ms | 0.4 (1.00) | 0.6 (0.67) | – | 0.5 (0.80) |" in text
    assert "| lineitem | disk_vs_parquet | x | – | 1.19 | – | – |" in text
    assert "| wide | read_3_columns | MB | – | 5 | – | – |" in text
    assert "- `sheaf` (network): one line" in text
    assert "golimit again` (" not in text


def test_problems_and_a_busy_machine_are_said(results):
    text = "\n".join(report.figures(results, TABLES, "golimit"))
    assert "- `sheaf` on events: scan: 9 instead of 10" in text
    results["peers"]["sheaf"]["events"]["problems"] = ["no file /home/me/work/x.log, a/b of 1/2"]
    assert "- `sheaf` on events: no file …/x.log, a/b of 1/2" in report.problems(results, TABLES, "golimit")
    assert "busy" not in text  # 5M and 6M may be noise
    results["peers"]["golimit"]["lineitem"]["values"]["scan"] = 4_000_000
    assert "- the machine was busy: `scan` of `golimit` on lineitem was 4,000,000, then 6,000,000" in (
        report.problems(results, TABLES, "golimit"))


def test_the_machine_is_described_with_its_disk(results):
    text = "\n".join(report.machine(results))
    assert "- processor: one of a kind, 2 cores" in text
    assert "- one fsync of 8 KiB: 0.20 ms (median of the run's probes, 0.10 to 0.30)" in text


def test_scale_and_soak_are_in_the_report(results):
    text = report.markdown(results, TABLES, "golimit")
    assert "| lookup_cold_p50 | ms | 0.6 | 0.75 |" in text
    assert "| rows | rows | 1,000,000 | 100,000,000 |" in text
    assert "A soak of 30 minutes passed" in text
    del results["scale"], results["soak"]
    text = report.markdown(results, TABLES, "golimit")
    assert "At scale" not in text
    assert "| start-up with 100M rows after a clean stop | 1 s | 0.3 s | – | – | not measured |" in text


def test_the_page_keeps_what_is_written_by_hand():
    page = f"# Title\n\n{report.BEGIN}\nold figures\n{report.END}\n\nNotes.\n"
    filled = report.fill(page, "new figures\n")
    assert filled == f"# Title\n\n{report.BEGIN}\n\nnew figures\n\n{report.END}\n\nNotes.\n"
    assert report.fill(filled, "new figures\n") == filled
    with pytest.raises(ValueError, match="not enough values"):
        report.fill("no marks", "figures")


def test_the_page_in_docs_has_the_marks():
    page = (PROJECT / "docs" / "benchmarks.md").read_text()
    assert page.count(report.BEGIN) == page.count(report.END) == 1


def test_verdicts():
    more, less = Goal("", 1, 2, None), Goal("", 2, 1, None, more=False)
    assert [more.verdict(value) for value in (None, 0.9, 1, 1.9, 2)] == [
        "not measured", "missed", "floor", "floor", "aim"]
    assert [less.verdict(value) for value in (None, 2.1, 2, 1.1, 1)] == [
        "not measured", "missed", "floor", "floor", "aim"]


def test_every_goal_reads_figures_that_are_measured():
    """Each goal gives a number when every measure of every peer is 1, none without."""
    class Ones(Figures):
        def __getitem__(self, asked):
            assert asked[1] in MEASURES
            return 1

        def fsync_ms(self):
            return 1

    for goal in GOALS:
        assert goal.ratio(Ones({}, "lineitem")) in (1, 0.5), goal.what
        assert goal.ratio(Figures({}, "lineitem")) is None, goal.what
    assert [value for _, value in scale_goals({})] == [None, None, None]
