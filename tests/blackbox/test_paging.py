"""Pages, tickets and snapshots: the parts joined are the whole, at one moment."""

import random
import threading

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from .rows import ksv, same, values
from .wire import refused


def joined(client, name, **query):
    """All pages of a query as one table; every page but the last is full."""
    pages = list(client.pages(name, **query))
    assert all(page.num_rows == query["limit"] for page in pages[:-1])
    assert pages[-1].num_rows <= query["limit"]
    return pa.concat_tables(pages)


@pytest.mark.parametrize("limit", [1, 3, 7, 100, 1000])
def test_pages_joined_are_the_whole_both_ways(state, name, limit):
    rows = [(i // 8, i) for i in range(60 if limit == 1 else 200)]
    random.Random(1).shuffle(rows)
    table = pa.table({"k": ["x"] * len(rows), "a": [a for a, _ in rows], "b": [b for _, b in rows]})
    state.store(name, table, ["k"], ["a", "b"])
    up = values(joined(state.client, name, order="asc", limit=limit), "a", "b")
    down = values(joined(state.client, name, order="desc", limit=limit), "a", "b")
    assert up == sorted(rows)
    assert down == up[::-1]


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_page_borders_at_the_borders_of_slices_and_keys(state, name, order):
    table = ksv([f"k{i % 25}" for i in range(1000)], [i // 25 for i in range(1000)])
    state.store(name, table, ["k"], ["s"], slices=16)
    where = [["k", "in", [f"k{i}" for i in range(20)]], ["s", "between", [10, 20]]]
    whole = state.client.get(name, where=where, order=order)
    assert whole.num_rows == 20 * 11
    assert values(whole, "k", "s") == sorted(values(whole, "k", "s"), reverse=order == "desc")
    for limit in (7, 11, 22, 1):
        if limit == 1 and state.label != "fresh":
            continue  # 220 pages once are enough
        found = joined(state.client, name, where=where, order=order, limit=limit)
        assert values(found, "k", "s") == values(whole, "k", "s")


def test_pages_of_few_hits_reach_the_end(state, name):
    n = 60_000
    hits = set(random.Random(7).sample(range(n), 40))
    table = ksv([f"k{i % 100}" for i in range(n)], list(range(n)), [int(i in hits) for i in range(n)])
    state.store(name, table, ["k"], ["s"])
    for order in ("asc", "desc"):
        found = joined(state.client, name, where=[["v", "=", 1]], order=order, limit=10)
        assert sorted(values(found, "s")) == sorted(hits)
        assert len(found) == 40


def test_a_page_that_ends_with_the_result_has_no_marker(client, name):
    client.put(name, ksv(["a"] * 6, list(range(6))), sharding_key=["k"], sorting_key=["s"])
    for limit, markers in ((3, [True, False]), (6, [False]), (10, [False]), (4, [True, False])):
        pages, after = [], {}
        while True:
            chunks = client.chunks(name, order="asc", limit=limit, **after)
            pages.append("after" in chunks[-1][1])
            if not pages[-1]:
                break
            after = {"after": chunks[-1][1]["after"]}
        assert pages == markers, limit


def test_after_takes_key_values_too(state, name):
    table = ksv(["a", "a", "b", "b"], [1, 2, 1, 2])
    state.store(name, table, ["k"], ["s"])
    found = state.client.get(name, order="asc", after=["a", 2])
    assert values(found, "k", "s") == [("b", 1), ("b", 2)]
    found = state.client.get(name, order="desc", after=["b", 1])
    assert values(found, "k", "s") == [("a", 2), ("a", 1)]
    found = state.client.get(name, order="asc", after=["aa", 0])  # need not be there
    assert values(found, "k", "s") == [("b", 1), ("b", 2)]
    for bad in (["a"], ["a", "x"], ["a", 1, 1], [None, 1], []):
        with refused("KEY_.*|LITERAL_.*|MARKER_INVALID|AFTER_.*|FIELD_.*"):
            state.client.get(name, order="asc", after=bad)


def test_a_marker_with_a_prefix_filter(state, name):
    keys = [f"cat{chr(97 + i)}" for i in range(26)] + ["cass", "cb"]
    state.store(name, pa.table({"k": keys, "v": list(range(28))}), ["k"])
    where = [["k", "starts_with", "cat"]]
    found = joined(state.client, name, where=where, order="asc", limit=2)
    assert values(found, "k") == sorted(keys[:26])


def test_a_marker_belongs_to_its_table_and_order(client, name):
    for suffix in ("_a", "_b"):
        client.put(name + suffix, ksv(["a"] * 9, list(range(9))), sharding_key=["k"], sorting_key=["s"])
    marker = client.chunks(f"{name}_a", order="asc", limit=3)[-1][1]["after"]
    assert values(client.get(f"{name}_a", order="asc", after=marker), "s") == list(range(3, 9))
    changed = marker[:-1] + ("A" if marker[-1] != "A" else "B")
    for table, order, after in ((f"{name}_b", "asc", marker), (f"{name}_a", "desc", marker),
                                (f"{name}_a", "asc", changed), (f"{name}_a", "asc", marker[:5]),
                                (f"{name}_a", "asc", "")):
        with refused("MARKER_INVALID|FIELD_INVALID"):
            client.get(table, order=order, after=after, limit=3)


def test_a_page_reads_the_newest_state(client, name):
    client.put(name, ksv(["a"] * 6, list(range(6))), sharding_key=["k"], sorting_key=["s"])
    first = client.chunks(name, order="asc", limit=2)
    client.put(name, ksv(["a", "a"], [-1, 3], [9, 99]))
    rest = client.get(name, order="asc", after=first[-1][1]["after"])
    assert values(rest, "s", "v") == [(2, 2), (3, 99), (4, 4), (5, 5)]


@pytest.mark.parametrize("endpoints", ["slices", 1, 3, 10, 200])
def test_endpoints_are_disjoint_and_complete(state, name, endpoints):
    n = 20_000
    table = ksv([f"k{i % 50}" for i in range(n)], list(range(n)))
    state.store(name, table, ["k"], ["s"], slices=8)
    client = state.client
    info = client.info(name, endpoints=endpoints)
    if endpoints == "slices":
        assert len(info.endpoints) == 8
    elif endpoints == 1:
        assert len(info.endpoints) == 1
    else:
        assert 1 < len(info.endpoints) <= 2 * endpoints
    parts = [client.redeem(endpoint) for endpoint in info.endpoints]
    same(pa.concat_tables(parts), table, "ks")
    assert all(len(endpoint.ticket.ticket) <= 4096 for endpoint in info.endpoints)
    where = [["s", ">=", n - 100]]
    parts = [client.redeem(e) for e in client.info(name, endpoints=endpoints, where=where).endpoints]
    same(pa.concat_tables(parts), table.slice(n - 100), "ks")


def test_one_hot_sharding_key_is_cut_too(client, name):
    n = 200_000
    table = ksv(["hot"] * n, list(range(n)))
    client.put(name, table, sharding_key=["k"], sorting_key=["s"])
    client.fold(name)
    info = client.info(name, endpoints=4)
    sizes = [client.redeem(endpoint).num_rows for endpoint in info.endpoints]
    assert sum(sizes) == n
    assert len([size for size in sizes if size]) >= 3
    assert max(sizes) < n * 0.6


def test_tickets_of_one_moment_survive_writes_deletes_and_folds(client, name):
    n = 3000
    table = ksv([f"k{i % 40}" for i in range(n)], list(range(n)))
    client.put(name, table, sharding_key=["k"], sorting_key=["s"], slices=8)
    info = client.info(name, endpoints="slices")
    first = client.redeem(info.endpoints[0])
    client.put(name, ksv([f"k{i % 40}" for i in range(n)], list(range(n)), [-1] * n))
    client.delete(name, where=[["s", "<", n // 2]])
    client.fold(name)
    client.put(name, ksv(["new"] * 50, list(range(50))))
    client.fold(name)
    rest = [client.redeem(endpoint) for endpoint in info.endpoints[1:]]
    same(pa.concat_tables([first, *rest]), table, "ks")
    same(client.redeem(info.endpoints[0]), first, "ks")
    assert client.count(name) == n // 2 + 50


def test_a_snapshot_is_read_by_its_id_and_ends(client, name):
    import json

    client.put(name, ksv(["a", "b"], [1, 1]), sharding_key=["k"], sorting_key=["s"])
    info = client.info(name, snapshot=True)
    snapshot = json.loads(info.app_metadata)["snapshot"]
    client.put(name, ksv(["c"], [1]))
    assert client.count(name) == 3
    assert client.count(name, snapshot=snapshot) == 2
    assert [s["id"] for s in client.act("Stats", table=name)["snapshots"]] == [snapshot]
    client.act("RenewSnapshot", snapshot=snapshot)
    client.act("ReleaseSnapshot", snapshot=snapshot)
    with refused("SNAPSHOT_NOT_FOUND", snapshot):
        client.get(name, snapshot=snapshot)
    with refused("SNAPSHOT_NOT_FOUND|TICKET_.*"):
        client.redeem(info.endpoints[0])


def test_an_unpinned_info_pins_nothing(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    info = client.info(name)
    client.put(name, ksv(["b"], [1]))
    assert client.redeem(info.endpoints[0]).num_rows == 2
    assert client.act("Stats", table=name)["snapshots"] == []


def test_a_restart_ends_snapshots(own_gateway, name):
    gateway = own_gateway()
    gateway.client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    info = gateway.client.info(name, endpoints="slices")
    gateway.restart()
    with refused("SNAPSHOT_NOT_FOUND|TICKET_.*"):
        gateway.client.redeem(info.endpoints[0])
    assert gateway.client.count(name) == 1


def test_plans_that_do_not_go_with_splits_are_refused(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    for endpoints in ("slices", 4):
        for query in ({"limit": 1}, {"order": "asc"}, {"order": "asc", "after": ["a", 1]}):
            with refused("FIELD_CONFLICT", "endpoints"):
                client.info(name, endpoints=endpoints, **query)


def test_a_plan_that_touches_nothing_has_one_empty_endpoint(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    for endpoints in ("one", "slices", 4):
        info = client.info(name, endpoints=endpoints, where=[["k", "in", []]])
        assert len(info.endpoints) == 1
        found = client.redeem(info.endpoints[0])
        assert found.num_rows == 0
        assert found.schema.names == ["k", "s", "v"]
        assert info.total_records == 0


def test_a_dropped_table_ends_its_tickets_but_not_its_streams(client, name):
    n = 300_000
    table = ksv([f"k{i % 50}" for i in range(n)], list(range(n)))
    client.put(name, table, sharding_key=["k"], sorting_key=["s"])
    info = client.info(name, endpoints="slices")
    running = client.reader(name)
    seen = running.read_chunk().data.num_rows
    client.drop(name)
    with refused("TABLE_NOT_FOUND|SNAPSHOT_NOT_FOUND|TICKET_.*"):
        client.redeem(info.endpoints[0])
    assert seen + running.read_all().num_rows == n
    client.put(name, ksv(["new"], [1]), sharding_key=["k"], sorting_key=["s"])
    with refused("TABLE_NOT_FOUND|SNAPSHOT_NOT_FOUND|TICKET_.*"):
        client.redeem(info.endpoints[0])
    assert client.count(name) == 1


def test_a_large_query_still_gives_small_tickets(client, name):
    client.put(name, ksv([f"k{i}" for i in range(100)], list(range(100))), sharding_key=["k"],
               sorting_key=["s"])
    where = [["k", "in", [f"k{i}" for i in range(20_000)]]]
    for endpoints in ("one", "slices"):
        info = client.info(name, where=where, endpoints=endpoints)
        assert all(len(endpoint.ticket.ticket) <= 4096 for endpoint in info.endpoints)
        assert sum(client.redeem(e).num_rows for e in info.endpoints) == 100


def test_every_snapshot_sees_whole_commits_while_bulk_commits_land(own_gateway, name):
    """One writer overwrites all rows by commits that are large enough to be runs, one
    folds; whoever reads finds every row, all of one commit, never older than before."""
    rounds, rows = (30, 20_000)
    gateway = own_gateway()
    client = gateway.client
    keys, sort = [f"k{i % 64}" for i in range(rows)], list(range(rows))
    text = pa.array(["x" * 60] * rows)

    def write(value):
        table = ksv(keys, sort, [value] * rows).append_column("text", text).combine_chunks()
        client.again().put(name, table, sharding_key=["k"], sorting_key=["s"], atomic=True)

    write(0)
    done, failures = threading.Event(), []

    def guarded(work):
        try:
            work()
        except Exception as error:
            failures.append(error)
            done.set()

    def writer():
        for value in range(1, rounds + 1):
            write(value)
        done.set()

    def folder():
        other = client.again()
        while not done.is_set():
            other.fold(name)

    def reader():
        other, last, reads = client.again(), 0, 0
        while not done.is_set() or reads == 0:
            one = values(other.get(name, where=[["k", "=", "k0"], ["s", "=", 0]]), "v")
            assert len(one) == 1
            assert one[0] >= last, (one, last)
            last = one[0]
            if reads % 10 == 0:
                found = other.get(name, columns=["v"])
                assert found.num_rows == rows
                assert len(found["v"].unique()) == 1, found["v"].unique()
                assert found["v"][0].as_py() >= last
            reads += 1

    threads = [threading.Thread(target=guarded, args=(work,))
               for work in (writer, folder, reader, reader)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert values(client.get(name, where=[["k", "=", "k0"], ["s", "=", 0]]), "v") == [rounds]


def test_what_flight_itself_offers_for_endpoints(client, name):
    client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
    info = client.info(name, endpoints="slices")
    assert all(endpoint.expiration_time is not None for endpoint in info.endpoints)
    for endpoint in info.endpoints:
        assert not endpoint.locations
    assert isinstance(info.descriptor, flight.FlightDescriptor)
