"""Print the facts of a checkout as JSON: ``python tests/characterisation/collect.py CHECKOUT [--sections a,b] [--store]``.

The facts are collected in a process of its own, which imports that checkout's kernelviz, with a store and locks of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]


LEFT_OUT = "left out"
"""The key of the paths that a part does not have, beside the sections."""


def collect(checkout: Path, sections: Sequence[str], part: int | None = None) -> dict[str, Any]:
    """The facts of a checkout by section, with the paths that are left out if only a part of the entries is taken (`sampling`).

    Errors: RuntimeError with what the process printed."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("KERNELVIZ_")}
        environment = kept | {
            "PYTHONPATH": os.pathsep.join([str(checkout.resolve()), str(TESTS)]),
            "KERNELVIZ_HOME": str(Path(folder) / "home"),
            "KERNELVIZ_RUNTIME_DIR": str(Path(folder) / "locks"),
            "CUDA_VISIBLE_DEVICES": "",
            "COLUMNS": "200",
        }
        (Path(folder) / "locks").mkdir()
        target = Path(folder) / "facts.json"
        done = subprocess.run(
            [sys.executable, "-m", "characterisation.collect", "--inside", str(target), ",".join(sections), json.dumps(part)],
            cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"the facts of {checkout} could not be collected:\n{done.stdout[-6000:]}")
        sys.stderr.write(done.stdout)
        found: dict[str, Any] = json.loads(target.read_text())
        return found


def _inside(target: Path, sections: Sequence[str], part: int | None) -> None:
    """In the process that imports the checkout."""
    from characterisation import adapter, sampling
    from characterisation.sections import FAST, FULL

    adapter.ship(Path(__file__).with_name("shipped"))
    sampling.part = part
    found: dict[str, Any] = {}
    for name in sections:
        begun, used = time.perf_counter(), time.process_time()
        found[name] = (FAST | FULL)[name]()
        took = f"{time.perf_counter() - begun:.1f} s, {time.process_time() - used:.1f} s of processor time"
        sys.stderr.write(f"{name}: {took}\n")
    found[LEFT_OUT] = sampling.left_out
    # Through JSON, so that what is compared has the very values that are stored.
    target.write_text(json.dumps(found))


def main() -> None:
    if sys.argv[1:2] == ["--inside"]:
        _inside(Path(sys.argv[2]), sys.argv[3].split(","), json.loads(sys.argv[4]))
        return
    sys.path.insert(0, str(TESTS))
    from characterisation.facts import write_stored
    from characterisation.sections import FAST, FULL

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="folder with the package kernelviz in it")
    parser.add_argument("--sections", default=",".join((*FAST, *FULL)), help="default: all")
    parser.add_argument("--store", action="store_true", help="store them as what later checkouts are compared with")
    given = parser.parse_args()
    found = collect(given.checkout, given.sections.split(","))
    del found[LEFT_OUT]
    if given.store:
        for name, facts in found.items():
            write_stored(name, facts)
    else:
        json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
