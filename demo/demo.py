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
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.flight as flight

import data

PORT = 8815
SHOWN_ROWS = 5

# (table, what is asked, the query): exactly what goes over the wire as a ticket.
QUESTIONS = [
    ("flights_by_plane", "every flight of one plane", {
        "where": [["tailnum", "=", "N14228"]],
        "columns": ["time_hour", "carrier", "flight", "origin", "dest", "dep_delay"]}),
    ("flights_by_plane", "one plane in one week", {
        "where": [["tailnum", "=", "N14228"],
                  ["time_hour", ">=", "2013-07-01T00:00:00Z"], ["time_hour", "<", "2013-07-08"]],
        "columns": ["time_hour", "flight", "origin", "dest", "arr_delay"]}),
    ("flights_by_plane", "one flight by its whole primary key", {
        "where": [["tailnum", "=", "N14228"], ["time_hour", "=", "2013-01-01T10:00:00Z"],
                  ["flight", "=", 1545]]}),
    ("flights_by_plane", "the latest flights of three planes", {
        "where": [["tailnum", "in", ["N14228", "N24211", "N619AA"]]],
        "columns": ["tailnum", "time_hour", "dest"], "order": "desc", "limit": 5}),
    ("flights_by_plane", "who was five hours late (no key in the filter)", {
        "where": [["dep_delay", ">=", 300]],
        "columns": ["tailnum", "time_hour", "carrier", "dest", "dep_delay"]}),
    ("flights_by_route", "JetBlue out of JFK on Independence Day", {
        "where": [["origin", "=", "JFK"], ["carrier", "=", "B6"],
                  ["time_hour", ">=", "2013-07-04T04:00:00Z"], ["time_hour", "<", "2013-07-05T04:00:00Z"]],
        "columns": ["time_hour", "flight", "dest", "dep_delay", "tailnum"]}),
    ("flights_by_route", "two airlines, one airport, cancelled flights only", {
        "where": [["origin", "=", "LGA"], ["carrier", "in", ["9E", "EV"]], ["dep_time", "is null"]],
        "columns": ["carrier", "time_hour", "flight", "dest"]}),
    ("lineitem", "the lines of one order", {
        "where": [["l_orderkey", "=", 4_001]],
        "columns": ["l_linenumber", "l_quantity", "l_extendedprice", "l_shipdate", "l_comment"]}),
    ("lineitem", "some lines of some orders", {
        "where": [["l_orderkey", "in", [1, 7, 34, 4_001, 5_000_000_000]], ["l_linenumber", "<=", 2]],
        "columns": ["l_orderkey", "l_linenumber", "l_shipmode"]}),
    ("lineitem", "what was shipped on one day (no key in the filter)", {
        "where": [["l_shipdate", "=", "1995-03-15"], ["l_quantity", ">", 49]],
        "columns": ["l_orderkey", "l_quantity", "l_extendedprice", "l_shipdate"]}),
]


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
    print(f"  {table}: {last['rows']:,} rows durable in {seconds:.2f} s "
          f"({last['rows'] / seconds:,.0f} rows/s), sharding key {', '.join(sharding_key)}; "
          f"sorting key {', '.join(sorting_key)}")


def load_everything(client, scale, folder):
    print("\nLoading:")
    all_flights = data.flights()
    known = all_flights.filter(pc.is_valid(all_flights["tailnum"]))
    load(client, "flights_by_plane", known.to_reader(65_536), ["tailnum"], ["time_hour", "flight"])
    print(f"    {len(all_flights) - len(known):,} of {len(all_flights):,} flights have no tail number "
          "and were left out: a key column holds no nulls")
    load(client, "flights_by_route", all_flights.to_reader(65_536), ["origin", "carrier"],
         ["time_hour", "flight", "dest", "sched_dep_time"])
    reader, rows = data.lineitem(scale, folder)
    load(client, "lineitem", reader, ["l_orderkey"], ["l_linenumber"])
    print(f"    TPC-H scale {scale:g}: {rows:,} rows; make demo SCALE=1 loads 6,001,215")
    for table in ("flights_by_plane", "flights_by_route", "lineitem"):
        act(client, "Fold", table=table)  # nobody needs to, it happens by itself; now the plans are steady


def act(client, kind, **body):
    """A JSON action and its one result."""
    result, = client.do_action(flight.Action(kind, json.dumps(body).encode()))
    return json.loads(result.body.to_pybytes())


def ask(client, table, title, query):
    """Print a query, its plan and its first rows."""
    query = {"table": table, **query}
    print(f"\n── {title}\n{json.dumps(query)}")
    plan = act(client, "Explain", **query, analyze=True)
    began = time.perf_counter()
    answer = client.do_get(flight.Ticket(json.dumps(query).encode())).read_all()
    milliseconds = (time.perf_counter() - began) * 1000
    if plan["rows_returned"] != answer.num_rows:
        raise SystemExit(f"the plan counts {plan['rows_returned']} rows, the answer has {answer.num_rows}")
    print(f"plan: {plan['access']}, {len(plan['slices'])} of {plan['of']} slices, "
          f"blocks {plan['blocks_read']} read and {plan['blocks_pruned']} pruned, "
          f"rows {plan['rows_scanned']:,} scanned and {plan['rows_returned']:,} returned, "
          f"{plan['ms']:.2f} ms ({milliseconds:.2f} ms here)")
    for part in ("pushed", "residual"):
        if plan[part]:
            text = plan[part] if isinstance(plan[part], str) else " AND ".join(plan[part])
            print(f"      {part}: {text}")
    print(answer.slice(0, SHOWN_ROWS).to_pandas().to_string(index=False))
    if answer.num_rows > SHOWN_ROWS:
        print(f"… {answer.num_rows:,} rows")


def scan_everything(client):
    """Three columns of every line: what a full scan costs."""
    query = {"table": "lineitem", "columns": ["l_orderkey", "l_extendedprice", "l_shipdate"]}
    print(f"\n── three columns of all of lineitem\n{json.dumps(query)}")
    began = time.perf_counter()
    answer = client.do_get(flight.Ticket(json.dumps(query).encode())).read_all()
    seconds = time.perf_counter() - began
    total = pc.sum(answer["l_extendedprice"].cast(pa.decimal128(38, 2))).as_py()
    print(f"{answer.num_rows:,} rows in {seconds:.2f} s ({answer.num_rows / seconds:,.0f} rows/s, "
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
        for question in QUESTIONS:
            ask(client, *question)
        scan_everything(client)


if __name__ == "__main__":
    main()
