"""Making rows and comparing them exactly."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def ksv(k, s, v=None, key_type=None):
    """The table t(k, s, v) of many tests: string, int64, int64."""
    v = list(range(len(k))) if v is None else v
    return pa.table({"k": pa.array(k, key_type or pa.string()),
                     "s": pa.array(s, pa.int64()), "v": pa.array(v, pa.int64())})


def values(table, *columns):
    """Rows as tuples, or the values of one column."""
    lists = [table[column].to_pylist() for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists))


def same(found, wanted, key):
    """The two tables hold the same rows, whatever their order; types, nulls, NaN
    payloads and zeros' signs included. Key columns bring both into one order."""
    assert found.num_rows == wanted.num_rows
    assert found.column_names == wanted.column_names
    left, right = order(found, key), order(wanted, key)
    identical(found, wanted, left, right)


def order(table, key):
    """Where the rows of a table are when it is sorted by its key."""
    names = [[column, "ascending"] for column in key]
    return pc.sort_indices(table.select(list(key)), sort_keys=names).to_pylist()


def identical(found, wanted, found_order=None, wanted_order=None):
    """The two tables hold the same rows in the same order, or in the orders given."""
    assert found.num_rows == wanted.num_rows
    for field in wanted.schema:
        assert found.schema.field(field.name).type == field.type, field.name
        left, right = exact(found[field.name]), exact(wanted[field.name])
        if found_order is not None:
            left, right = [left[i] for i in found_order], [right[i] for i in wanted_order]
        if left != right:
            at = next(i for i, (a, b) in enumerate(zip(left, right)) if a != b)
            raise AssertionError(f"{field.name}[{at}]: {left[at]!r} instead of {right[at]!r}")


FLOAT_BITS = {pa.float16(): pa.uint16(), pa.float32(): pa.uint32(), pa.float64(): pa.uint64()}


def exact(column):
    """Values of a column as a list that compares equal only if every bit does."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in exact(chunk)]
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    if column.type in FLOAT_BITS:
        column = column.view(FLOAT_BITS[column.type])
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        bits = {32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
        column = column.view(bits)  # Python's own times cannot hold all of them
    return [bare(value) for value in column.to_pylist()]


def bare(value):
    """A Python value whose floats compare by their bits."""
    if isinstance(value, (float, np.floating)):
        return ("float", struct.pack(">d", float(value)))
    if isinstance(value, list):
        return [bare(item) for item in value]
    if isinstance(value, tuple):
        return tuple(bare(item) for item in value)
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items()}
    return value
