"""Run a module's kernels under Nsight Compute (`ncu`), an independent timer, and parse the rows that it prints."""

import csv
import io
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from kernelviz.measure.selftest import children
from kernelviz.measure.selftest.workbench import Workbench

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


def path() -> str | None:
    """The path of ncu, or None."""
    return shutil.which("ncu")


def profiled(
    at: Workbench,
    module: str,
    arguments: Sequence[str],
    options: Sequence[str],
    most_s: float = children.MOST_S,
) -> list[Row]:
    """A row for each kernel that the module launches between cudaProfilerStart and -Stop, in order; see `rows_of`.

    Raises NotHere where ncu is missing or not permitted, RuntimeError with the end of its output when it fails otherwise.
    """
    executable = path()
    if executable is None:
        at.not_here("ncu is not on the PATH")
    command = [
        executable, "--profile-from-start", "off", "--target-processes", "application-only", "--clock-control", "none",
        "--csv", "--page", "raw", "--print-units", "base", *options, *children.module(module, arguments),
    ]  # fmt: skip
    code, output = children.output(at, command, most_s)
    for sign, message in _REFUSED.items():
        if sign in output:
            at.not_here(message)
    rows = rows_of(output)
    if code != 0 or not rows:
        raise RuntimeError(f"ncu ended with {code}: {' '.join(output[-600:].split())}")
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
