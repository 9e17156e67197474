"""What the figures were measured on, without saying whose machine it is."""

import os
import platform
import subprocess
from pathlib import Path


def describe():
    """Processor, memory, kernel and versions, as (what, text) in the order to print."""
    return {
        "processor": f"{processor()}, {len(os.sched_getaffinity(0))} cores",
        "memory": f"{memory_bytes() / (1 << 30):.0f} GiB",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}",
        "versions": f"Python {platform.python_version()}, {go_version()}, "
                    + ", ".join(f"{name} {version}" for name, version in package_versions()),
    }


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return " ".join(line.split(":", 1)[1].split())
    return platform.machine()


def memory_bytes():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def go_version():
    try:
        said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return "Go not found"
    return said.stdout.strip().replace("go", "Go ", 1)


def package_versions():
    from importlib.metadata import PackageNotFoundError, version

    for name in ("pyarrow", "duckdb", "chdb", "roapi"):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


if __name__ == "__main__":
    for what, said in describe().items():
        print(f"{what}: {said}")
