"""nvbench's JSON, so that its own scripts (``nvbench_compare.py``) read a run: a benchmark for the op, a state a case.

Tags are nvbench's where the quantity is the same: the mean and the relative standard deviation of isolated device times with
caches flushed. What nvbench has no tag for stands under ``kernelviz/``. As there, numbers are texts, and what is unknown is null.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any

import msgspec

import kernelviz
from kernelviz.core import Device, Failure, Figure, Problem, Result, Run
from kernelviz.formats.export_format import Export
from kernelviz.formats.nvbench_read import OURS, summaries_of
from kernelviz.metrics.rows import in_plan_order
from kernelviz.text.failures import describe_failure
from kernelviz.text.times import FIGURES

Values = dict[str, Any]
_CLOCK = "nv/cold/sm_clock_rate/mean"
_FILE_VERSION = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}


def encode(run: Run) -> bytes:
    """UTF-8, as nvbench's ``--json``."""
    results = in_plan_order(run)
    axes = _axes([r.problem for r in results])
    benchmark = {
        "name": run.plan.op,
        "index": 0,
        "min_samples": 1,
        "skip_time": -1.0,
        "timeout": -1.0,
        "devices": [0],
        "axes": [_axis(name, kind, of, results) for name, kind, of in axes],
        "states": [_state(result, axes) for result in results],
    }
    version = {"json": _FILE_VERSION, "nvbench": {"string": f"{OURS} {kernelviz.__version__}"}}
    meta = {"argv": ["kernelviz", "export", run.id, "--to", "nvbench"], "version": version}
    root = {"meta": meta, "devices": [_device(run.environment.device)], "benchmarks": [benchmark]}
    return msgspec.json.format(msgspec.json.encode(root))


Axis = tuple[str, str, Callable[[Result], Any]]
"""Name, nvbench's type, and the value of a result."""


def _axes(problems: Sequence[Problem]) -> list[Axis]:
    """Sizes, variant and number format, and whatever else of a problem is not as usual somewhere."""
    sizes = problems[0].sizes if problems else {}

    def size(axis: str) -> Callable[[Result], Any]:
        return lambda result: result.problem.sizes[axis]

    axes: list[Axis] = [(axis, "int64", size(axis)) for axis in sizes]
    axes += [("variant", "string", lambda r: r.variant), ("dtype", "string", lambda r: r.problem.dtype)]
    if any(p.compute is not None for p in problems):
        axes.append(("compute", "string", lambda r: r.problem.compute or ""))
    if any(p.direction not in (None, "forward") for p in problems):
        axes.append(("direction", "string", lambda r: r.problem.direction or ""))
    if any(p.data not in (None, "normal") for p in problems):
        axes.append(("data", "string", lambda r: r.problem.data or ""))
    return axes


def _axis(name: str, kind: str, of: Callable[[Result], Any], results: Sequence[Result]) -> Values:
    values = list(dict.fromkeys(of(r) for r in results))
    return {
        "name": name,
        "type": kind,
        "flags": "",
        "values": [{"input_string": str(v), "description": "", "value": v} for v in values],
    }


def _state(result: Result, axes: Sequence[Axis]) -> Values:
    values = [{"name": name, "type": kind, "value": str(of(result))} for name, kind, of in axes]
    skipped = isinstance(result.outcome, Failure)
    state: Values = {
        "name": " ".join(["Device=0", *(f"{v['name']}={v['value']}" for v in values)]),
        "min_samples": 1,
        "skip_time": -1.0,
        "timeout": -1.0,
        "device": 0,
        "type_config_index": 0,
        "axis_values": values,
        "summaries": None if skipped else _summaries(result),
        "is_skipped": skipped,
    }
    if isinstance(result.outcome, Failure):
        state["skip_reason"] = f"{result.outcome.stage}: {describe_failure(result.outcome)}"
    return state


def _summaries(result: Result) -> list[Values]:
    timing = result.timing
    if timing is None:
        return []
    summaries = _cold(timing.device_cold_s, result) if timing.device_cold_s is not None else []
    for kind in FIGURES:
        figure: Figure | None = getattr(timing, kind.field)
        if figure is not None:
            tag = f"kernelviz/{kind.field.removesuffix('_s')}/median"
            summaries.append(_summary(tag, kind.name, kind.question, "duration", figure.estimate))
    tags = {summary["tag"] for summary in summaries}
    for name, figure in timing.other_times.items():
        how = figure.method or ""
        own = summaries_of(name, figure) or ((f"kernelviz/other/{name}", "duration", figure.estimate),)
        for tag, hint, value in own:
            if tag not in tags:  # two times of the same calls have one number of them
                summaries.append(_summary(tag, name, how, hint, value))
                tags.add(tag)
    clock_hz = result.conditions.sm_clock_hz if result.conditions else None
    if "nv/cold/time/gpu/mean" in tags and clock_hz and _CLOCK not in tags:
        summaries.append(_summary(_CLOCK, "Clock Rate", "Mean SM clock rate", "frequency", clock_hz))
    return summaries


def _cold(figure: Figure, result: Result) -> list[Values]:
    """What nvbench says of isolated calls. Without samples the estimate stands for their mean, and the noise is unknown."""
    samples = figure.samples or ()
    middle = fmean(samples) if samples else figure.estimate
    noise = stdev(samples) / middle if len(samples) > 1 else None
    by = f"{figure.timer or 'an unknown timer'}, caches flushed before each"
    what = "Mean" if samples else "Estimate, since samples are unknown,"
    clocks = [b.clock_hz for b in figure.blocks or () if b.clock_hz]
    summaries = [_summary("nv/cold/sample_size", "Samples", "Number of isolated calls", "sample_size", len(samples))]
    summaries.append(
        _summary("nv/cold/time/gpu/mean", "GPU Time", f"{what} of isolated calls by {by}", "duration", middle)
    )
    summaries.append(
        _summary(
            "nv/cold/time/gpu/stdev/relative",
            "Noise",
            "Relative standard deviation of isolated calls",
            "percentage",
            noise,
        )
    )
    if result.cost is not None and result.cost.moved_bytes:
        rate = result.cost.moved_bytes / middle
        meaning = "Minimal bytes of the problem over the mean time"
        summaries.append(_summary("nv/cold/bw/global/bytes_per_second", "GlobalMem BW", meaning, "byte_rate", rate))
    if clocks:
        summaries.append(_summary(_CLOCK, "Clock Rate", "Mean SM clock rate", "frequency", fmean(clocks)))
    return summaries


def _summary(tag: str, name: str, description: str, hint: str, value: float | None) -> Values:
    kind = "int64" if isinstance(value, int) else "float64"
    data = [{"name": "value", "type": kind, "value": None if value is None else repr(value)}]
    return {"tag": tag, "name": name, "description": description, "hint": hint, "data": data}


def _device(device: Device) -> Values:
    major, minor = device.compute_capability or (0, 0)
    return {
        "id": 0,
        "name": device.name,
        "sm_version": major * 100 + minor * 10,
        "number_of_sms": device.multiprocessors,
        "global_memory_size": device.memory_bytes,
        "l2_cache_size": device.last_level_cache_bytes,
        "kind": device.kind,
    }


EXPORT = Export(name="nvbench", suffix=".nvbench.json", media_type="application/json", encode=encode)
