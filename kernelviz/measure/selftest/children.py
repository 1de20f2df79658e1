"""Run modules of this package in their own processes: directly, or under Nsight Compute (`ncu`), an independent timer whose rows
are parsed here."""

import csv
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

import kernelviz
from kernelviz.measure.selftest.workbench import NotHere, Stopped, Workbench

ROOT = Path(kernelviz.__file__).parents[1]
MOST_S = 300.0
"""The time limit of a command in seconds. The supervisor ends a selftest that sends no event for 630 s."""
_POLL_S = 0.1
_SCALES = {
    "nsecond": 1e-9, "ns": 1e-9, "usecond": 1e-6, "us": 1e-6, "msecond": 1e-3, "ms": 1e-3, "second": 1.0, "s": 1.0,
    "hz": 1.0, "cycle/nsecond": 1e9, "cycle/usecond": 1e6, "cycle/second": 1.0,
    "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "": 1.0,
}  # fmt: skip
_REFUSED = {
    "ERR_NVGPUCTRPERM": "this user may not read the GPU's counters (ERR_NVGPUCTRPERM); allow it with "
    "NVreg_RestrictProfilingToAdminUsers=0 for the driver",
    "LibraryNotLoaded": "ncu cannot load its profiler in this sandbox (LibraryNotLoaded)",
    "driver resource was unavailable": "another profiler holds the GPU's counters",
}

Row = Mapping[str, str]


def module_command(name: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs a module with the interpreter of this process."""
    return [sys.executable, "-m", name, *arguments]


def output(at: Workbench, command: Sequence[str], most_s: float = MOST_S) -> tuple[int, str]:
    """Exit code and both streams of a command; its process group is killed when the selftest is stopped. Raises Stopped."""
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
        until_s = time.monotonic() + most_s
        try:
            while child.poll() is None:
                at.go_on()
                if time.monotonic() > until_s:
                    raise TimeoutError(f"{' '.join(command[:3])} … did not end within {most_s:.0f} s")
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_POLL_S)
        except (Stopped, TimeoutError):
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        log.seek(0)
        return child.returncode, log.read().decode(errors="replace")


def path() -> str | None:
    """The path of ncu, or None."""
    return shutil.which("ncu")


def profiled(
    at: Workbench,
    module: str,
    arguments: Sequence[str],
    options: Sequence[str],
    most_s: float = MOST_S,
) -> list[Row]:
    """A row for each kernel that the module launches between cudaProfilerStart and -Stop, in order; see `rows_of`.

    Raises NotHere where ncu is missing or not permitted, RuntimeError with the end of its output when it fails otherwise.
    """
    executable = path()
    if executable is None:
        raise NotHere("ncu is not on the PATH")
    command = [
        executable, "--profile-from-start", "off", "--target-processes", "application-only", "--clock-control", "none",
        "--csv", "--page", "raw", "--print-units", "base", *options, *module_command(module, arguments),
    ]  # fmt: skip
    code, printed = output(at, command, most_s)
    for sign, message in _REFUSED.items():
        if sign in printed:
            raise NotHere(message)
    rows = rows_of(printed)
    if code != 0 or not rows:
        raise RuntimeError(f"ncu ended with {code}: {' '.join(printed[-600:].split())}")
    return rows


@contextmanager
def watched() -> Iterator[None]:
    """In the module that runs under ncu: profile only the launches inside this context."""
    torch.cuda.synchronize()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    yield
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


def rows_of(output: str) -> list[Row]:
    """The rows of ncu's CSV in the output of ncu and the program; the unit of a column has the key ``(its name)``.

    >>> rows_of('noise\\n"ID","Kernel Name","t.sum"\\n"","","ns"\\n"0","k","1,024"\\n')
    [{'ID': '0', 'Kernel Name': 'k', 't.sum': '1,024', '(t.sum)': 'ns'}]
    """
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        return []
    table = list(csv.reader(io.StringIO("\n".join(line for line in lines[first:] if line.startswith('"')))))
    names, units, *rows = table
    known = {f"({n})": u for n, u in zip(names, units, strict=True) if u}
    return [dict(zip(names, row, strict=True)) | known for row in rows if len(row) == len(names)]


def quantity(row: Row, metric: str) -> float:
    """A metric of a row in base units.

    >>> quantity({"t.sum": "1,024", "(t.sum)": "ns"}, "t.sum")
    1.024e-06
    """
    unit = row.get(f"({metric})", "").lower()
    if unit not in _SCALES:
        raise RuntimeError(f"ncu gives {metric} in {unit!r}, which is not known here")
    return float(row[metric].replace(",", "")) * _SCALES[unit]


def dims(row: Row, column: str) -> tuple[int, ...]:
    """The dimensions of a grid or a block.

    >>> dims({"Grid Size": "(1,024, 2, 1)"}, "Grid Size"), dims({"Grid Size": "(64, 1, 1)"}, "Grid Size")
    ((1024, 2, 1), (64, 1, 1))
    """
    return tuple(int(part.replace(",", "")) for part in row[column].strip("()").split(", "))
