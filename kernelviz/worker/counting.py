"""Read the hardware counters of cases: ncu in a process of its own over `kernelviz launch`, under the device's lock."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernelviz.core import Counters, DocumentError, Problem, timestamps
from kernelviz.core.command import launch_options
from kernelviz.core.counters import END_MARKER, MOST_KERNELS, Replay, Scope
from kernelviz.core.uncounted import (
    CountersCancelled,
    NoProfiler,
    NothingCounted,
    OutputUnreadable,
    ProfilerFailed,
    TookTooLong,
    Uncounted,
)
from kernelviz.hardware.nsight_compute import command as ncu
from kernelviz.hardware.nsight_compute.csv_output import Launch, is_ncu_csv, launches
from kernelviz.hardware.nsight_compute.metric_names import requested_metrics
from kernelviz.worker.guarded_command import run_guarded

MOST_S = 600.0
"""All passes of ncu together. A pass starts a process that imports torch, which takes 5 to 10 s."""
_VERSION_S = 30.0
_STARTS = 8
"""How often ncu is started at most, each time without the metrics that it does not know."""
_MOST_TABLE_BYTES = 64 * 2**20
_TAIL_CHARACTERS = 1_500


@dataclass(frozen=True, slots=True)
class Count:
    """What is requested: the counters of these variants for one problem. `capability`: the GPU's compute capability."""

    problem: Problem
    variants: tuple[str, ...]
    capability: tuple[int, int] | None = None
    replay: Replay = "application"
    scope: Scope = "all"


@dataclass(frozen=True, slots=True)
class _Output:
    """What ncu and the program printed, and the file with the table; `exit_code` of ncu."""

    exit_code: int
    printed: str
    table: bytes


def count(
    work: Count,
    device_id: str,
    plugins: Sequence[str],
    *,
    stop: Callable[[], bool],
    guard_fds: Iterable[int] = (),
    most_s: float = MOST_S,
) -> Mapping[str, Counters | Uncounted]:
    """The counters of each variant, or why they could not be read. `guard_fds`: see `run_guarded`."""
    path = ncu.ncu_path()
    if path is None:
        return dict.fromkeys(work.variants, Uncounted(reason=NoProfiler()))
    wanted = metrics = requested_metrics(work.capability, work.scope)
    output = _profiled(path, work, device_id, plugins, metrics, stop, tuple(guard_fds), most_s)
    for _ in range(_STARTS - 1):
        if isinstance(output, Uncounted) or not (unknown := ncu.unknown_metrics(output.printed, metrics)):
            break
        metrics = tuple(name for name in metrics if name not in unknown)
        output = _profiled(path, work, device_id, plugins, metrics, stop, tuple(guard_fds), most_s)
    if isinstance(output, Uncounted):
        return dict.fromkeys(work.variants, output)
    if not is_ncu_csv(output.table):
        return dict.fromkeys(work.variants, _without_table(output))
    about = Counters(
        kernels=(),
        version=_version(path),
        measured_at=timestamps.now(),
        cold=True,
        replay=work.replay,
        not_read=tuple(name for name in wanted if name not in metrics),
    )
    try:
        return _by_variant(work.variants, launches(output.table), about, output.printed)
    except DocumentError as error:
        return dict.fromkeys(work.variants, Uncounted(reason=OutputUnreadable(), message=str(error)))


def _profiled(
    path: str,
    work: Count,
    device_id: str,
    plugins: Sequence[str],
    metrics: Sequence[str],
    stop: Callable[[], bool],
    guard_fds: tuple[int, ...],
    most_s: float,
) -> _Output | Uncounted:
    program = [
        sys.executable, "-P", "-m", "kernelviz", "launch", work.problem.op, "--variants", ",".join(work.variants),
        *launch_options(work.problem, device=device_id, plugins=plugins), "--marked", "--device-locked",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelviz-ncu-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "counters.csv"
        command = ncu.counting_command(path, metrics, file, program, work.replay)
        try:
            end = run_guarded(command, most_s=most_s, stop=stop, guard_fds=guard_fds)
            table = _table(file)
        except OSError as error:
            return Uncounted(reason=ProfilerFailed(exit_code=127), message=str(error))
    # ncu writes its messages into the file with the table.
    messages = table.decode(errors="replace") if not is_ncu_csv(table) else _messages(table)
    printed = f"{end.printed}\n{messages}".strip()
    if end.how == "stopped":
        return Uncounted(reason=CountersCancelled())
    if end.how == "too_long":
        return Uncounted(reason=TookTooLong(seconds=most_s), message=printed[-_TAIL_CHARACTERS:])
    refused = ncu.refusal(printed)
    return _Output(end.exit_code, printed, table) if refused is None else Uncounted(reason=refused)


def _table(file: Path) -> bytes:
    """The file that ncu wrote; empty if it wrote none."""
    if not file.is_file():
        return b""
    with file.open("rb") as opened:
        return opened.read(_MOST_TABLE_BYTES)


def _messages(table: bytes) -> str:
    """The lines of ncu beside its table."""
    return "\n".join(line for line in table.decode(errors="replace").splitlines() if line.startswith("=="))


def _without_table(output: _Output) -> Uncounted:
    if output.exit_code == 0:
        return Uncounted(reason=NothingCounted(), message=output.printed[-_TAIL_CHARACTERS:])
    return Uncounted(reason=ProfilerFailed(exit_code=output.exit_code), message=output.printed[-_TAIL_CHARACTERS:])


def _by_variant(
    variants: Sequence[str], profiled: Sequence[Launch], about: Counters, printed: str
) -> dict[str, Counters | Uncounted]:
    """The counters of each variant: its kernels are those before its end marker. Errors: DocumentError for another number of
    end markers, as of a program that ended early."""
    calls: list[list[Launch]] = [[]]
    for launch in profiled:
        if END_MARKER in launch.kernel:
            calls.append([])
        else:
            calls[-1].append(launch)
    if len(calls) - 1 != len(variants):
        raise DocumentError(f"ncu saw {len(calls) - 1} ends of a call, {len(variants)} were expected", path="kernels")
    counted: dict[str, Counters | Uncounted] = {}
    for variant, call in zip(variants, calls, strict=False):
        if call:
            kernels = tuple(launch.counters() for launch in call[:MOST_KERNELS])
            counted[variant] = msgspec.structs.replace(about, kernels=kernels)
        else:
            counted[variant] = Uncounted(reason=NothingCounted(), message=printed[-_TAIL_CHARACTERS:])
    return counted


def _version(path: str) -> str | None:
    """The version of ncu; None if it does not say."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return ncu.version(answer.stdout[:_TAIL_CHARACTERS])
