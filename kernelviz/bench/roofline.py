"""Use case: place stored runs on the roofline: which runs, which roofs, which level of memory. For page, CLI and Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, Level, Roof, Run, UnknownRun, check_name
from kernelviz.formats import shipped_runs
from kernelviz.hardware.datasheet import ceilings
from kernelviz.metrics.compute_ceilings import CEILINGS, ceiling_of
from kernelviz.metrics.counters import call_counters
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.placement import Placed, placed
from kernelviz.text import describe_evidence, describe_missing, describe_quality, format_roof_name

RoofSource = Literal["measured", "datasheet"]
SOURCES: tuple[RoofSource, ...] = get_args(RoofSource)
LEVELS: tuple[Level, ...] = get_args(Level)
HEADLINES: dict[Level, Headline] = {"dram": "cold", "l2": "warm"}
"""The time that belongs to a level: after a flush the data come from memory; without a flush from the L2, if they fit."""
DEFAULT_RUNS = ("h200-matmul", "h200-rmsnorm", "h200-add")
"""The runs that a machine without own runs shows. They reach the compute roof, the memory roof, and neither."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The correct timed cases of some runs, the number of other cases, and what could not be used.

    `untimed`: number of cases without a correct time of that level. `unroofed`: names of devices without such roofs.
    """

    cases: tuple[Placed, ...]
    untimed: int
    unroofed: tuple[str, ...]


def offered(bench: Bench, chosen: Sequence[str] = ()) -> dict[str, RunSummary]:
    """Runs to choose from, by id: the chosen ones, the newest here, and those that came with the package. Unknown ids are left
    out; `unknown` lists them."""
    runs = {run.id: run for run in (*bench.runs(), *bench.history.shipped()) if run.done}
    for run_id in chosen:
        if run_id not in runs and (summary := _summary(bench, run_id)) is not None:
            runs[run_id] = summary
    return runs


def unknown(bench: Bench, chosen: Sequence[str]) -> tuple[str, ...]:
    """The ids under which no run can be opened here, because they are unknown or deleted."""
    return tuple(run_id for run_id in chosen if _summary(bench, run_id) is None)


def default_runs(bench: Bench) -> tuple[str, ...]:
    """The newest stored run that has results, otherwise some that came with the package."""
    own = next((run.id for run in bench.runs(8) if run.done > run.failed), None)
    return (own,) if own is not None else tuple(r.id for r in bench.history.shipped() if r.id in DEFAULT_RUNS)


def place(
    bench: Bench,
    run_ids: Sequence[str],
    *,
    level: str = "dram",
    source: str = "measured",
    precision: str | None = None,
    variant: str | None = None,
) -> Placement:
    """Every correct timed case of the runs, in the order of `run_ids` and their plans.

    `level`: ``dram`` takes the cold times, ``l2`` the warm ones. `source`: the roofs of the run's own machine and time, or the
    data sheet of its GPU. `precision`, `variant`: only cases of that one. Errors: UnknownRun; UnknownName for the rest.
    """
    check_name("level of memory", level, LEVELS)
    check_name("source of roofs", source, SOURCES)
    headline = HEADLINES["l2" if level == "l2" else "dram"]
    cases: list[Placed] = []
    untimed, unroofed = 0, []
    for run_id in dict.fromkeys(run_ids):
        summary = bench.history.openable(run_id)
        make = _placed.__wrapped__ if summary.status in LIVING else _placed
        placed_cases, device, roofed = make(bench, summary, _roofs_now(bench, summary), source, headline)
        cases += placed_cases
        untimed += summary.done - len(placed_cases)
        unroofed += [] if roofed else [device]
    if precision is not None:
        check_name("precision", precision, [c.problem.precision for c in cases])
        cases = [c for c in cases if c.problem.precision == precision]
    if variant is not None:
        check_name("variant", variant, [c.variant for c in cases])
        cases = [c for c in cases if c.variant == variant]
    return Placement(tuple(cases), max(untimed, 0), tuple(dict.fromkeys(unroofed)))


def records(placement: Placement) -> list[dict[str, object]]:
    """One record for each case in the SI base units that the names state. Unknown is None. For JSON and data frames."""
    return [
        {
            "run": c.run_id,
            "device": c.device,
            "op": c.problem.op,
            **c.problem.sizes,
            "dtype": c.problem.dtype,
            "precision": c.problem.precision,
            "variant": c.variant,
            "time_s": c.time_s,
            "time_low_s": c.figure.low,
            "time_high_s": c.figure.high,
            "intensity_flop_per_byte": c.intensity,
            "rate_flop_per_s": c.rate_flop_per_s,
            "bandwidth_bytes_per_s": c.bandwidth_bytes_per_s,
            "roof": None if c.light is None else format_roof_name(c.light.roof),
            "speed_of_light_s": None if c.light is None else c.light.time_s,
            "share_fraction": c.share,
            **_shares_of_ceilings(c),
            "above_roof": None if c.above_roof is None else c.above_roof.kind,
            "limiter": c.limiter.kind,
            "evidence": [str(describe_evidence(fact)) for fact in c.limiter.evidence],
            "missing": [str(describe_missing(fact)) for fact in c.limiter.missing],
            "dram_bytes": None if (call := call_counters(c.counters)) is None else call.dram_bytes,
            "dram_over_least": c.traffic_ratio,
            "profile_command": None if c.commands is None else c.commands.ncu,
            "nsys_command": None if c.commands is None else c.commands.nsys,
            "trust": str(describe_quality(c.quality)),
        }
        for c in placement.cases
    ]


def _shares_of_ceilings(case: Placed) -> dict[str, float | None]:
    """The share of each ceiling of a problem of arithmetic, and the SM clock that was measured in the calls."""
    known = {kind: ceiling_of(case.ceilings, kind) for kind in CEILINGS}
    issue = known["issue_rate"]
    shares = {f"{kind}_fraction": None if c is None else c.share_fraction for kind, c in known.items()}
    return {**shares, "mean_clock_hz": None if issue is None else issue.clock_hz}


def _summary(bench: Bench, run_id: str) -> RunSummary | None:
    """The summary of a run. None if it is not here or was deleted."""
    try:
        return bench.history.openable(run_id)
    except UnknownRun:
        return None


def _roofs_now(bench: Bench, summary: RunSummary) -> tuple[Roof, ...]:
    """The present roofs of a local device with the name of the run's device, for a run that has no roofs of its own."""
    local = next((d for d in bench.devices() if d.name == summary.device), None)
    return () if local is None or summary.shipped else bench.roofs(local.id)


# Reading a run of a hundred cases takes 50 ms and placing it 10; a page asks again at each redraw. The cached
# values hold no samples. A changed summary (new results, another title) and new roofs are other keys.
@lru_cache(maxsize=64)
def _placed(
    bench: Bench, summary: RunSummary, _roofs: tuple[Roof, ...], source: RoofSource, headline: Headline
) -> tuple[tuple[Placed, ...], str, bool]:
    run: Run = bench.load(summary.id)
    device = run.environment.device.name
    measured = bench.roofs_of(run)
    sheet = ceilings(device)
    against = measured if source == "measured" else sheet
    cases = placed(run, summary.name, with_empty_kernel(measured, device), against, headline, sheet)
    return cases, device, bool(against)


def with_empty_kernel(roofs: Sequence[Roof], model: str) -> tuple[Roof, ...]:
    """The roofs, completed by the time of an empty kernel on another GPU of the model if they have none."""
    known = any(r.what == "empty_kernel" for r in roofs)
    other = None if known or not roofs else shipped_runs.empty_kernel_of(model)
    return (*roofs, *(() if other is None else (other,)))
