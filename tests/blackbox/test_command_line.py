"""The command line against files that pyarrow writes, and pyarrow on what it writes."""

import datetime
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Columns whose stored form in Parquet is not their type in Arrow.
NOTED = {
    "duration": pa.array([1, None, -2], pa.duration("ms")),
    "durations": pa.array([[1, None], None, []], pa.list_(pa.duration("us"))),
    "struct": pa.array([{"d": 1, "s": "x"}, None, {"d": None, "s": None}],
                       pa.struct([("d", pa.duration("s")), ("s", pa.dictionary(pa.int32(), pa.string()))])),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.duration("s"))),
    "zone": pa.array([1, None, -2], pa.timestamp("us", "Europe/Berlin")),
    "large": pa.array(["a", None, ""], pa.large_string()),
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "date": pa.array([datetime.date(1969, 12, 31), None, datetime.date(2020, 1, 1)], pa.date64()),
}


def sheaf(gateway, *words):
    """Run the command against the gateway; stdout, as bytes, of a run that did well."""
    done = subprocess.run([gateway.binary, *words, "--server", gateway.address],
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.parametrize("column", NOTED)
def test_parquet_is_imported_with_its_arrow_types(gateway, name, tmp_path, column):
    table = pa.table({"k": pa.array([1, 2, 3]), column: NOTED[column]})
    pq.write_table(table, tmp_path / "one.parquet")
    sheaf(gateway, "import", name, tmp_path / "one.parquet", "--sharding-key", "k")
    stream = sheaf(gateway, "scan", name, "--order", "asc", "--format", "arrows")
    answer = pa.ipc.open_stream(stream).read_all()
    stored = pq.read_table(tmp_path / "one.parquet")
    assert answer.schema.field(column).type == stored.schema.field(column).type
    assert answer[column].to_pylist() == stored[column].to_pylist()
