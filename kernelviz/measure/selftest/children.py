"""Run Python modules of this package in their own processes, for other tracers and profilers."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import kernelviz
from kernelviz.measure.selftest.workbench import Stopped, Workbench

ROOT = Path(kernelviz.__file__).parents[1]
MOST_S = 300.0
"""Most seconds of a command; the supervisor ends a selftest that sends no event for 630 s."""
_POLL_S = 0.1


def module(name: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs a module with the interpreter of this process."""
    return [sys.executable, "-m", name, *arguments]


def output(at: Workbench, command: Sequence[str], most_s: float = MOST_S) -> tuple[int, str]:
    """Exit code and both streams of a command; its process group is killed when the selftest is stopped. Raises Stopped."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
        try:
            waited_s = 0.0
            while True:
                try:
                    child.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    waited_s += _POLL_S
                at.go_on()
                if waited_s > most_s:
                    raise TimeoutError(f"{' '.join(command[:3])} … did not end within {most_s:.0f} s")
        except (Stopped, TimeoutError):
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        log.seek(0)
        return child.returncode, log.read().decode(errors="replace")
