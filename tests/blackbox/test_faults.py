"""Damage on disk: named where it is, and nothing else suffers."""

import contextlib
import shutil
import subprocess
import time

import numpy as np
import pyarrow as pa
import pytest

from .gateway import Gateway
from .rows import ksv, same
from .wire import refused


def test_one_bad_byte_is_named_and_harms_nobody_else(tmp_path, name):
    gateway = Gateway(tmp_path)
    gateway.start()
    n = 200_000
    good, bad = f"{name}_good", f"{name}_bad"
    noise = list(np.random.default_rng(1).permutation(n))
    table = ksv([f"k{i % 100}" for i in range(n)], list(range(n)), noise)
    gateway.client.put(good, table.slice(0, 5000), sharding_key=["k"], sorting_key=["s"])
    gateway.client.put(bad, table, sharding_key=["k"], sorting_key=["s"])
    gateway.client.fold(bad)
    gateway.stop()

    largest = max(gateway.data.rglob("*.sst"), key=lambda path: path.stat().st_size)
    whole = largest.read_bytes()
    damaged = bytearray(whole)
    damaged[len(damaged) // 2] ^= 0xFF
    largest.write_bytes(damaged)

    gateway.start()
    client = gateway.client
    with refused("CHECKSUM_FAILED|.*", bad) as caught:
        client.get(bad)
    assert "slice" in str(caught.value)
    same(client.get(good), table.slice(0, 5000), "ks")
    hits = 0
    for key in range(100):
        try:
            assert client.count(bad, where=[["k", "=", f"k{key}"]]) == n // 100
            hits += 1
        except (pa.ArrowException, OSError):
            pass
    assert hits > 0  # most keys lie elsewhere
    client.put(good, ksv(["new"], [1]))
    client.put(bad, ksv(["new"], [1]))
    with contextlib.suppress(pa.ArrowException, OSError):
        client.fold(bad)
    with refused(".*", bad):
        client.get(bad)
    gateway.stop()

    found = doctor(gateway)
    assert found.returncode == 5, found.stderr
    assert bad in found.stdout
    assert good not in found.stdout.splitlines()[0]


def doctor(gateway):
    return subprocess.run([gateway.binary, "doctor", "--data", gateway.data], capture_output=True,
                          text=True, timeout=120, check=False)


def test_doctor_finds_nothing_in_a_sound_store(tmp_path, name):
    gateway = Gateway(tmp_path)
    gateway.start()
    table = ksv([f"k{i % 100}" for i in range(50_000)], list(range(50_000)))
    gateway.client.put(name, table, sharding_key=["k"], sorting_key=["s"])
    gateway.client.fold(name)
    gateway.client.put(name, ksv(["a", "b"], [1, 2]))
    gateway.client.delete(name, where=[["k", "=", "k5"]])
    gateway.kill()
    before = {path: path.stat().st_size for path in gateway.data.rglob("*") if path.is_file()}
    found = doctor(gateway)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "0 finding" in found.stdout
    after = {path: path.stat().st_size for path in gateway.data.rglob("*") if path.is_file()}
    assert after == before
    gateway.start()
    assert gateway.client.count(name) == 50_002 - 500
    gateway.stop()


def test_a_second_gateway_on_the_same_data_is_refused(own_gateway):
    gateway = own_gateway()
    second = subprocess.run(
        [gateway.binary, "serve", "--data", gateway.data, "--listen", "127.0.0.1:0"],
        capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode not in (0, None)
    assert "lock" in second.stderr.lower()
    assert "panic" not in second.stderr


@pytest.mark.parametrize("damage", ["a file", "manifest", "marker"])
def test_a_folder_that_is_no_store_is_refused(tmp_path, damage):
    gateway = Gateway(tmp_path)
    if damage == "a file":
        gateway.data.write_text("not a folder")
    else:
        gateway.start()
        gateway.client.put("t", ksv(["a"], [1]), sharding_key=["k"])
        gateway.stop()
        wanted = {"manifest": "MANIFEST-*", "marker": "marker.manifest.*"}[damage]
        for path in gateway.data.rglob(wanted):
            if damage == "manifest":
                path.write_bytes(b"\xff" * 1000)
            else:
                path.rename(path.with_name("marker.manifest.000009.MANIFEST-999999"))
    found = subprocess.run([gateway.binary, "serve", "--data", gateway.data, "--listen", "127.0.0.1:0"],
                           capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1, found.stderr
    assert "panic" not in found.stderr
    assert "goroutine" not in found.stderr


def test_a_full_disk_refuses_writes_and_goes_on_reading(tmp_path, name):
    """On a small file system of its own."""
    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", mount], check=False,
                          capture_output=True)
    if made.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    gateway = Gateway(tmp_path / "gateway")
    gateway.data = mount / "data"
    try:
        gateway.start()
        client = gateway.client
        rows, step = 0, 20_000
        rng = np.random.default_rng(2)
        client.put(name, ksv([], []).append_column("noise", pa.array([], pa.binary(100))),
                   sharding_key=["k"], sorting_key=["s"])
        with refused("DISK_FULL"):
            while True:
                batch = ksv([f"k{i % 50}" for i in range(step)], list(range(rows, rows + step)))
                noise = pa.FixedSizeBinaryArray.from_buffers(
                    pa.binary(100), step, [None, pa.py_buffer(rng.bytes(100 * step))])
                client.put(name, batch.append_column("noise", noise))
                rows += step
        assert gateway.alive()
        assert client.count(name) == rows
        gateway.kill()
        gateway.start()
        assert gateway.client.count(name) == rows
        gateway.client.drop(name)
        client, deadline = gateway.client, time.monotonic() + 30
        while True:  # the files of a dropped table go in the background
            try:
                client.put(name, ksv(["a"], [1]), sharding_key=["k"], sorting_key=["s"])
                break
            except (pa.ArrowException, OSError) as error:
                assert "[DISK_FULL]" in str(error)
                assert time.monotonic() < deadline, error
        assert client.count(name) == 1
        gateway.stop()
    finally:
        if gateway.alive():
            gateway.kill()
        subprocess.run(["umount", mount], check=False)
        shutil.rmtree(mount, ignore_errors=True)
