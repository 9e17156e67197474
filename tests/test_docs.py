"""What the documents say is so: every command and snippet runs, every link leads
somewhere, every dependency is explained."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from blackbox.gateway import Gateway

PROJECT = Path(__file__).parents[1]
PAGES = sorted([PROJECT / "README.md", *PROJECT.glob("docs/*.md"), *PROJECT.glob("*/README.md"),
                PROJECT / "bench" / "peers" / "README.md"])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:8815"


def pages(*languages):
    """Pages that have a block in one of these languages."""
    return [pytest.param(page, id=str(page.relative_to(PROJECT))) for page in PAGES
            if any(language in languages for language, _ in FENCE.findall(page.read_text()))]


class Reader:
    """Somebody who does what a page says, from top to bottom, in a folder that looks
    like the project after `make demo`."""

    def __init__(self, folder):
        self.folder = folder
        self.gateway = Gateway(folder / "gateway")
        (folder / "build" / "demo").mkdir(parents=True)
        (folder / "build" / "sheaf").symlink_to(self.gateway.binary)
        tool = Path(sys.executable).parent / "tpchgen-cli"
        subprocess.run([tool, "parquet", "-s", "0.001", "-T", "lineitem", "-o", folder / "build" / "demo"],
                       check=True, stdout=subprocess.DEVNULL)
        (folder / "build" / "demo" / "lineitem.parquet").rename(folder / "build/demo/lineitem-0.1.parquet")
        self.names = {}

    def shell(self, block):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if not words:
                continue
            if words[0] == "make":  # run by other tests, or long: the target must exist
                subprocess.run(["make", "--dry-run", *words[1:]], cwd=PROJECT, check=True,
                               stdout=subprocess.DEVNULL)
            elif words[:2] == ["build/sheaf", "serve"]:
                self.gateway.start()
            else:
                done = subprocess.run(["bash", "-c", line], cwd=self.folder, text=True, capture_output=True,
                                      env={**os.environ, "SHEAF_SERVER": str(self.gateway.address)},
                                      check=False)
                assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"

    def python(self, block):
        if not self.gateway.alive():
            self.gateway.start()
        exec(compile(block.replace(ADDRESS, self.gateway.address), "snippet", "exec"), self.names)


@pytest.mark.parametrize("page", pages("sh", "python"))
def test_commands_and_snippets_run(page, tmp_path):
    reader = Reader(tmp_path)
    try:
        for language, block in FENCE.findall(page.read_text()):
            if language in ("sh", "python"):
                {"sh": reader.shell, "python": reader.python}[language](block)
    finally:
        reader.gateway.stop()


@pytest.mark.parametrize("page", pages("json"))
def test_json_is_json(page):
    for language, block in FENCE.findall(page.read_text()):
        if language == "json":
            json.loads(block)


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(PROJECT))) for page in PAGES])
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.split("#")[0]).exists(), target


def first_column(heading):
    """The names in the tables below a heading of docs/dependencies.md."""
    text = (PROJECT / "docs" / "dependencies.md").read_text()
    section = text.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_dependency_is_explained():
    explained = first_column("In the gateway and the command line") | first_column("In tests and tools")
    direct = set()
    for line in (PROJECT / "go.mod").read_text().splitlines():
        if (found := re.match(r"\s+(\S+\.\S+) v", line)) and "// indirect" not in line:
            direct.add(found[1])
    assert direct <= explained
    required = "".join((PROJECT / file).read_text() for file in ("go.mod", "tools/go.mod"))
    assert all(f"{module} v" in required for module in explained)
    python = first_column("In Python")
    required = {re.match(r"[\w-]+", line)[0] for path in PROJECT.rglob("requirements*.txt")
                if not {".venv", "build"} & set(path.relative_to(PROJECT).parts)
                for line in path.read_text().splitlines() if line and line[0] not in "#-"}
    assert required == python


def test_the_demo_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, PROJECT / "demo" / "demo.py", "--binary", Gateway(tmp_path).binary,
         "--work", tmp_path / "demo", "--scale", "0.01"],
        text=True, capture_output=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("334,264 rows in", "2,512 of 336,776 flights", "access   point, 1 of 16 slices",
                  "access   range", "access   full, 16 of 16 slices", "60,175 rows", "exit code 0"):
        assert words in done.stdout, words
