"""The only file that names internal modules of kernelviz: who moves or renames one edits its function here, nothing else.

Every function returns plain Python values under neutral names, so that stored facts do not change when a module, a class or an
attribute does. `first_of` tries several places, so one file can serve a checkout before a move and one after it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LEVELS = {"sound": "good", "noticed": "note", "doubtful": "suspect"}
"""Measurement quality: the names of 8fa93f3 and those that facts are stored under. Names that are not here stay."""
PARTS = {"caches": "cache", "correct": "correctness", "others": "other_processes", "repeated": "repeated_blocks"}
"""Kinds of parts of a measurement's quality, likewise."""
BACK_TO_BACK = "loop_s"


def first_of(*places: str) -> Any:
    """The first of ``module:name`` that exists. Errors: ImportError with all of them."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(places)} exists: write the new place into tests/characterisation/adapter.py")


def attribute(of: Any, *names: str) -> Any:
    """The first attribute of these names. Errors: AttributeError with all of them."""
    for name in names:
        if hasattr(of, name):
            return getattr(of, name)
    raise AttributeError(
        f"{type(of).__name__} has none of {', '.join(names)}: tests/characterisation/adapter.py names it"
    )


# Entry points


def main() -> Callable[[Sequence[str]], int]:
    """The command line, in this process: arguments in, exit code out."""
    found: Callable[[Sequence[str]], int] = first_of("kernelviz.cli:main")
    return found


def command_tree() -> Any:
    """The click command with all of its subcommands."""
    import typer.main

    return typer.main.get_command(first_of("kernelviz.cli.commands:app"))


def catalogue() -> Mapping[str, Any]:
    """All ops by name."""
    found: Mapping[str, Any] = first_of("kernelviz.ops:catalogue", "kernelviz.ops:catalog")()
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema of the native document."""
    found: dict[str, Any] = first_of("kernelviz.formats.schema:schema")()
    return found


def seal(document: bytes) -> str | None:
    """``unchanged``, ``changed`` or ``unsealed``; None for what is no document."""
    found: str | None = first_of("kernelviz.formats.integrity:sealed", "kernelviz.formats.seal:sealed")(document)
    return found


def ship(folder: Path) -> None:
    """Let the runs of that folder be those that come with the package: the ones of 8fa93f3, which were recorded again since.

    A checkout that still has them under another module keeps its own.
    """
    try:
        shipped_runs = importlib.import_module("kernelviz.formats.shipped_runs")
    except ImportError:
        return
    shipped_runs._FOLDER = folder  # type: ignore[attr-defined]


def shipped_run(name: str) -> Any:
    """A run that came with the package, by the id that lists show."""
    import kernelviz as kv

    return kv.load(name)


def shipped_timelines() -> list[Any]:
    """The timelines of selftests that came with the package."""
    return [
        made.timeline
        for made in first_of("kernelviz.formats.shipped_runs:selftests", "kernelviz.formats.shipped:selftests")()
    ]


@contextmanager
def bench_with(folder: Path, devices: Sequence[Any], *, impatient: bool = False) -> Iterator[Any]:
    """A bench whose store is `folder` and whose devices are those; the API and the command line use it meanwhile.

    `impatient`: what hangs is given up after 10 s.
    """
    use_cases = importlib.import_module("kernelviz.bench")
    store = first_of("kernelviz.store:Store").open(folder)
    limits = first_of("kernelviz.worker.limits:Limits")(step_s=10.0, bind_s=60.0) if impatient else None
    made = first_of("kernelviz.bench:Bench")(store, tuple(devices), limits=limits)
    before, use_cases.current = use_cases.current, lambda: made  # type: ignore[attr-defined]
    try:
        yield made
    finally:
        use_cases.current = before  # type: ignore[attr-defined]
        made.close()


# What is derived from a run


def rows(run: Any, l2: str) -> list[dict[str, Any]]:
    """Each case's row: what the page's table is made of."""
    made = first_of("kernelviz.metrics.rows:rows", "kernelviz.metrics.summary:rows")(run, run.environment.roofs, l2)
    return [
        {
            "case": row.result.case.key,
            "estimate_s": row.figure.estimate if row.figure else None,
            "wrong_s": row.wrong_figure.estimate if row.wrong_figure else None,
            "efficiency": row.efficiency,
            "verdict": attribute(row.verdict, "kind", "word") if row.verdict else None,
            "ratio": [row.verdict.ratio.estimate, row.verdict.ratio.low, row.verdict.ratio.high]
            if row.verdict and row.verdict.ratio
            else None,
            "floor": row.verdict.floor if row.verdict else None,
            "rounds": row.verdict.rounds if row.verdict else None,
            "speed_up": row.speed_up,
            "is_baseline": row.is_baseline,
        }
        for row in made
    ]


def summary(run: Any, l2: str) -> dict[str, Any] | None:
    """The answers above the charts; None where no case has a correct time."""
    table = first_of("kernelviz.metrics.rows:rows", "kernelviz.metrics.summary:rows")(run, run.environment.roofs, l2)
    found = first_of("kernelviz.metrics.summary:summary")(table, l2)
    if found is None:
        return None
    names = (
        "fastest", "alike", "problems", "covered", "speed_up", "speed_ups", "unclear", "efficiency",
        "best_efficiency", "efficiencies", "worst_efficiency", "worst_speed_up", "excluded",
    )  # fmt: skip
    best = getattr(found, "wins_of_best", None)  # until 8fa93f3 the summary had these counts itself
    counts = {"wins": best.won, "tied": best.tied} if best else {"wins": found.wins, "tied": found.tied}
    facts = {name: getattr(found, name) for name in names} | counts
    return facts | {"worst": found.worst.key if found.worst else None}


def quality(result: Any, l2: str, clock: str | None) -> dict[str, Any] | None:
    """Measurement quality: its level, and the level of each part by its kind; None without a time."""
    found = first_of(
        "kernelviz.metrics.quality:quality", "kernelviz.metrics.quality:trust", "kernelviz.metrics.trust:trust"
    )(result, l2, clock)
    if found is None:
        return None
    parts: dict[str, list[str]] = {}
    for part in found.parts:
        kind = attribute(part, "kind", "name")
        parts.setdefault(PARTS.get(kind, kind), []).append(LEVELS.get(part.level, part.level))
    return {"level": LEVELS.get(found.level, found.level), "parts": parts}


def limiter(result: Any, run: Any, l2: str) -> dict[str, Any]:
    """What limits the case, how many facts that rests on, and how many would have been needed to say more."""
    found = first_of("kernelviz.metrics.limiter:limiter")(result, run.environment.device, run.environment.roofs, l2)
    return {
        "limiter": attribute(found, "kind", "word"),
        "evidence": len(found.evidence),
        "missing": len(found.missing),
    }


def occupancies(result: Any, run: Any) -> list[list[float | None] | None]:
    """Of each kernel: theoretical occupancy, blocks of an SM, waves."""
    made = [
        first_of("kernelviz.metrics.occupancy:occupancy")(kernel, run.environment.device) for kernel in result.kernels
    ]
    return [None if one is None else [one.fraction, one.blocks, one.waves] for one in made]


def spreads(result: Any) -> dict[str, Any]:
    """By figure: how its samples lie (quantiles, clocks, drift, lag-1 correlation)."""
    spread = first_of("kernelviz.metrics.samples:spread")
    found = {}
    for field in ("device_cold_s", "device_warm_s", "call_eager_s", BACK_TO_BACK):
        one = spread(result, field)
        if one is None:
            continue
        names = ("p50_s", "p90_s", "p99_s", "low_clock_hz", "high_clock_hz", "slow", "again", "retried", "lag_1")
        found[field] = {name: getattr(one, name) for name in names}
        found[field] |= {f"drift_{n}": getattr(one.drift, n) for n in ("blocks", "tau", "p", "change")}
    return found


def placed(bench: Any, run_ids: Sequence[str], l2: str) -> Any:
    """The cases of runs as the roofline draws them; `placed_cases` of what comes back."""
    level = "dram" if l2 == "cold" else "l2"
    return first_of("kernelviz.bench.roofline:place")(bench, run_ids, level=level).cases


def decoded_inspection(text: str) -> Any:
    """An inspection that is stored as JSON."""
    import msgspec

    return msgspec.json.decode(text, type=first_of("kernelviz.core.inspection:Inspection"))


def _samples(records: Sequence[Mapping[str, Any]]) -> Any:
    import msgspec

    return tuple(
        msgspec.convert(one, type=first_of("kernelviz.core.device_sample:Sample", "kernelviz.core.sample:Sample"))
        for one in records
    )


def reports_by_time(records: Sequence[Mapping[str, Any]], *, gpu: bool) -> Any:
    """The chart of what a device reported."""
    return first_of("kernelviz.plots.monitor:reports_by_time")(_samples(records), gpu=gpu)


def times_by_run(bench: Any, device: str) -> Any:
    """The chart of the times of a device's newest runs."""
    return first_of("kernelviz.plots.monitor:times_by_run")(bench.machine.run_times(device))


def alerts(records: Sequence[Mapping[str, Any]], busy_fraction: float, growth_bytes: float) -> list[Any]:
    """What reports say against two thresholds: utilisation, growth, and whether each is an alert."""
    thresholds = first_of("kernelviz.metrics.alerts:Thresholds")(busy_fraction, growth_bytes)
    judge = first_of("kernelviz.metrics.alerts:alert_state", "kernelviz.metrics.alerts:standing")
    found = judge(_samples(records), thresholds)
    return [found.busy_fraction, found.growth_bytes, found.too_idle, found.growing]


def tuning_report(bench: Any, run_id: str) -> Any:
    """What a tuning found, as the API gives it."""
    tuned = first_of("kernelviz.api:Tuned")
    return getattr(tuned, "of", tuned)(bench.tunings.report(run_id))


# Addresses and what people type


def link_read(params: Mapping[str, str], bench: Any) -> dict[str, Any]:
    """What a page's address asks for, written back in full, and which of its fields could not be used."""
    read = first_of("kernelviz.ui.bench.link:read", "kernelviz.ui.link:read")
    write = first_of("kernelviz.ui.bench.link:write", "kernelviz.ui.link:write")
    found = read(params, bench)
    return {"written": write(found.form, found.run_id), "complaints": [c.field for c in found.complaints]}


def sizes(axes: Sequence[str], texts: Mapping[str, str]) -> list[dict[str, int]]:
    """The sizes that texts such as ``2^10..2^14`` stand for. Errors: those of kernelviz."""
    return [dict(one) for one in first_of("kernelviz.core.sizes:expand")(axes, texts)]


def error_facts(error: BaseException) -> dict[str, Any]:
    """An error as a type with data, without its sentence."""
    names = ("what", "name", "nearest", "field", "path", "run_id", "needed_bytes")
    found = {name: getattr(error, name) for name in names if hasattr(error, name)}
    for name in ("what", "field"):  # names of fields, as "size n", not sentences
        if name in found:
            found[name] = found[name].replace(" ", "_")
    known = getattr(error, "known", None)
    return {"error": type(error).__name__} | found | ({"known": len(known)} if known is not None else {})


# The catalogue


def variant_facts(variant: Any) -> dict[str, Any]:
    """What a variant declares; neither its caption nor the digest of its source."""
    names = ("name", "backend", "needs", "dtypes", "computes", "directions", "mutates", "targets")
    return {name: getattr(variant, name) for name in names} | {
        "late": attribute(variant, "slow_compile", "late"),
        "space": {key: list(values) for key, values in variant.space.items()},
        "admits": variant.admits is not None,
        "backward": variant.backward is not None,
    }


# The instrument


def here() -> tuple[Any, ...]:
    """The devices of this machine."""
    found: tuple[Any, ...] = first_of("kernelviz.hardware.discovery:discover")()
    return found


def stage_of_error(error: Exception, *, calling: bool) -> str:
    """The stage of the failure that an exception of a variant means."""
    judge = first_of("kernelviz.measure.session.failures:failure", "kernelviz.measure.faults:failure")
    # Today the exception alone decides, not whether the bind or a call raised it.
    options = {"calling": calling} if "calling" in inspect.signature(judge).parameters else {}
    found: str = judge(error, **options).stage
    return found


def stage_of_time(
    op: str, sizes: Mapping[str, int], dtype: str, time_s: float, device: Any, clock_hz: float | None
) -> str | None:
    """The stage of a right case with that cold time: ``impossible`` where the data sheet does not allow it, else None."""
    from types import SimpleNamespace

    problem_of, method, figure, timing, accuracy = (
        first_of("kernelviz.core.problem:Problem"),
        first_of("kernelviz.core.problem:Method"),
        first_of("kernelviz.core.result:Figure"),
        first_of("kernelviz.core.result:Timing"),
        first_of("kernelviz.core.result:Accuracy"),
    )
    problem = problem_of(op=op, sizes=dict(sizes), dtype=dtype)
    state = SimpleNamespace(device=device, timer=None, watch=lambda: SimpleNamespace(look=lambda: False))
    task = first_of(
        "kernelviz.measure.session.problem_measurement:ProblemMeasurement",
        "kernelviz.measure.session.problem_measurement:Task",
        "kernelviz.measure.task:Task",
    )(state, catalogue()[op], problem, "torch_eager", method(), lambda _: None, lambda: False)
    right = accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.0)
    judged = attribute(task, "judge", "_judged")(timing(device_cold_s=figure(estimate=time_s)), right, clock_hz)
    return getattr(judged, "stage", None)
