"""Every Arrow type goes in and comes back as it was, in every state of storage."""

import decimal

import pyarrow as pa
import pytest

from . import arrays
from .rows import exact, identical, ksv, same, values
from .wire import keyed, refused

EVERY = arrays.every()


def numbered(array):
    """The array as column `value` of a table keyed by `id`."""
    return pa.table({"id": pa.array(range(len(array)), pa.int64()), "value": array})


@pytest.mark.parametrize("label", EVERY)
def test_round_trip(state, name, label):
    table = numbered(EVERY[label])
    state.store(name, table, ["id"], slices=3)
    found = state.client.get(name)
    same(found, table, ["id"])
    assert found.schema.field("value").equals(table.schema.field("value"), check_metadata=True)


@pytest.mark.parametrize("label", EVERY)
def test_one_row_is_picked_out(client, name, label):
    table = numbered(EVERY[label])
    client.put(name, table, sharding_key=["id"], slices=3)
    client.fold(name)
    for row in (0, 3, 8, 150, arrays.ROWS - 1):
        found = client.get(name, where=[["id", "=", row]])
        identical(found, table.slice(row, 1))


def test_all_types_side_by_side(state, name):
    table = pa.table({"id": pa.array(range(arrays.ROWS)), **EVERY})
    state.store(name, table, ["id"], slices=5)
    same(state.client.get(name), table, ["id"])
    some = ["uuid", "list<struct>", "dictionary<int8>", "float16", "id"]
    same(state.client.get(name, columns=some), table.select(some), ["id"])
    dropped = state.client.get(name, where=[["id", "between", [10, 19]]], columns=["null", "id"])
    assert sorted(values(dropped, "id")) == list(range(10, 20))


@pytest.mark.parametrize(("label", "array"), list(arrays.unions()))
def test_a_union_comes_back_or_is_refused_by_name(client, name, label, array):
    table = numbered(array)
    try:
        client.put(name, table, sharding_key=["id"])
    except pa.ArrowInvalid as error:
        assert "[TYPE_UNSUPPORTED]" in str(error)
        assert "value" in str(error)
        assert "union" in str(error)
        return
    identical(client.get(name, order="asc"), table)


def test_what_reads_is_never_refused_only_at_reading(client, name):
    for number, (label, array) in enumerate(EVERY.items()):
        client.put(f"{name}_{number}", numbered(array.slice(0, 0)), sharding_key=["id"])
        found = client.get(f"{name}_{number}")
        assert found.schema.field("value").type == array.type, label


def test_nullability_and_metadata_of_fields_and_schema_come_back(state, name):
    schema = pa.schema([
        pa.field("id", pa.int64(), nullable=False, metadata={"unit": "pieces"}),
        pa.field("at", pa.timestamp("us", "Europe/Paris"), metadata={"note": "local", "": "empty"}),
        pa.field("inner", pa.struct([pa.field("x", pa.int32(), nullable=False,
                                              metadata={"deep": "yes"})])),
    ], metadata={"origin": "a test", "sheaf.not_ours": "kept"})
    table = pa.table([[1, 2], [0, None], [{"x": 1}, {"x": 2}]], schema=schema)
    state.store(name, table, ["id"])
    for found in (state.client.get(name).schema, state.client.schema(name),
                  state.client.info(name).schema):
        for field in schema:
            assert found.field(field.name).equals(field, check_metadata=True)
        assert found.metadata[b"origin"] == b"a test"
        assert found.metadata[b"sheaf.sharding_key"] == b'["id"]'


def test_an_extension_type_unknown_to_the_reader_keeps_its_metadata(state, name):
    storage = pa.field("value", pa.int16(), metadata={
        "ARROW:extension:name": "nobody.knows", "ARROW:extension:metadata": "a=b"})
    table = pa.table([[1, 2], pa.array([5, None], pa.int16())],
                     schema=pa.schema([pa.field("id", pa.int64()), storage]))
    state.store(name, table, ["id"])
    found = state.client.get(name, order="asc")
    assert found.schema.field("value").equals(storage, check_metadata=True)
    identical(found, table)


def test_an_empty_result_has_the_schema_of_a_full_one(state, name):
    schema = pa.schema([
        pa.field("k", pa.string(), nullable=False),
        pa.field("word", pa.dictionary(pa.int16(), pa.string()), metadata={"a": "b"}),
        pa.field("at", pa.timestamp("ms", "America/New_York")),
        pa.field("runs", pa.run_end_encoded(pa.int32(), pa.int8())),
    ])
    words = pa.array(["p", "q"]).dictionary_encode().cast(schema.field("word").type)
    table = pa.table([["x", "y"], words,
                      pa.array([0, 1], pa.int64()).cast(schema.field(2).type),
                      pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()),
                                                        pa.array([1], pa.int8()))], schema=schema)
    state.store(name, table, ["k"])
    client = state.client
    full = client.get(name).schema
    for other in (client.schema(name), client.info(name).schema,
                  client.get(name, where=[["k", "=", "none"]]).schema,
                  client.get(name, where=[["k", "in", []]]).schema,
                  client.get(name, limit=0).schema):
        assert other.equals(full, check_metadata=True)


def test_dictionaries_replaced_and_grown_inside_a_stream(state, name):
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("id", pa.int64()), ("word", kind), ("text", pa.string())])

    def batch(first, indices, dictionary):
        words = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), dictionary)
        ids = pa.array(range(first, first + len(indices)))
        return pa.record_batch([ids, words, words.dictionary_decode()], schema=schema)

    batches = [batch(0, [0, 1, None, 0], ["a", "b"]), batch(4, [0, None, 1], ["x", "y"]),
               batch(7, [2, 0, 1], ["x", "y", "z"])]
    state.store(name, batches, ["id"])
    found = state.client.get(name, order="asc")
    wanted = ["a", "b", None, "a", "x", None, "y", "z", "x", "y"]
    assert values(found, "word") == wanted
    assert values(found, "text") == wanted
    assert found.schema.field("word").type == kind


def test_a_dictionary_column_goes_into_a_string_column_and_back(state, name):
    words = pa.array(["a", "b", None, "a"]).dictionary_encode()
    state.store(name, pa.table({"id": [1, 2, 3, 4], "word": pa.array(["-"] * 4)}), ["id"])
    state.store(name, pa.table({"id": [1, 2, 3, 4], "word": words}))
    assert values(state.client.get(name, order="asc"), "word") == ["a", "b", None, "a"]


def test_more_values_than_a_small_index_type_holds_are_read_over_several_messages(state, name):
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema([("id", pa.int64()), ("word", kind)])
    batches, wanted = [], []
    for part in range(5):
        words = [f"w{part}-{i}" for i in range(100)]
        wanted += words
        batches.append(pa.record_batch(
            [pa.array(range(part * 100, part * 100 + 100)),
             pa.array(words).dictionary_encode().cast(kind)], schema=schema))
    if state.label == "rebatched":
        state.label = "fresh"  # a batch that is cut still carries its whole dictionary
    state.store(name, batches, ["id"], slices=1)
    found = [(row["id"], row["word"]) for batch, _ in state.client.chunks(name, order="asc")
             for row in batch.to_pylist()]
    assert [word for _, word in found] == wanted


def test_a_slice_of_a_larger_array_stores_its_own_rows_only(state, name):
    n = 10_000
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    whole = pa.table({
        "id": pa.array(range(n)),
        "flag": pa.array([None if i % 11 == 0 else i % 3 == 0 for i in range(n)]),
        "text": pa.array([None if i % 13 == 0 else f"text {i}" for i in range(n)]),
        "items": pa.array([None if i % 17 == 0 else [{"x": i, "y": str(i)}] * (i % 4)
                           for i in range(n)], pa.list_(point)),
        "fixed": pa.array([[i, i + 1] for i in range(n)], pa.list_(pa.int64(), 2)),
        "word": pa.array([f"w{i % 7}" for i in range(n)]).dictionary_encode(),
    })
    part = whole.slice(1001, 500)
    state.store(name, part, ["id"])
    found = state.client.get(name)
    same(found, part, ["id"])
    assert found.nbytes < 3 * pa.concat_tables([part]).combine_chunks().nbytes
    state.client.fold(name)
    assert state.client.describe(name)["bytes"] < 200_000


def test_a_text_column_of_many_megabytes_stays_a_string(client, name):
    rows = 300
    texts = [chr(97 + i % 26) * (1 << 20) for i in range(rows)]
    schema = keyed(pa.schema([("id", pa.int64()), ("text", pa.string())]), ["id"])
    with client.putting(name, schema) as stream:
        for i, text in enumerate(texts):
            stream.write(pa.record_batch([[i], [text]], schema=schema))
    seen = 0
    for batch, _ in client.chunks(name, order="asc"):
        assert batch.schema.field("text").type == pa.string()
        assert batch.nbytes <= 4 << 20
        for row in batch.to_pylist():
            assert row["text"] == texts[row["id"]]
            seen += 1
    assert seen == rows


def test_an_instant_that_does_not_fit_is_refused(client, name):
    schema = pa.schema([("id", pa.int64()), ("at", pa.timestamp("ns"))])
    client.put(name, pa.table([[0], [5]], schema=schema), sharding_key=["id"])
    far = pa.table([[1, 2], pa.array([0, 253_402_214_400_000_000], pa.timestamp("us"))],
                   names=["id", "at"])
    with refused("VALUE_OUT_OF_RANGE", "row 1", "at", "9999-12-31"):
        client.put(name, far)
    assert client.count(name) == 1
    assert client.count(name, where=[["at", "<", "9999-12-31"]]) == 1


def test_early_days_keep_their_number(state, name):
    days = [-719_162, -141_427, -1, 0, 19_000]  # 0001-01-01, 1582-10-15, …
    column = pa.array(days, pa.int32()).view(pa.date32())
    table = pa.table({"id": pa.array(range(5)), "day": column})
    state.store(name, table, ["id"])
    assert exact(state.client.get(name, order="asc")["day"]) == days
    assert values(state.client.get(name, where=[["day", "=", "1582-10-15"]]), "id") == [1]
    assert values(state.client.get(name, where=[["day", "<", "1582-10-15"]]), "id") == [0]


def test_zone_labels_stay_as_they_are(state, name):
    numbers = pa.array([0, 1_692_864_000_000_000, -1], pa.int64())
    zones = {"utc": "UTC", "paris": "Europe/Paris", "none": None, "offset": "+02:00"}
    table = pa.table({"id": pa.array(range(3)),
                      **{label: numbers.view(pa.timestamp("us", zone))
                         for label, zone in zones.items()}})
    state.store(name, table, ["id"])
    found = state.client.get(name, order="asc")
    for label, zone in zones.items():
        assert found.schema.field(label).type.tz == zone
        assert exact(found[label]) == numbers.to_pylist()


def test_another_zone_label_is_the_same_instant(state, name):
    numbers = pa.array([0, 10 ** 15], pa.int64())
    utc = pa.table({"id": [0, 1], "at": numbers.view(pa.timestamp("us", "UTC"))})
    state.store(name, utc, ["id"])
    state.store(name, pa.table({"id": [0, 1],
                                "at": numbers.view(pa.timestamp("us", "Asia/Tokyo"))}))
    found = state.client.get(name, order="asc")
    assert found.schema.field("at").type.tz == "UTC"
    assert exact(found["at"]) == numbers.to_pylist()


def test_zoned_and_zoneless_do_not_mix(client, name):
    zoneless = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))})
    zoned = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us", "UTC"))})
    client.put(name + "_a", zoned, sharding_key=["id"])
    client.put(name + "_b", zoneless, sharding_key=["id"])
    with refused("TYPE_MISMATCH", "at", "timestamp"):
        client.put(name + "_a", zoneless)
    with refused("TYPE_MISMATCH", "at", "timestamp"):
        client.put(name + "_b", zoned)


@pytest.mark.parametrize(("kind", "sample"), [
    (pa.int64(), 1), (pa.string(), "x"), (pa.float64(), 1.5), (pa.timestamp("us", "UTC"), 7),
    (pa.list_(pa.int8()), [1]), (pa.bool_(), True), (pa.decimal128(9, 2), decimal.Decimal("1.25")),
    (pa.dictionary(pa.int8(), pa.string()), None)])
def test_null_in_a_not_null_column_is_refused(client, name, kind, sample):
    loose = pa.schema([("id", pa.int64()), ("value", kind)])
    strict = pa.schema([("id", pa.int64()), pa.field("value", kind, nullable=False)])
    good = pa.array([sample] * 3, pa.string() if pa.types.is_dictionary(kind) else kind)
    client.create(name, strict, ["id"])
    column = pa.array([sample, None, sample], good.type)
    if pa.types.is_dictionary(kind):
        column = pa.array(["a", None, "b"]).dictionary_encode().cast(kind)
    with refused("NULL_VALUE", "row 1", "value"):
        client.put(name, pa.table([[1, 2, 3], column], schema=loose))
    assert client.count(name) == 0


def test_a_null_column_fills_any_nullable_column(state, name):
    table = pa.table({"id": [1, 2], "a": [1.5, 2.5], "b": ["x", "y"]})
    state.store(name, table, ["id"])
    state.store(name, pa.table({"id": [1], "a": pa.nulls(1), "b": pa.nulls(1)}))
    found = state.client.get(name, order="asc")
    assert values(found, "id", "a", "b") == [(1, None, None), (2, 2.5, "y")]


WIDER = [
    (pa.int8(), pa.int16()), (pa.int8(), pa.int64()), (pa.int32(), pa.int64()),
    (pa.uint8(), pa.int16()), (pa.uint32(), pa.int64()), (pa.uint16(), pa.uint64()),
    (pa.timestamp("s"), pa.timestamp("us")), (pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")),
    (pa.time32("s"), pa.time64("ns")), (pa.duration("ms"), pa.duration("us")),
    (pa.decimal128(9, 2), pa.decimal128(12, 4)), (pa.decimal128(20, 2), pa.decimal256(40, 2)),
    (pa.string(), pa.large_string()), (pa.large_string(), pa.string()),
    (pa.string_view(), pa.string()), (pa.string(), pa.dictionary(pa.int16(), pa.string())),
    (pa.dictionary(pa.int8(), pa.string()), pa.string_view()), (pa.binary(), pa.binary_view()),
    (pa.list_(pa.int32()), pa.large_list(pa.int32())),
    (pa.list_view(pa.int32()), pa.list_(pa.int32())),
    (pa.run_end_encoded(pa.int16(), pa.int64()), pa.int64()),
    (pa.int64(), pa.run_end_encoded(pa.int32(), pa.int64())),
]


def sample_of(kind):
    """Three values of a type, the second null."""
    if pa.types.is_run_end_encoded(kind):
        return pa.RunEndEncodedArray.from_arrays(
            pa.array([1, 2, 3], kind.run_end_type), pa.array([1, None, 2], kind.value_type))
    if pa.types.is_dictionary(kind):
        return pa.array(["1", None, "2"]).dictionary_encode().cast(kind)
    if pa.types.is_nested(kind):
        return pa.array([[1], None, [1, 2]], kind)
    if pa.types.is_temporal(kind):
        return arrays.temporal([1, None, 2], kind)
    if pa.types.is_decimal(kind):
        return pa.array([decimal.Decimal(1), None, decimal.Decimal(2)], kind)
    if pa.types.is_integer(kind):
        return pa.array([1, None, 2], kind)
    texts = ["1", None, "2"]
    return pa.array([t and t.encode() for t in texts] if "binary" in str(kind) else texts, kind)


@pytest.mark.parametrize(("sent", "column"), WIDER, ids=str)
def test_a_type_that_the_column_holds_is_taken(state, name, sent, column):
    stored, other = sample_of(column), sample_of(sent)
    state.store(name, pa.table({"id": [1, 2, 3], "value": stored}), ["id"])
    state.store(name, pa.table({"id": [4, 5, 6], "value": other}))
    found = state.client.get(name, order="asc")
    assert found.schema.field("value").type == column
    decoded = exact(found["value"])
    assert decoded[:3] == exact(stored)
    if not pa.types.is_temporal(column):
        assert decoded[3:] == decoded[:3]
    else:  # the same instant has another number in another unit
        assert [v is None for v in decoded[3:]] == [False, True, False]
        assert decoded[3] * 2 == decoded[5] >= 2


@pytest.mark.parametrize(("sent", "column"), [
    (pa.int64(), pa.int32()), (pa.uint64(), pa.int64()), (pa.int8(), pa.uint8()),
    (pa.string(), pa.int64()), (pa.int64(), pa.string()), (pa.binary(), pa.string()),
    (pa.float64(), pa.int64()), (pa.date32(), pa.timestamp("us")),
    (pa.decimal128(12, 2), pa.decimal128(9, 2)), (pa.bool_(), pa.int8()),
    (pa.list_(pa.int32()), pa.list_(pa.int16()))], ids=str)
def test_a_type_that_the_column_does_not_hold_is_refused(client, name, sent, column):
    client.create(name, pa.schema([("id", pa.int64()), ("value", column)]), ["id"])
    with refused("TYPE_MISMATCH", "value"):
        client.put(name, pa.table({"id": [1], "value": pa.nulls(1, sent)}))
    assert client.count(name) == 0


def test_a_finer_time_unit_is_taken_while_every_value_fits(state, name):
    state.store(name, pa.table({"id": [0], "at": pa.array([0], pa.timestamp("ms"))}), ["id"])
    fine = pa.array([5_000, None, 2_000_000], pa.timestamp("us"))
    state.store(name, pa.table({"id": [1, 2, 3], "at": fine}))
    assert exact(state.client.get(name, order="asc")["at"]) == [0, 5, None, 2000]
    with refused("VALUE_OUT_OF_RANGE", "row 1", "at"):
        state.client.put(name, pa.table({"id": [1, 2], "at": pa.array([1_000, 1_001],
                                                                     pa.timestamp("us"))}))


def test_a_table_is_copied_by_writing_what_was_read(state, name):
    table = ksv(["a", "b", "c"], [3, 2, 1])
    state.store(name, table, ["k"], ["s"], slices=7)
    read = state.client.get(name)
    state.client.put(f"{name}_copy", read)
    copied = state.client.describe(f"{name}_copy")
    assert (copied["sharding_key"], copied["sorting_key"], copied["slices"]) == (["k"], ["s"], 7)
    same(state.client.get(f"{name}_copy"), table, "ks")
    with refused("KEY_COLUMN_MISSING|COLUMN_NOT_FOUND|KEY_INVALID", "s"):
        part = state.client.get(name, columns=["k", "v"])
        state.client.put(f"{name}_part", part)
