"""nvbench's JSON as runs: one for each benchmark on each device, a case a state.

The format: https://github.com/NVIDIA/nvbench/blob/main/nvbench/json_printer.cu (its version 1.0.0). Its numbers are texts, a
number that is not finite is null, and a skipped state has no summaries.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kernelviz.core import (
    Conditions,
    Device,
    DocumentError,
    Failure,
    Figure,
    Outcome,
    Result,
    Run,
    Struct,
    Timer,
    Timing,
)
from kernelviz.core.reasons import Skipped
from kernelviz.formats import document, foreign
from kernelviz.formats.import_format import Import
from kernelviz.formats.validation import MAX_SIZE

TOOL = "nvbench"


class _Value(Struct, frozen=True, kw_only=True):
    name: str
    type: str = ""
    value: str | float | bool | None = None


class _Summary(Struct, frozen=True, kw_only=True):
    tag: str = ""
    description: Any = None
    data: tuple[_Value, ...] | None = None


class _State(Struct, frozen=True, kw_only=True):
    device: int | None = None
    axis_values: tuple[_Value, ...] | None = None
    summaries: tuple[_Summary, ...] | None = None
    is_skipped: bool = False
    skip_reason: str | None = None


class _Benchmark(Struct, frozen=True, kw_only=True):
    name: str
    states: tuple[_State, ...] | None


class _Device(Struct, frozen=True, kw_only=True):
    id: int
    name: str | None = None
    sm_version: int | None = None
    number_of_sms: int | None = None
    global_memory_size: int | None = None
    l2_cache_size: int | None = None
    kind: Any = None
    """In a file of ours; nvbench knows GPUs only."""


class _Version(Struct, frozen=True, kw_only=True):
    string: str | None = None
    git_sha: str | None = None


class _Versions(Struct, frozen=True, kw_only=True):
    nvbench: _Version | None = None


class _Meta(Struct, frozen=True, kw_only=True):
    argv: tuple[str, ...] | None = None
    version: _Versions | None = None


class _File(Struct, frozen=True, kw_only=True):
    meta: _Meta | None = None
    devices: tuple[_Device, ...] | None
    benchmarks: tuple[_Benchmark, ...]


@dataclass(frozen=True, slots=True)
class _Time:
    """A time of nvbench: the tag of its summary, what people call it here, how it was taken, and its timer."""

    tag: str
    name: str
    how: str
    timer: Timer
    count: str
    noise: str | None = None


_GPU, _CPU = "nv/cold/time/gpu", "nv/cold/time/cpu"
_COLD, _BATCH = "nv/cold/sample_size", "nv/batch/sample_size"
_ALONE = "isolated calls, L2 flushed before each"
_TIMES = (
    _Time(f"{_GPU}/mean", "GPU time, cold", f"mean of {{n}} {_ALONE}, by CUDA events", "events", _COLD, f"{_GPU}/stdev/relative"),
    _Time(f"{_GPU}/median", "GPU time, cold, median", f"median of {{n}} {_ALONE}, by CUDA events", "events", _COLD),
    _Time("nv/batch/time/gpu/mean", "GPU time, batch", "mean of {n} calls back to back, by CUDA events", "events", _BATCH),
    _Time(f"{_CPU}/mean", "CPU time, cold", f"mean of {{n}} {_ALONE}, by the host clock", "host", _COLD,
          f"{_CPU}/stdev/relative"),
    _Time("nv/cpu_only/time/cpu/mean", "CPU time", "mean of {n} calls, by the host clock", "host", "nv/cpu_only/sample_size",
          "nv/cpu_only/time/cpu/stdev/relative"),
)  # fmt: skip


OURS = "none: written by kernelviz"
"""How the version of nvbench begins in a file of ours."""
_TIMERS: Mapping[str, Timer] = MappingProxyType(
    {
        "CUDA events": "events",
        "the host clock": "host",
        "cupti": "cupti",
        "kineto": "kineto",
        "events": "events",
        "host": "host",
    }
)
"""Timers by what a description calls them."""
_CALLS = re.compile(r" of (\d{1,15}) ")
_NOISE = re.compile(r"; standard deviation (unknown|\d{1,15}(?:\.\d{1,15})?(?:e[+-]\d{1,2})?) ?%?$")


def decode(raw: bytes) -> tuple[Run, ...]:
    """Errors: DocumentError with the path of the field."""
    file = document.from_json(raw, _File)
    devices = {d.id: d for d in file.devices or ()}
    ours = _tool(file.meta).startswith(OURS)
    runs: list[Run] = []
    for b, benchmark in enumerate(file.benchmarks):
        path = f"$.benchmarks[{b}]"
        by_device: dict[int | None, list[Result]] = {}
        sizes = _size_axes(benchmark.states or (), path)
        seen: set[tuple[int | None, str]] = set()
        for s, state in enumerate(benchmark.states or ()):
            if devices and state.device not in devices:
                raise DocumentError(f"{state.device} is no device of the file", path=f"{path}.states[{s}].device")
            result = _result(benchmark, state, sizes, ours, f"{path}.states[{s}]")
            if (state.device, result.case.key) in seen:
                raise DocumentError("an earlier state has the same axis values", path=f"{path}.states[{s}].axis_values")
            seen.add((state.device, result.case.key))
            by_device.setdefault(state.device, []).append(result)
        for device_id, results in by_device.items():
            runs.append(_run(file.meta, benchmark, devices.get(device_id or 0), results, path))
    if not runs:
        raise DocumentError("no benchmark in it has a state", path="$.benchmarks")
    return tuple(runs)


def _size_axes(states: Sequence[_State], path: str) -> frozenset[str]:
    """The axes that hold sizes: whole numbers of at least 1 in every state. Errors: DocumentError where axes differ by state."""
    size_axes: frozenset[str] | None = None
    first: list[str] = []
    for s, state in enumerate(states):
        names = [v.name for v in state.axis_values or ()]
        if len(set(names)) < len(names) or (size_axes is not None and names != first):
            raise DocumentError("its axes are not those of the first state", path=f"{path}.states[{s}].axis_values")
        sizes = frozenset(
            v.name
            for i, v in enumerate(state.axis_values or ())
            if v.type == "int64"
            and 1 <= foreign.whole(v.value, f"{path}.states[{s}].axis_values[{i}].value") <= MAX_SIZE
        )
        first, size_axes = names, sizes if size_axes is None else size_axes & sizes
    return size_axes or frozenset()


def _result(benchmark: _Benchmark, state: _State, size_axes: frozenset[str], ours: bool, path: str) -> Result:
    values = state.axis_values or ()
    sizes = {v.name: foreign.whole(v.value, path) for v in values if v.name in size_axes}
    constants = [f"{v.name}={UNKNOWN_VALUE if v.value is None else v.value}" for v in values if v.name not in size_axes]
    return Result(
        problem=foreign.problem(benchmark.name, sizes),
        variant=" ".join(constants) or benchmark.name,
        outcome=_outcome(state, ours, path),
        conditions=_conditions(state, path),
    )


UNKNOWN_VALUE = "?"


def _outcome(state: _State, ours: bool, path: str) -> Outcome:
    if state.is_skipped:
        return Failure(stage="unavailable", reasons=(Skipped(),), message=state.skip_reason or "")
    times: dict[str, Figure] = {}
    for time in _TIMES:
        where = _summary(state, time.tag, path)
        if where is None:
            continue
        time_s = foreign.seconds(foreign.number(where[1], where[0]), where[0])
        if time_s is not None:
            times[time.name] = _figure(state, time, time_s, ours, path)
    return Timing(other_times=times)


def _figure(state: _State, time: _Time, time_s: float, ours: bool, path: str) -> Figure:
    """A time with how it was taken. A file of ours says so in its description: of nvbench's own times what it was read with."""
    if not ours:
        return Figure(estimate=time_s, timer=time.timer, method=_method(state, time, time.how, path))
    description = next((str(s.description)[:400] for s in state.summaries or () if s.tag == time.tag), "")
    timer = next((timer for said, timer in _TIMERS.items() if f"by {said}" in description), None)
    if description.startswith(f"{TOOL}: "):
        return Figure(estimate=time_s, timer=timer, method=description)
    which = "mean of {n}" if description.startswith("Mean") else "estimate of"
    how = f"{which} isolated calls, caches flushed before each, by {timer or 'an unknown timer'}"
    return Figure(estimate=time_s, timer=timer, method=_method(state, time, how, path))


def summaries_of(name: str, figure: Figure) -> tuple[tuple[str, str, float | None], ...]:
    """Tag, hint and value of what nvbench said of a time that was read from it, the time itself the last; empty for another's.

    >>> method = "nvbench: mean of 499 isolated calls, L2 flushed before each, by CUDA events; standard deviation 0.5 %"
    >>> for one in summaries_of("GPU time, cold", Figure(estimate=1e-3, method=method)):
    ...     print(*one)
    nv/cold/sample_size sample_size 499
    nv/cold/time/gpu/stdev/relative percentage 0.005
    nv/cold/time/gpu/mean duration 0.001
    """
    time = next((t for t in _TIMES if t.name == name), None)
    if time is None or not (figure.method or "").startswith(f"{TOOL}: "):
        return ()
    summaries: list[tuple[str, str, float | None]] = []
    calls, noise = _CALLS.search(figure.method or ""), _NOISE.search(figure.method or "")
    if calls:
        summaries.append((time.count, "sample_size", int(calls[1])))
    if noise and time.noise:
        summaries.append((time.noise, "percentage", None if noise[1] == "unknown" else float(noise[1]) / 100))
    return (*summaries, (time.tag, "duration", figure.estimate))


def _method(state: _State, time: _Time, how: str, path: str) -> str:
    counted = _summary(state, time.count, path)
    calls = "an unknown number of" if counted is None else str(foreign.whole(counted[1], counted[0]))
    method = f"{TOOL}: {how.format(n=calls)}"
    noise = _summary(state, time.noise, path) if time.noise else None
    if noise is None:
        return method
    share = foreign.number(noise[1], noise[0])
    return f"{method}; standard deviation {'unknown' if share is None else f'{share * 100:.3g} %'}"


def _conditions(state: _State, path: str) -> Conditions | None:
    clock = _summary(state, "nv/cold/sm_clock_rate/mean", path)
    clock_hz = None if clock is None else foreign.number(clock[1], clock[0])
    return None if clock_hz is None else Conditions(sm_clock_hz=clock_hz)


def _summary(state: _State, tag: str, path: str) -> tuple[str, object] | None:
    """Path and value of a summary's ``value``."""
    for i, summary in enumerate(state.summaries or ()):
        if summary.tag == tag:
            for j, data in enumerate(summary.data or ()):
                if data.name == "value":
                    return f"{path}.summaries[{i}].data[{j}].value", data.value
    return None


def _run(
    meta: _Meta | None, benchmark: _Benchmark, device: _Device | None, results: Sequence[Result], path: str
) -> Run:
    about = device or _Device(id=0)
    name = about.name or ("unknown processor" if about.kind == "cpu" else "unknown GPU")
    command = f" Its command: {' '.join(meta.argv)[:400]}" if meta and meta.argv else ""
    return foreign.run_of(
        tool=TOOL,
        op=benchmark.name,
        title=f"{TOOL}: {benchmark.name} on {name}",
        note="Read from an nvbench file. It says neither number format nor cost nor whether results were right, and not when "
        f"it was measured.{command}",
        device=Device(
            id="cpu" if about.kind == "cpu" else f"cuda:{about.id}",
            kind="cpu" if about.kind == "cpu" else "cuda",
            name=name,
            uuid=f"{TOOL} {about.id} {name}",
            memory_bytes=about.global_memory_size,
            last_level_cache_bytes=about.l2_cache_size,
            multiprocessors=about.number_of_sms,
            compute_capability=_capability(about.sm_version),
        ),
        versions=_versions(meta),
        results=results,
        path=path,
    )


def _capability(sm_version: int | None) -> tuple[int, int] | None:
    """
    >>> _capability(900), _capability(860), _capability(None), _capability(0)
    ((9, 0), (8, 6), None, None)
    """
    return None if not sm_version else (sm_version // 100, sm_version % 100 // 10)


def _tool(meta: _Meta | None) -> str:
    version = meta.version.nvbench if meta and meta.version else None
    return (version.string or "") if version else ""


def _versions(meta: _Meta | None) -> Mapping[str, str]:
    version = meta.version.nvbench if meta and meta.version else None
    if version is None or version.string is None:
        return {}
    return {TOOL: f"{version.string} ({version.git_sha[:12]})" if version.git_sha else version.string}


IMPORT = Import(
    name="nvbench",
    label="nvbench JSON",
    recognises=lambda seen: {"devices", "benchmarks"} <= seen.keys,
    decode=decode,
)
