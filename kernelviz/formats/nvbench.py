"""Export of a run as JSON of nvbench, which nvbench's scripts (``nvbench_compare.py``) can read.

The op is a benchmark and each case is a state. A quantity that nvbench also has gets nvbench's tag: the mean and the relative
standard deviation of isolated device times with flushed caches. All others have tags that start with ``kernelviz/``. As in
nvbench's own files, numbers are text and unknown values are null.
"""

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

import msgspec

import kernelviz
from kernelviz.core import Device, Failure, Figure, Result, Run
from kernelviz.formats.export_format import Export
from kernelviz.formats.nvbench_read import OURS, summaries_of
from kernelviz.metrics.rows import in_plan_order
from kernelviz.text import describe_failure
from kernelviz.text.times import FIGURES

Values = dict[str, Any]
_CLOCK = "nv/cold/sm_clock_rate/mean"
_FILE_VERSION = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}


def encode(run: Run) -> bytes:
    """The run in UTF-8, in the format of nvbench's option ``--json``."""
    results = in_plan_order(run)
    cases = _axis_values(results)
    axes = [name for name, _ in cases[0]] if cases else ["variant", "dtype"]
    benchmark = {
        "name": run.plan.op,
        "index": 0,
        "min_samples": 1,
        "skip_time": -1.0,
        "timeout": -1.0,
        "devices": [0],
        "axes": [_axis(name, [case[i][1] for case in cases]) for i, name in enumerate(axes)],
        # As JSON one by one, because a run of 100,000 cases takes gigabytes as dictionaries.
        "states": [msgspec.Raw(msgspec.json.encode(_state(r, case))) for r, case in zip(results, cases, strict=True)],
    }
    version = {"json": _FILE_VERSION, "nvbench": {"string": f"{OURS} {kernelviz.__version__}"}}
    meta = {"argv": ["kernelviz", "export", run.id, "--to", "nvbench"], "version": version}
    root = {"meta": meta, "devices": [_device(run.environment.device)], "benchmarks": [benchmark]}
    return msgspec.json.format(msgspec.json.encode(root))


def _axis_values(results: Sequence[Result]) -> list[list[tuple[str, Any]]]:
    """Name and value of each axis of each result: sizes, variant, number format, and each other property that is unusual in any
    result. An axis of another tool's file may be called as one of these properties, so the names need not differ."""
    usual = {"compute": None, "direction": "forward", "data": "normal"}
    unusual = [n for n, u in usual.items() if any(getattr(r.problem, n) not in (None, u) for r in results)]
    return [
        [
            *r.problem.sizes.items(),
            ("variant", r.variant),
            ("dtype", r.problem.dtype),
            *((name, getattr(r.problem, name) or "") for name in unusual),
        ]
        for r in results
    ]


def _type(value: object) -> str:
    return "int64" if isinstance(value, int) else "string"


def _axis(name: str, values: Sequence[object]) -> Values:
    return {
        "name": name,
        "type": _type(values[0]) if values else "string",
        "flags": "",
        "values": [{"input_string": str(v), "description": "", "value": v} for v in dict.fromkeys(values)],
    }


def _state(result: Result, case: Sequence[tuple[str, Any]]) -> Values:
    values = [{"name": name, "type": _type(value), "value": str(value)} for name, value in case]
    failure = result.outcome if isinstance(result.outcome, Failure) else None
    state: Values = {
        "name": " ".join(["Device=0", *(f"{name}={value}" for name, value in case)]),
        "min_samples": 1,
        "skip_time": -1.0,
        "timeout": -1.0,
        "device": 0,
        "type_config_index": 0,
        "axis_values": values,
        "summaries": _summaries(result) if failure is None else None,
        "is_skipped": failure is not None,
    }
    return state if failure is None else state | {"skip_reason": f"{failure.stage}: {describe_failure(failure)}"}


def _summaries(result: Result) -> list[Values]:
    timing = result.timing
    if timing is None:
        return []
    summaries = _cold(timing.device_cold_s, result) if timing.device_cold_s is not None else []
    own = timing.figures
    summaries += [
        _summary(
            f"kernelviz/{f.field.removesuffix('_s')}/median", f.name, f.question, "duration", own[f.field].estimate
        )
        for f in FIGURES
        if f.field in own
    ]
    tags = {summary["tag"] for summary in summaries}
    for name, figure in timing.other_times.items():
        parts = summaries_of(name, figure) or ((f"kernelviz/other/{name}", "duration", figure.estimate),)
        # Two times of the same calls share their number of samples, which is written once.
        summaries += [
            _summary(tag, name, figure.method or "", hint, value) for tag, hint, value in parts if tag not in tags
        ]
        tags |= {tag for tag, _, _ in parts}
    clock_hz = result.conditions.sm_clock_hz if result.conditions else None
    if "nv/cold/time/gpu/mean" in tags and clock_hz and _CLOCK not in tags:
        summaries.append(_summary(_CLOCK, "Clock Rate", "Mean SM clock rate", "frequency", clock_hz))
    return summaries


def _cold(figure: Figure, result: Result) -> list[Values]:
    """nvbench's summaries of isolated calls. Without samples, the estimate is used as the mean.

    The noise is unknown without samples, and where only the mean of each block is kept.
    """
    samples = figure.samples or ()
    middle = fmean(samples) if samples else figure.estimate
    noise = stdev(samples) / middle if len(samples) > 1 and not figure.by_block else None
    mean = "Mean of the block means" if figure.by_block else "Mean"
    what = mean if samples else "Estimate, since samples are unknown,"
    how = f"{what} of isolated calls by {figure.timer or 'an unknown timer'}, caches flushed before each"
    clocks = [b.clock_hz for b in figure.blocks or () if b.clock_hz]
    moved_bytes = result.cost.moved_bytes if result.cost is not None else 0
    rows: list[tuple[str, str, str, str, float | None]] = [
        ("nv/cold/sample_size", "Samples", "Number of isolated calls", "sample_size", figure.sample_count or 0),
        ("nv/cold/time/gpu/mean", "GPU Time", how, "duration", middle),
        (
            "nv/cold/time/gpu/stdev/relative",
            "Noise",
            "Relative standard deviation of isolated calls",
            "percentage",
            noise,
        ),
    ]
    if moved_bytes:
        rows.append(
            (
                "nv/cold/bw/global/bytes_per_second",
                "GlobalMem BW",
                "Minimal bytes of the problem over the mean time",
                "byte_rate",
                moved_bytes / middle,
            )
        )
    if clocks:
        rows.append((_CLOCK, "Clock Rate", "Mean SM clock rate", "frequency", fmean(clocks)))
    return [_summary(*row) for row in rows]


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


EXPORT = Export(
    name="nvbench",
    suffix=".nvbench.json",
    media_type="application/json",
    encode=encode,
    label="nvbench JSON, for its compare script",
)
