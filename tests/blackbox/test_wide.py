"""Tables of many columns: reading a few costs what these take."""

import numpy as np
import pyarrow as pa
import pytest


def wide(columns, rows, version):
    random = np.random.default_rng(version)
    names = ["k", *(f"c{i}" for i in range(columns))]
    arrays = [pa.array(np.arange(rows))]
    for i in range(columns):
        nulls = random.random(rows) < 0.1
        values = random.integers(0, 1 << 40, rows) if i % 2 else random.random(rows)
        arrays.append(pa.array(values, mask=nulls))
    return pa.table(arrays, names=names)


@pytest.mark.parametrize(("columns", "rows"), [(300, 8000), (3000, 800)])
def test_three_of_many_columns_read_few_bytes(client, name, columns, rows):
    first = wide(columns, rows, 1)
    client.create(name, first.schema, ["k"], [], 2)
    client.put(name, first)
    some = ["c1", f"c{columns // 2}", f"c{columns - 1}"]

    def check(expected):
        whole = client.explain(name, analyze=True)["bytes_read"]
        few = client.explain(name, columns=some, analyze=True)["bytes_read"]
        assert few <= whole / 20, (few, whole)
        got = client.get(name, columns=["k", *some]).sort_by("k")
        assert got.equals(expected.select(["k", *some]).cast(got.schema))

    check(first)
    second = wide(columns, rows, 2)
    client.put(name, second.slice(0, rows // 2))
    client.fold(name)
    check(pa.concat_tables([second.slice(0, rows // 2), first.slice(rows // 2)]).combine_chunks())
