"""The command lines of ncu that read the counters of a case, and what ncu says where it cannot."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from kernelviz.core.counters import Replay
from kernelviz.core.uncounted import CountersBusy, NotPermitted, ProfilerNotLoaded, UncountedReason

NCU = "ncu"
_REFUSALS: tuple[tuple[str, UncountedReason], ...] = (
    ("ERR_NVGPUCTRPERM", NotPermitted()),
    ("LibraryNotLoaded", ProfilerNotLoaded()),
    ("driver resource was unavailable", CountersBusy()),
)
"""What ncu prints where it may not or cannot read counters (Nsight Compute Documentation, "CLI Messages")."""
_UNKNOWN_METRIC = re.compile(r"Failed to find metric (?:regex:\^?)?\"?([A-Za-z0-9_.]+)")
_VERSION = re.compile(r"Version (\d+(?:\.\d+)*)")


def ncu_path() -> str | None:
    """The path of ncu on this machine; None if it is not on the PATH."""
    return shutil.which(NCU)


def counting_command(
    ncu: str, metrics: Sequence[str], output: Path, program: Sequence[str], replay: Replay = "application"
) -> list[str]:
    """ncu over a program that marks its calls with cudaProfilerStart and -Stop; the table goes to the file `output`.

    The clock is not locked and ncu does not flush the caches: the program does, as for a measurement. With ``application`` each
    pass starts the program again, so that each pass has flushed caches.

    >>> " ".join(counting_command("ncu", ("a", "b"), Path("/t/o.csv"), ("kernelviz", "launch", "add")))
    'ncu --profile-from-start off --target-processes application-only --clock-control none --cache-control none \
--replay-mode application --csv --page raw --print-units base --log-file /t/o.csv --metrics a,b kernelviz launch add'
    """
    return [
        ncu, "--profile-from-start", "off", "--target-processes", "application-only", "--clock-control", "none",
        "--cache-control", "none", "--replay-mode", replay, "--csv", "--page", "raw", "--print-units", "base",
        "--log-file", str(output), "--metrics", ",".join(metrics), *program,
    ]  # fmt: skip


def refusal(printed: str) -> UncountedReason | None:
    """Why ncu could not read counters, by what it printed; None if it does not say.

    >>> refusal("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
    NotPermitted()
    """
    return next((reason for sign, reason in _REFUSALS if sign in printed), None)


def unknown_metrics(printed: str, metrics: Sequence[str]) -> tuple[str, ...]:
    """The metrics that this ncu does not know for this GPU, by what it printed.

    >>> unknown_metrics(r"==ERROR== Failed to find metric regex:^a__b\\.(sum|avg)$", ("a__b.sum", "a__bc.sum"))
    ('a__b.sum',)
    """
    bases = {name.partition(".")[0] for name in _UNKNOWN_METRIC.findall(printed)}
    return tuple(name for name in metrics if name.partition(".")[0] in bases)


def version(printed: str) -> str | None:
    """The version in the output of `ncu --version`.

    >>> version("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.3.1.0 (build 36398880) (public-release)")
    '2025.3.1.0'
    """
    match = _VERSION.search(printed)
    return None if match is None else match[1]
