"""Command line: `python -m soak --minutes 30 --out ../build/soak`."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

from .run import Soak


def main():
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=2000)
    parser.add_argument("--places", type=int, default=400)
    parser.add_argument("--out", type=Path, required=True, help="folder of soak.json and soak.md")
    parser.add_argument("--work", type=Path, help="folder for the data, on a real disk")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="soak-", dir=args.work or args.out))
    found = Soak(folder, args.minutes * 60, args.seed, args.devices, args.places).run()
    (args.out / "soak.json").write_text(json.dumps(found, indent=1))
    (args.out / "soak.md").write_text(found["text"])
    print(found["text"])
    if found["passed"]:
        shutil.rmtree(folder)
    else:
        print(f"the data and the log are kept in {folder}", file=sys.stderr)
    sys.exit(not found["passed"])


if __name__ == "__main__":
    main()
