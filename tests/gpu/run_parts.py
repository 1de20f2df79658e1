"""Run several parts of the GPU suite, one after another, on a GPU that is there for a limited time.

    python tests/gpu/run_parts.py FOLDER kernels smoke --most-s 555
    python tests/gpu/run_parts.py FOLDER timing:250 product:170 --only "calibration or soak"

FOLDER gets the report and the output of each part. FOLDER/parts.tgz has all of them in one file and is written again after each
part. PART:SECONDS: the part is not begun if fewer seconds are left of --most-s, of which some are kept for the last report;
without a number, its limit in parts.py counts. The number does not limit how long the part runs. When the time is over, the part
that runs is interrupted, and its report has the tests that had ended. Ends with 1 when a test failed, or a part is incomplete or
was not begun.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from parts import PARTS, pytest_command
from side_by_side import interrupt

ROOT = Path(__file__).parents[2]
END_S = 40.0
"""What an interrupted part may take until its report is written; then its processes are killed. pytest-xdist waits ten seconds
for processes that are within a test, and the report imports torch."""


def asked(text: str) -> tuple[str, float | None]:
    """The name of a part and the seconds that must be left for it."""
    name, _, seconds = text.partition(":")
    if name not in PARTS:
        raise argparse.ArgumentTypeError(f"no part {name!r}; there are {', '.join(PARTS)}")
    try:
        return name, float(seconds) if seconds else None
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: write PART or PART:SECONDS, for example {name}:120") from None


def run(name: str, folder: Path, options: Sequence[str], most_s: float) -> int:
    """Run a part for at most that long; returns pytest's exit code, never 0 if it was interrupted."""
    command = pytest_command("--part", name, *options)
    environment = {**os.environ, "KERNELVIZ_GPU_REPORTS": str(folder), "PYTHONUNBUFFERED": "1"}
    with (folder / f"{name}.txt").open("a") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(most_s)
        except subprocess.TimeoutExpired:
            return interrupted(process, END_S)
        except BaseException:  # Ctrl-C, or a signal to end: nothing of the part may stay on the GPU
            interrupted(process, END_S)
            raise


def interrupted(process: subprocess.Popen[bytes], most_s: float) -> int:
    """Ask pytest to end, which first ends its own processes and writes the report. If it has not ended after that long, kill it
    and these processes. Returns a code that is not 0."""
    return interrupt(process, most_s) or pytest.ExitCode.INTERRUPTED


def pack(folder: Path) -> None:
    """Write all that is in the folder into its parts.tgz. It is renamed into place, so that a copy of it is always whole."""
    unfinished = folder / "parts.tgz.part"
    with tarfile.open(unfinished, "w:gz") as archive:
        for path in sorted(folder.iterdir()):
            if not path.name.startswith("parts.tgz"):
                archive.add(path, path.name)
    unfinished.rename(folder / "parts.tgz")


def listen_to_signals() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt. A shell that starts this program in the background makes it ignore SIGINT,
    and without this, pytest would ignore it too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="+", type=asked, metavar="PART[:SECONDS]")
    parser.add_argument("--most-s", type=float, default=86_400.0, help="seconds for all parts (default: a day)")
    parser.add_argument("--only", metavar="EXPRESSION", help="choose tests, as by pytest's -k")
    parser.add_argument("--all", action="store_true", help="also what is on record, see on_record.py")
    of = parser.parse_args(arguments)
    listen_to_signals()
    of.folder.mkdir(parents=True, exist_ok=True)
    options = [*(["-k", of.only] if of.only else []), *(["--all"] if of.all else [])]
    folder, ends_at, bad = of.folder.resolve(), time.monotonic() + of.most_s - END_S, False
    for name, needed_s in of.parts:
        left_s = ends_at - time.monotonic()
        if left_s < (PARTS[name].limit_s if needed_s is None else needed_s):
            print(f"{name}: not begun, {left_s:.0f} s are left", flush=True)  # noqa: T201
            bad = True
            continue
        began_s = time.monotonic()
        try:
            code = run(name, folder, options, left_s)
        finally:
            pack(folder)
        nothing_chosen = bool(of.only) and code == pytest.ExitCode.NO_TESTS_COLLECTED
        bad = bad or not (code == 0 or nothing_chosen)
        said = "no test of this name" if nothing_chosen else f"exit code {code}"
        print(f"{name}: {time.monotonic() - began_s:.0f} s, {said}", flush=True)  # noqa: T201
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
