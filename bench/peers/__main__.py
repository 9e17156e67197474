"""Command line: `python -m peers run --peers a,b --tables lineitem,events --scale 1`."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from . import machine, report
from .data import SPECS, Dataset


def options():
    from .systems import ALL, PEERS

    project = Path(__file__).parents[2]
    home = Path(os.environ.get("PEERS_HOME", project / "build" / "peers"))
    parser = argparse.ArgumentParser(prog="peers")
    parser.add_argument("command", choices=["run", "one", "scale", "report"],
                        help="run everything; measure one pair; ask the same of 1M and of --rows rows; "
                             "or only write the report again")
    parser.add_argument("--peers", default="all", help="names, or all: " + ", ".join(ALL))
    parser.add_argument("--tables", default=",".join(SPECS))
    parser.add_argument("--scale", type=float, default=1.0,
                        help="1 is TPC-H SF1 (6M rows) and 10M events")
    parser.add_argument("--rows", type=int, help="keep only the first rows of each table")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--patience", type=float, default=6,
                        help="seconds after which a measure stops repeating; half as many for other "
                             "systems than Sheaf and the limits")
    parser.add_argument("--timeout", type=float, default=1200, help="seconds for one pair")
    parser.add_argument("--limit", default="golimit", help="the peer that ratios refer to")
    parser.add_argument("--add", action="store_true",
                        help="keep the results of peers that an earlier run left in --out")
    parser.add_argument("--page", type=Path,
                        help="a Markdown page whose marked part takes the results")
    parser.add_argument("--data", type=Path, default=home / "data")
    parser.add_argument("--work", type=Path, default=home / "work")
    parser.add_argument("--out", type=Path, default=home / "out")
    args = parser.parse_args()
    if args.peers == "all":
        args.peers = ",".join(ALL)
    args.peers, args.tables = args.peers.split(","), args.tables.split(",")
    if unknown := (set(args.peers) - set(PEERS)) | (set(args.tables) - set(SPECS)):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return args


def measure_one(args):
    """Measure one system on one table in this process; the result goes to stdout."""
    from .measure import Measurement
    from .systems import PEERS

    dataset = Dataset(args.tables[0], args.data, args.scale, args.rows)
    workdir = args.work / args.peers[0]
    workdir.mkdir(parents=True, exist_ok=True)
    peer = PEERS[args.peers[0]](dataset, workdir)
    print(json.dumps(Measurement(peer, args.repeat, args.patience).run()))


def run(args):
    """Measure each pair in a process of its own, so that none inherits another's memory."""
    results = report.read(args.out)
    if not args.add:
        results["peers"] = {}
    results["machine"] = {**machine.describe(), "scale": f"{args.scale:g}, where 1 is 6.0M rows of "
                          "lineitem, 10M events and 100,000 rows of 300 columns"
                          + (f"; only the first {args.rows:,} of each" if args.rows else "")}
    for table in args.tables:
        Dataset(table, args.data, args.scale, args.rows)  # made once, outside any timing
        again = [args.limit + report.AGAIN] if args.limit in args.peers else []
        for name in args.peers + again:
            start = time.monotonic()
            peer = name.removesuffix(report.AGAIN)
            results["peers"].setdefault(name, {})[table] = run_one(args, peer, table)
            report.write(results, args.tables, args.limit, args.out)
            print(f"{name} on {table}: {time.monotonic() - start:.0f} s", file=sys.stderr)
            shutil.rmtree(args.work / peer, ignore_errors=True)
    finish(results, args)


def finish(results, args):
    """Write the report, and into the page where one is named."""
    report.write(results, args.tables, args.limit, args.out)
    text = (args.out / "results.md").read_text()
    if args.page:
        args.page.write_text(report.fill(args.page.read_text(), text))
    print(text)


def run_one(args, name, table):
    from .systems import LIMITS_AND_SHEAF

    patience = args.patience if name in LIMITS_AND_SHEAF else args.patience / 2
    command = [sys.executable, "-m", "peers", "one", "--peers", name, "--tables", table,
               "--scale", str(args.scale), "--repeat", str(args.repeat),
               "--patience", str(patience),
               "--data", args.data, "--work", args.work]
    if args.rows:
        command += ["--rows", str(args.rows)]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE,
                              timeout=args.timeout, check=True)
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        return {"problems": [f"{type(error).__name__}: {error}"[:200]]}


def main():
    args = options()
    for name in ("data", "work", "out"):
        setattr(args, name, getattr(args, name).resolve())
    if args.command == "one":
        measure_one(args)
    elif args.command == "run":
        run(args)
    elif args.command == "scale":
        from . import scale

        scale.run(args.rows or 100_000_000, args.work, args.out)
    else:
        finish(report.read(args.out), args)


if __name__ == "__main__":
    main()
