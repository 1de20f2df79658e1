"""Scripts that run in a process of their own and write a line of JSON for each case: how they write it, and how tests read it.

A kernel that Triton's interpreter runs cannot be compiled in the same process, so tests interpret none in their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def interpreted_lines(script: Path, *arguments: str) -> list[dict[str, Any]]:
    """What a script writes if Triton's interpreter runs its kernels; see `written_lines`."""
    return written_lines(script, *arguments, TRITON_INTERPRET="1")


def written_lines(script: Path, *arguments: str, **environment: str) -> list[dict[str, Any]]:
    """Run a script to its end in a process of its own, and return the objects that it writes, one a line.

    `environment`: variables that the process has beside those of this one. It finds our modules, and torch has one thread. If it
    fails, the message is the end of what it wrote to stderr.
    """
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script.name} ended with {done.returncode}: {done.stderr[-4000:]}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def write_case(case: str, wrong: str) -> None:
    """Write the line of a case. `wrong`: what is wrong with it, or nothing."""
    sys.stdout.write(json.dumps({"case": case, "wrong": wrong}) + "\n")
