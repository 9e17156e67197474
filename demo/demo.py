"""Load real data into a gateway and ask it questions, with plain pyarrow.

    make demo                 flights of 2013 and a tenth of TPC-H SF1
    make demo SCALE=1         all of lineitem at SF1, 6 million rows
"""

import argparse
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight

import data

PORT = 8815
SHOWN_ROWS = 5

# What is asked, what it shows, and the query: exactly what goes over the wire as a ticket.
QUESTIONS = [
    ("every flight of one plane",
     "The sharding key is bound: all its rows lie side by side in one slice.", {
        "table": "flights_by_plane",
        "where": [["tailnum", "=", "N14228"]],
        "columns": ["time_hour", "carrier", "flight", "origin", "dest", "dep_delay"]}),
    ("one plane in one week",
     "A bound on the sorting key behind it narrows that to a range: nothing else is scanned.", {
        "table": "flights_by_plane",
        "where": [["tailnum", "=", "N14228"],
                  ["time_hour", ">=", "2013-07-01T00:00:00Z"], ["time_hour", "<", "2013-07-08"]],
        "columns": ["time_hour", "flight", "origin", "dest", "arr_delay"]}),
    ("one flight",
     "The whole primary key makes a range of one row: a point.", {
        "table": "flights_by_plane",
        "where": [["tailnum", "=", "N14228"], ["time_hour", "=", "2013-01-01T10:00:00Z"],
                  ["flight", "=", 1545]]}),
    ("the latest flights of three planes",
     "A list of keys is as many ranges; the order is that of the whole primary key.", {
        "table": "flights_by_plane",
        "where": [["tailnum", "in", ["N14228", "N24211", "N619AA"]]],
        "columns": ["tailnum", "time_hour", "dest"], "order": "desc", "limit": 5}),
    ("who was five hours late",
     "No key is bound: every slice is scanned, but for blocks whose largest delay is too small.", {
        "table": "flights_by_plane",
        "where": [["dep_delay", ">=", 300]],
        "columns": ["tailnum", "time_hour", "carrier", "dest", "dep_delay"]}),
    ("JetBlue out of JFK on Independence Day",
     "The same flights under other keys: here two columns make the sharding key.", {
        "table": "flights_by_route",
        "where": [["origin", "=", "JFK"], ["carrier", "=", "B6"],
                  ["time_hour", ">=", "2013-07-04T04:00:00Z"], ["time_hour", "<", "2013-07-05T04:00:00Z"]],
        "columns": ["time_hour", "flight", "dest", "dep_delay", "tailnum"]}),
    ("cancelled flights of two airlines at one airport",
     "The keys bind two places; what they cannot answer is checked row by row there.", {
        "table": "flights_by_route",
        "where": [["origin", "=", "LGA"], ["carrier", "in", ["9E", "EV"]], ["dep_time", "is null"]],
        "columns": ["carrier", "time_hour", "flight", "dest"]}),
    ("the lines of one order",
     "One order among all orders: it costs the same at SCALE=1 as at a tenth of that.", {
        "table": "lineitem",
        "where": [["l_orderkey", "=", 4_001]],
        "columns": ["l_linenumber", "l_quantity", "l_extendedprice", "l_shipdate", "l_comment"]}),
    ("the first lines of some orders",
     "Five ranges. Order 5,000,000,000 is not there, and no block is read to know that.", {
        "table": "lineitem",
        "where": [["l_orderkey", "in", [1, 7, 34, 4_001, 5_000_000_000]], ["l_linenumber", "<=", 2]],
        "columns": ["l_orderkey", "l_linenumber", "l_shipmode"]}),
    ("what was shipped on one day in the largest lots",
     "No key is bound, and every block has such days: a full scan of the two columns asked about.", {
        "table": "lineitem",
        "where": [["l_shipdate", "=", "1995-03-15"], ["l_quantity", ">", 49]],
        "columns": ["l_orderkey", "l_quantity", "l_extendedprice", "l_shipdate"]}),
]

HOW_TO_READ = """
Each question below is a JSON ticket, as it goes over the wire. Under it, its plan:
  access   none, point, range, shard or full: how much of the table the keys leave
  keys     the part of the filter that the keys answer, by where they look
  rest     the part that is checked row by row
  read     blocks and rows touched for the rows returned
  time     in the gateway, for a run that is counted; then here, for a plain read after it"""


class Gateway:
    """`sheaf serve`, started on a folder of its own and stopped at the end."""

    def __init__(self, binary, folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.address = f"127.0.0.1:{PORT if is_free(PORT) else 0}"
        self.log = (folder / "gateway.log").open("w+")
        command = [binary, "serve", "--data", folder / "data", "--listen", self.address,
                   "--log-format", "json"]
        print("$", " ".join(map(str, command)))
        self.process = subprocess.Popen(command, stderr=self.log)

    def __enter__(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            self.log.seek(0)
            for line in self.log.readlines():
                if '"listening"' in line:
                    self.address = json.loads(line)["address"]
                    return flight.FlightClient(f"grpc://{self.address}")
            time.sleep(0.05)
        raise SystemExit(f"the gateway did not start, see {self.log.name}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.close()
        print(f"\nThe gateway has stopped, exit code {code}.")
        if code != 0:
            raise SystemExit(code)


def is_free(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def load(client, table, reader, sharding_key, sorting_key):
    """Write batches; the table is made by naming its keys. Done means durable."""
    command = json.dumps({"table": table, "sharding_key": sharding_key, "sorting_key": sorting_key})
    began = time.perf_counter()
    writer, acknowledgements = client.do_put(flight.FlightDescriptor.for_command(command), reader.schema)
    with writer:
        for batch in reader:
            writer.write_batch(batch)
        writer.done_writing()
        while (ack := acknowledgements.read()) is not None:
            last = json.loads(ack.to_pybytes())
    seconds = time.perf_counter() - began
    print(f"  {table}: {last['rows']:,} rows in {seconds:.2f} s ({last['rows'] / seconds:,.0f} rows/s)\n"
          f"    sharding key {', '.join(sharding_key)}; sorting key {', '.join(sorting_key)}")


def load_everything(client, scale, folder):
    print("\nLoading (an acknowledged row is on disk):")
    all_flights = data.flights()
    known = all_flights.filter(pc.is_valid(all_flights["tailnum"]))
    load(client, "flights_by_plane", known.to_reader(65_536), ["tailnum"], ["time_hour", "flight"])
    print(f"    {len(all_flights) - len(known):,} of {len(all_flights):,} flights have no tail number "
          "and were left out: a key holds no nulls")
    load(client, "flights_by_route", all_flights.to_reader(65_536), ["origin", "carrier"],
         ["time_hour", "flight", "dest", "sched_dep_time"])
    load(client, "lineitem", data.lineitem(scale, folder), ["l_orderkey"], ["l_linenumber"])
    if scale < 1:
        print(f"    TPC-H scale {scale:g}; make demo SCALE=1 loads all 6,001,215")
    for table in ("flights_by_plane", "flights_by_route", "lineitem"):
        act(client, "Fold", table=table)  # nobody needs to, it happens by itself; now the plans are steady


def act(client, kind, **body):
    """A JSON action and its one result."""
    result, = client.do_action(flight.Action(kind, json.dumps(body).encode()))
    return json.loads(result.body.to_pybytes())


def show(title, lesson, query):
    """Print what is asked, with one field of the query on each line."""
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    fields = ",\n ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in query.items())
    print(f"\n── {bold}{title}{plain}\n{lesson}\n{{{fields}}}")


def count(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def ask(client, title, lesson, query):
    """Print a query, its plan and its first rows."""
    show(title, lesson, query)
    plan = act(client, "Explain", **query, analyze=True)
    began = time.perf_counter()
    answer = client.do_get(flight.Ticket(json.dumps(query).encode())).read_all()
    milliseconds = (time.perf_counter() - began) * 1000
    if plan["rows_returned"] != answer.num_rows:
        raise SystemExit(f"the plan counts {plan['rows_returned']} rows, the answer has {answer.num_rows}")
    print(f"  access   {plan['access']}, {len(plan['slices'])} of {plan['of']} slices")
    if plan["pushed"]:
        print(f"  keys     {' AND '.join(plan['pushed'])}")
    if plan["residual"]:
        print(f"  rest     {plan['residual']}")
    print(f"  read     {count(plan['blocks_read'], 'block')} ({plan['blocks_pruned']:,} pruned), "
          f"{count(plan['rows_scanned'], 'row')} scanned, {plan['rows_returned']:,} returned")
    print(f"  time     {plan['ms']:.2f} ms, here {milliseconds:.2f} ms")
    print(answer.slice(0, SHOWN_ROWS).to_pandas().to_string(index=False))
    if answer.num_rows > SHOWN_ROWS:
        print(f"… {count(answer.num_rows, 'row')} in all")


def scan_everything(client):
    """Three columns of every line: what a full scan costs."""
    query = {"table": "lineitem", "columns": ["l_orderkey", "l_extendedprice", "l_shipdate"]}
    show("three columns of all of lineitem", "A full scan runs at the speed of the wire.", query)
    began = time.perf_counter()
    answer = client.do_get(flight.Ticket(json.dumps(query).encode())).read_all()
    seconds = time.perf_counter() - began
    total = pc.sum(answer["l_extendedprice"].cast(pa.decimal128(38, 2))).as_py()
    print(f"{count(answer.num_rows, 'row')} in {seconds:.2f} s ({answer.num_rows / seconds:,.0f} rows/s, "
          f"{answer.nbytes / seconds / 1e6:,.0f} MB/s); sum of l_extendedprice {total:,}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=Path("build/sheaf"))
    parser.add_argument("--work", type=Path, default=Path("build/demo"), help="folder for data")
    parser.add_argument("--scale", type=float, default=0.1, help="of TPC-H; 1 is 6 million rows")
    args = parser.parse_args()
    with Gateway(args.binary, args.work / "gateway") as client:
        load_everything(client, args.scale, args.work)
        print(HOW_TO_READ)
        for question in QUESTIONS:
            ask(client, *question)
        scan_everything(client)
    print(f"""The tables stay in {args.work / "gateway" / "data"} until the next run. To ask more:
  {args.binary} serve --data {args.work / "gateway" / "data"}
  {args.binary} scan flights_by_plane --where '["tailnum", "=", "N14228"]'""")


if __name__ == "__main__":
    main()
