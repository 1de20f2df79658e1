"""A full disk for one process: no file of it may grow (RLIMIT_FSIZE), so each write fails. No test needs its own disk."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CODE = """
import importlib, json, os, pathlib, sys
sys.path[:0] = json.loads(sys.argv[3])
answer = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(pathlib.Path(sys.argv[4]))
os.write(int(sys.argv[5]), json.dumps(answer).encode())
"""


def fill() -> None:
    """From now on, no file of this process can be written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def free() -> None:
    """From now on, files can be written again."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def answers(function: Callable[[Path], dict[str, Any]], folder: Path) -> dict[str, Any]:
    """What the function returns for that folder in a process of its own, because the limit holds for a whole process."""
    read, write = os.pipe()
    arguments = [function.__module__, function.__name__, json.dumps(sys.path), str(folder), str(write)]
    try:
        # The answer goes through a pipe, because stdout may be a file.
        ran = subprocess.run(
            [sys.executable, "-c", _CODE, *arguments],
            pass_fds=[write],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(answer)
    return found
