"""Many writers of small batches at once, by the program bench/writers: clients in Python
would be done long before the server is."""

import json
import subprocess

import pyarrow as pa

from .peer import PACKAGE

WRITERS, SECONDS = 64, 3


def writers(m):
    """Calls a second, each a DoPut of 100 rows with new keys, answered when durable."""
    target = m.peer.writers_target()
    program, batches = m.peer.workdir.parent / "writers", m.peer.workdir.parent / "writers.arrows"
    subprocess.run(["go", "build", "-o", program.resolve(), "./bench/writers"],
                   cwd=PACKAGE.parents[1], check=True)
    small = m.dataset.samples.small_writes
    with pa.OSFile(str(batches), "wb") as file, pa.ipc.new_stream(file, small[0].schema) as writer:
        for table in small:
            writer.write_table(table)
    try:
        said = subprocess.run([program.resolve(), "-data", batches, "-writers", str(min(WRITERS, len(small))),
                               "-for", f"{SECONDS}s", *target],
                              check=True, stdout=subprocess.PIPE).stdout
    finally:
        batches.unlink()
    found = json.loads(said)
    m.record("writers_64", found["per_s"], int(found["calls"]))
