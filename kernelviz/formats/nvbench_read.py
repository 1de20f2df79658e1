"""Import of JSON of nvbench: one run for each benchmark on each device, one case for each state.

The format is that of https://github.com/NVIDIA/nvbench/blob/main/nvbench/json_printer.cu (version 1.0.0 of the format). Numbers
are text, a number that is not finite is null, and a skipped state has no summaries.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

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
from kernelviz.formats.import_format import MAX_RUNS, Import, check_count
from kernelviz.formats.validation import MAX_CASES, MAX_SIZE

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
    """The kind of the device in a file written by kernelviz. nvbench itself only has GPUs."""


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


class _CountedBenchmark(Struct, frozen=True, kw_only=True):
    states: tuple[msgspec.Raw, ...] | None


class _Counted(Struct, frozen=True, kw_only=True):
    """The same file; decoding it so is quick and takes little memory."""

    benchmarks: tuple[_CountedBenchmark, ...]


class _Read(NamedTuple):
    """The value of a summary, its path in the file, and the description of the summary."""

    value: object
    path: str
    description: str


_Summaries = dict[str, _Read]
"""The values of a state's summaries by tag."""


@dataclass(frozen=True, slots=True)
class _Time:
    """A time of nvbench: the tag of its summary, its name in kernelviz, how it was measured, and its timer."""

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
"""The beginning of the version of nvbench in a file that kernelviz wrote."""
_TIMERS: dict[str, Timer] = {
    "CUDA events": "events",
    "the host clock": "host",
    "cupti": "cupti",
    "kineto": "kineto",
    "events": "events",
    "host": "host",
}
"""Timers by their names in descriptions."""
_CALLS = re.compile(r" of (\d{1,15}) ")
_NOISE = re.compile(r"; standard deviation (unknown|\d{1,15}(?:\.\d{1,15})?(?:e[+-]\d{1,2})?) ?%?$")


def decode(raw: bytes) -> tuple[Run, ...]:
    """The runs of a file of nvbench. Errors: DocumentError with the path of the field."""
    counted = document.from_json(raw, _Counted).benchmarks
    check_count(len(counted), MAX_RUNS, "benchmarks, of which each is a run", "$.benchmarks")
    check_count(sum(len(b.states or ()) for b in counted), MAX_CASES, "states", "$.benchmarks")
    del counted
    file = document.from_json(raw, _File)
    devices = {d.id: d for d in file.devices or ()}
    ours = (_tool(file.meta).string or "").startswith(OURS)
    runs: list[Run] = []
    for b, benchmark in enumerate(file.benchmarks):
        path = f"$.benchmarks[{b}]"
        by_device: dict[int | None, dict[str, Result]] = {}
        sizes = _size_axes(benchmark.states or (), path)
        for s, state in enumerate(benchmark.states or ()):
            inside = f"{path}.states[{s}]"
            if devices and state.device not in devices:
                raise DocumentError(f"the file has no device {state.device}", path=f"{inside}.device")
            result = _result(benchmark, state, sizes, ours, inside)
            results = by_device.setdefault(state.device, {})
            if result.case.key in results:
                raise DocumentError("an earlier state has the same axis values", path=f"{inside}.axis_values")
            results[result.case.key] = result
        runs += [
            _run(file.meta, benchmark, devices.get(device_id or 0), tuple(results.values()), path)
            for device_id, results in by_device.items()
        ]
    if not runs:
        raise DocumentError("no benchmark in it has a state", path="$.benchmarks")
    return tuple(runs)


def _size_axes(states: Sequence[_State], path: str) -> frozenset[str]:
    """The axes that are sizes: whole numbers of at least 1 in every state. Errors: DocumentError if the axes of states differ."""
    first = [v.name for v in states[0].axis_values or ()] if states else []
    size_axes = frozenset(first)
    for s, state in enumerate(states):
        names = [v.name for v in state.axis_values or ()]
        if len(set(names)) < len(names) or names != first:
            raise DocumentError("its axes differ from those of the first state", path=f"{path}.states[{s}].axis_values")
        size_axes &= frozenset(
            v.name
            for i, v in enumerate(state.axis_values or ())
            if v.type == "int64"
            and 1 <= foreign.whole(v.value, f"{path}.states[{s}].axis_values[{i}].value") <= MAX_SIZE
        )
    return size_axes


def _result(benchmark: _Benchmark, state: _State, size_axes: frozenset[str], ours: bool, path: str) -> Result:
    axes, values = state.axis_values or (), _summaries(state, path)
    constants = [f"{v.name}={'?' if v.value is None else v.value}" for v in axes if v.name not in size_axes]
    outcome = _outcome(state, values, ours)
    clock_hz = _number(values.get("nv/cold/sm_clock_rate/mean"))
    return Result(
        problem=foreign.problem(
            benchmark.name, {v.name: foreign.whole(v.value, path) for v in axes if v.name in size_axes}
        ),
        variant=" ".join(constants) or benchmark.name,
        outcome=outcome,
        conditions=None if clock_hz is None else Conditions(sm_clock_hz=clock_hz),
    )


def _outcome(state: _State, values: _Summaries, ours: bool) -> Outcome:
    if state.is_skipped:
        return Failure(stage="unavailable", reasons=(Skipped(),), message=state.skip_reason or "")
    times = {}
    for time in _TIMES:
        summary = values.get(time.tag)
        time_s = None if summary is None else foreign.seconds(_number(summary), summary.path)
        if time_s is not None:
            times[time.name] = _figure(time, time_s, values, ours)
    return Timing(other_times=times)


def _figure(time: _Time, time_s: float, values: _Summaries, ours: bool) -> Figure:
    """A time with how it was measured. In a file that kernelviz wrote, the description of the summary says how."""
    if not ours:
        return Figure(estimate=time_s, timer=time.timer, method=_method(time, time.how, values))
    description = values[time.tag].description
    timer = next((timer for name, timer in _TIMERS.items() if f"by {name}" in description), None)
    if description.startswith(f"{TOOL}: "):
        return Figure(estimate=time_s, timer=timer, method=description)
    which = "mean of {n}" if description.startswith("Mean") else "estimate of"
    how = f"{which} isolated calls, caches flushed before each, by {timer or 'an unknown timer'}"
    return Figure(estimate=time_s, timer=timer, method=_method(time, how, values))


def summaries_of(name: str, figure: Figure) -> tuple[tuple[str, str, float | None], ...]:
    """The summaries of nvbench behind an imported time: tag, hint and value of each, the time itself last.

    Empty for a time that was not imported from nvbench.

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
    calls, noise = _CALLS.search(figure.method or ""), _NOISE.search(figure.method or "")
    share = float(noise[1]) / 100 if noise and noise[1] != "unknown" else None
    return (
        *([(time.count, "sample_size", int(calls[1]))] if calls else []),
        *([(time.noise, "percentage", share)] if noise and time.noise else []),
        (time.tag, "duration", figure.estimate),
    )


def _method(time: _Time, how: str, values: _Summaries) -> str:
    count = values.get(time.count)
    calls = "an unknown number of" if count is None else str(foreign.whole(count.value, count.path))
    noise = values.get(time.noise) if time.noise else None
    if noise is None:
        return f"{TOOL}: {how.format(n=calls)}"
    share = _number(noise)
    return f"{TOOL}: {how.format(n=calls)}; standard deviation {'unknown' if share is None else f'{share * 100:.3g} %'}"


def _summaries(state: _State, path: str) -> _Summaries:
    """The first ``value`` of each tag."""
    values: _Summaries = {}
    for i, summary in enumerate(state.summaries or ()):
        for j, data in enumerate(summary.data or ()):
            if data.name == "value":
                where = f"{path}.summaries[{i}].data[{j}].value"
                values.setdefault(summary.tag, _Read(data.value, where, str(summary.description)[:400]))
    return values


def _number(summary: _Read | None) -> float | None:
    return None if summary is None else foreign.number(summary.value, summary.path)


def _run(
    meta: _Meta | None, benchmark: _Benchmark, device: _Device | None, results: Sequence[Result], path: str
) -> Run:
    about, tool = device or _Device(id=0), _tool(meta)
    name = about.name or ("unknown processor" if about.kind == "cpu" else "unknown GPU")
    command = f" Its command: {' '.join(meta.argv)[:400]}" if meta and meta.argv else ""
    return foreign.run_of(
        tool=TOOL,
        op=benchmark.name,
        title=f"{TOOL}: {benchmark.name} on {name}",
        note="Imported from a file of nvbench. The file does not contain the number format, the cost, the correctness of the "
        f"results or the date of the measurement.{command}",
        device=Device(
            id="cpu" if about.kind == "cpu" else f"cuda:{about.id}",
            kind="cpu" if about.kind == "cpu" else "cuda",
            name=name,
            uuid=f"{TOOL} {about.id} {name}",
            memory_bytes=about.global_memory_size,
            last_level_cache_bytes=about.l2_cache_size,
            multiprocessors=about.number_of_sms,
            compute_capability=divmod(about.sm_version // 10, 10) if about.sm_version else None,
        ),
        versions={}
        if tool.string is None
        else {TOOL: f"{tool.string} ({tool.git_sha[:12]})" if tool.git_sha else tool.string},
        results=results,
        path=path,
    )


def _tool(meta: _Meta | None) -> _Version:
    return (meta.version.nvbench if meta and meta.version else None) or _Version()


IMPORT = Import(
    name="nvbench",
    label="nvbench JSON",
    recognises=lambda seen: {"devices", "benchmarks"} <= seen.keys,
    decode=decode,
)
