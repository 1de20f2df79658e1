"""Every chart of `kernelviz.plots`, found by its signature, and what it can be given of some runs."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, get_type_hints

import msgspec
import plotly.graph_objects as go
import sample_figures as figures
import sample_fusions as fusions
import sample_inspections as inspections
import sample_ladders as ladders
import sample_runs as samples
import sample_tunings as tunings
import sample_workloads as workloads
from sample_device import cpu_sample, gpu_sample

from kernelviz import plots
from kernelviz.core import OutputErrors, Sample, TensorFacts, Timeline
from kernelviz.core.kernel_times import RunTimes
from kernelviz.core.result import Figure
from kernelviz.core.run import Run
from kernelviz.core.workload import Timeline as WorkloadTimeline
from kernelviz.core.workload import WorkloadRun
from kernelviz.metrics.comparison import Comparison, Pair, compare
from kernelviz.metrics.fusion import FusionRow
from kernelviz.metrics.ladder import Ladder
from kernelviz.metrics.layer_times import PartTimes, VariantTime
from kernelviz.metrics.placement import Placed, placed
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.traffic_mix import PhaseTimes
from kernelviz.metrics.transfer import Transfer, transfer
from kernelviz.metrics.trend import Point, Trend, trend
from kernelviz.models.parts import LayerPart
from kernelviz.plots.frame import Runs


def charts() -> dict[str, Callable[..., go.Figure]]:
    """The public functions of every module of `kernelviz.plots` that are named ``<y>_by_<x>`` and return a figure."""
    found: dict[str, Callable[..., go.Figure]] = {}
    for module in pkgutil.iter_modules(plots.__path__, "kernelviz.plots."):
        for name, value in vars(importlib.import_module(module.name)).items():
            own = isinstance(value, FunctionType) and value.__module__ == module.name
            if own and not name.startswith("_") and "_by_" in name and get_type_hints(value).get("return") is go.Figure:
                found[name] = value
    return found


def _figures(runs: Sequence[Run]) -> dict[str, Figure]:
    return {
        r.variant: r.timing.device_cold_s for run in runs for r in run.results if r.timing and r.timing.device_cold_s
    }


def _comparison(runs: Sequence[Run]) -> object:
    """The first run against the second, or against itself measured again."""
    first = runs[0] if runs else samples.run([])
    return compare(first, runs[1] if len(runs) > 1 else msgspec.structs.replace(first, id=f"{first.id} again"))


def _trend(runs: Sequence[Run]) -> object:
    found = _figures(runs).values()
    return trend([Point(str(i), f"2026-10-{i + 1:02}T03:00", f.estimate, f.low, f.high) for i, f in enumerate(found)])


GIVEN: Mapping[object, Callable[[Sequence[Run]], Sequence[object]]] = {
    Runs: lambda runs: [tuple(runs)],
    Run: lambda runs: list(runs) or [samples.run([])],
    Sequence[Placed]: lambda runs: [
        tuple(c for r in runs for c in placed(r, r.id, r.environment.roofs, r.environment.roofs))
    ],
    Comparison: lambda runs: [_comparison(runs)],
    Pair: lambda runs: _comparison(runs).pairs,  # type: ignore[attr-defined]
    Mapping[str, Figure]: lambda runs: [_figures(runs)],
    Figure: lambda runs: list(_figures(runs).values()),
    Trend: lambda runs: [_trend(runs)],
    Sequence[RunTimes]: lambda runs: [
        tuple(
            RunTimes(
                run_id=r.id,
                title=r.title,
                op=r.plan.op,
                created_at=r.created_at,
                times_s=tuple((v, f.estimate) for v, f in _figures([r]).items()),
            )
            for r in runs
        )
    ],
    Transfer: lambda runs: [_transfer(bool(runs))],
    Sequence[FusionRow]: lambda runs: [fusions.rows(bool(runs))],
    Ladder: lambda runs: [ladders.ladder_of(run) for run in (*runs, *(() if runs else (samples.run([]),)))],
    Sequence[Sample]: lambda runs: [tuple(_sample(r, second) for r in runs[:1] for second in range(5))],
    Timeline | None: lambda runs: [figures.timeline(len(runs)) if runs else None],
    OutputErrors | None: lambda runs: [inspections.wrong_tile().errors[0] if runs else None],
    WorkloadRun: lambda runs: [_workload(len(runs))],
    WorkloadTimeline | None: lambda runs: [workloads.timeline() if runs else None],
    Sequence[PartTimes]: lambda runs: [tuple(_part(run) for run in runs)],
    Sequence[PhaseTimes]: lambda runs: [
        tuple(
            PhaseTimes(v, Interval(f.estimate, f.low, f.high), Interval(1e-3, None, None))
            for v, f in _figures(runs).items()
        )
    ],
    TensorFacts | None: lambda runs: [inspections.wrong_tile().tensors[0] if runs else None],
}
"""Values of each type that a chart may take, made of these runs; empty where there is none (the pair of no pairs)."""
NAMED: Mapping[str, object] = {
    "op": "rmsnorm",
    "variant": "torch_eager",
    "field": "device_cold_s",
    "gpu": True,
    "axis": "work",
    "share": 0.5,
}


def _workload(runs: int) -> WorkloadRun:
    """A run of a workload: without results, with failures only, or with both kinds of cases."""
    failing = () if runs > 2 else ("fast",) if runs > 1 else ("slow", "fast")
    return workloads.run(missing=() if runs else ("slow", "fast"), failing=failing)


def _part(run: Run) -> PartTimes:
    """A part of a layer with the times of a run: its first variant is eager, its last one is compiled."""
    times = tuple(VariantTime(variant, figure) for variant, figure in _figures([run]).items())
    names = [time.variant for time in times] or ["torch_eager"]
    return PartTimes(LayerPart(name=f"{run.id} <b>", role="glue"), None, times, names[0], names[-1])


def _transfer(there: bool) -> Transfer:
    made, runs = tunings.shapes()
    return transfer(made if there else (), lambda problem: [r for r in runs.values() if r.plan.problems[0] == problem])


def _sample(run: Run, second: int) -> object:
    return cpu_sample(second) if run.environment.device.kind == "cpu" else gpu_sample(second)


def drawn(chart: Callable[..., go.Figure], runs: Sequence[Run]) -> list[go.Figure]:
    """The chart with each value that its parameters can be given of these runs; further parameters keep their defaults.

    Errors: KeyError for a parameter of a type that nothing is known of here: add it to GIVEN.
    """
    hints = get_type_hints(chart)
    required = [p for p in inspect.signature(chart).parameters.values() if p.default is inspect.Parameter.empty]
    choices: list[dict[str, Any]] = [{}]
    for parameter in required:
        values = [NAMED[parameter.name]] if parameter.name in NAMED else GIVEN[hints[parameter.name]](runs)
        some = values[:: max(1, len(values) // 4)]
        choices = [{**chosen, parameter.name: value} for chosen in choices for value in some]
    return [chart(**chosen) for chosen in choices]
