"""Use cases: compare two runs or two variants. For page, CLI and Python."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from kernelviz.bench import run_files
from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, BadField, DocumentError, Plan, Run, UnknownRun, check_name
from kernelviz.metrics import comparison as rule
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.equal_clock import equal_clock
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.no_common_case import OtherPart, why_no_common_case
from kernelviz.metrics.statistics import Interval
from kernelviz.text import describe_verdict_reason
from kernelviz.text.differences import differences

HEADLINES: tuple[Headline, ...] = get_args(Headline)
EXAMPLE = {"a": "h200-softmax", "b": "h200-softmax", "variant_a": "torch_eager", "variant_b": "triton_persistent"}
"""The comparison that a machine without two own runs shows: two variants of a run that comes with the package."""


def compare(
    a: Run, b: Run, *, variant_a: str | None = None, variant_b: str | None = None, l2: str = "cold"
) -> Comparison:
    """Compare two runs case by case, with A as the baseline; with variants, compare one of each, problem by problem.

    Errors: UnknownName for `l2` and for variants; BadField for a run with itself.
    """
    check_name("l2", l2, HEADLINES)
    return rule.compare(a, b, variant_a=variant_a, variant_b=variant_b, headline=cast(Headline, l2))


def compare_stored(
    bench: Bench, a: str, b: str, *, variant_a: str | None = None, variant_b: str | None = None, l2: str = "cold"
) -> Comparison:
    """`compare` for two runs by id. The result is cached until one of them changes. Errors: UnknownRun too, also for a deleted
    run."""
    first, second = map(bench.history.openable, (a, b))
    make = _compared.__wrapped__ if any(run.status in LIVING for run in (first, second)) else _compared
    return make(bench, first, second, variant_a, variant_b, l2)


def plan_of_common_cases(bench: Bench, compared: Comparison) -> Plan | None:
    """The plan that measures the problems of A with the variants of B on this machine, so that A or B has cases in common with
    the new run; with A's variants if B has other ones. None if there is a common case, if the ops differ, or if this machine
    cannot measure them."""
    reasons = why_no_common_case(compared)
    op = bench.ops().get(compared.a.plan.op)
    parts = [reason.what for reason in reasons if isinstance(reason, OtherPart)]
    if not reasons or "op" in parts or op is None or not compared.only_a:
        return None
    problems = tuple({r.problem.key: r.problem for r in compared.only_a}.values())
    if any(p.dtype not in op.dtypes or not op.has_axes_of(p.sizes) for p in problems):
        return None  # another tool measured A
    source = compared.a.plan if "variant" in parts else compared.b.plan
    wanted = source.variants if compared.variant_b is None else (compared.variant_b,)
    device = bench.default_device()
    usable = {o.variant.name for o in bench.offers(op.name, device) if o.lack is None}
    known = tuple(v for v in wanted if v in usable)
    if not known:
        return None
    baseline = source.baseline if source.baseline in known else known[0]
    return msgspec.structs.replace(
        source, problems=problems, variants=known, baseline=baseline, device=device, search=None
    )


def opened(bench: Bench, source: str) -> Run:
    """Load the run of a file in any format that can be read, or of an id. Errors: DocumentError (also for a file of several
    runs) and BadField for a file, both with its name; UnknownRun for an id."""
    path = Path(source)
    if path.is_file():
        try:
            return run_files.read_one(path)
        except DocumentError as error:
            raise DocumentError(f"{source}: {error}") from None
    if path.suffix or len(path.parts) != 1:
        raise BadField("file", source, describe_missing_file(path))
    try:
        return bench.load(source)
    except UnknownRun:
        if not path.exists():
            raise
        raise BadField("file", source, describe_missing_file(path)) from None


def describe_missing_file(path: Path) -> str:
    """The reason why no run can be read from there."""
    if not path.exists():
        return "there is no such file"
    return f"it is {'a folder' if path.is_dir() else 'no plain file'}; name a file with a run, or the id of one"


def variants(bench: Bench, run_id: str) -> tuple[str, ...]:
    """The variants of a stored run, in the order of its plan. Errors: UnknownRun."""
    return _variants(bench, bench.history.openable(run_id))


def counterpart(bench: Bench, run_id: str, known: Sequence[RunSummary]) -> str | None:
    """The run that a run is best compared with: the newest other run of its op that began before it, otherwise any other run of
    its op, with the runs that come with the package last."""
    own = bench.history.openable(run_id)
    candidates = [r for r in known if r.id != run_id and r.op == own.op and r.done > r.failed]
    candidates.sort(key=lambda r: (r.shipped, r.created_at > own.created_at))  # stable: the newest first in each
    return candidates[0].id if candidates else None


def newest_two(known: Sequence[RunSummary]) -> tuple[str, str] | None:
    """The newest two runs of one op that were measured or imported here, the older one first. None if there are none."""
    seen: dict[str, str] = {}
    for run in known:
        if run.shipped or run.done <= run.failed:
            continue
        if run.op in seen:
            return run.id, seen[run.op]
        seen[run.op] = run.id
    return None


def records(compared: Comparison) -> list[dict[str, Any]]:
    """One record for each pair, the largest slow-down first, in the SI base units that the names state. Unknown is None. For
    JSON and data frames."""
    return [_record(pair, compared) for pair in compared.pairs]


def _record(pair: Pair, compared: Comparison) -> dict[str, Any]:
    before, after = (figure_of(r.timing, compared.headline) for r in (pair.before, pair.after))
    clocks = equal_clock(pair, compared)
    ratio = pair.ratio or Interval(float("nan"), None, None)
    problem = pair.problem
    return {
        "op": problem.op,
        **problem.sizes,
        "dtype": problem.dtype,
        "compute": problem.compute,
        "direction": problem.direction,
        "data": problem.data,
        "variant_a": pair.before.variant,
        "variant_b": pair.after.variant,
        "verdict": pair.kind,
        "reason": str(describe_verdict_reason(pair.reason)),
        "ratio": None if pair.ratio is None else ratio.estimate,
        "ratio_low": ratio.low,
        "ratio_high": ratio.high,
        "floor_fraction": pair.floor,
        "time_a_s": before.estimate if before else None,
        "time_a_low_s": before.low if before else None,
        "time_a_high_s": before.high if before else None,
        "time_b_s": after.estimate if after else None,
        "time_b_low_s": after.low if after else None,
        "time_b_high_s": after.high if after else None,
        "broken": pair.broken,
        "shared_rounds": pair.shared,
        "ratio_at_equal_clock": clocks.ratio,
        "issue_rate_a_fraction": clocks.before.fraction if clocks.before else None,
        "issue_rate_b_fraction": clocks.after.fraction if clocks.after else None,
        "mean_clock_a_hz": clocks.before.clock_hz if clocks.before else None,
        "mean_clock_b_hz": clocks.after.clock_hz if clocks.after else None,
    }


def record(compared: Comparison) -> dict[str, Any]:
    """The whole comparison as plain values: the runs, the summary, what differs, one record for each pair, and the cases of one
    side only."""
    return {
        "a": _side(compared.a, compared.variant_a),
        "b": _side(compared.b, compared.variant_b),
        "l2": compared.headline,
        "summary": {
            **{verdict.replace(" ", "_"): count for verdict, count in compared.counts.items()},
            "broken": sum(p.broken for p in compared.pairs),
            "ratio_geometric_mean": compared.mean_ratio,
            "noise_fraction": compared.noise,
            "noise_cases": compared.noise_cases,
        },
        "differences": [
            {"of": d.of, "what": d.what, "a": d.before, "b": d.after, "stops_verdicts": d.stops}
            for d in differences(compared)
        ],
        "cases": records(compared),
        "only_a": [r.case.key for r in compared.only_a],
        "only_b": [r.case.key for r in compared.only_b],
    }


def _side(run: Run, variant: str | None) -> dict[str, Any]:
    here = run.environment
    return {
        "run": run.id,
        "title": run.title,
        "created_at": run.created_at,
        "device": here.device.name,
        "device_uuid": here.device.uuid,
        "variant": variant,
    }


@lru_cache(maxsize=64)
def _variants(bench: Bench, summary: RunSummary) -> tuple[str, ...]:
    return bench.load(summary.id).plan.variants


# Reading two runs of a hundred cases takes 0.1 s and comparing them 0.3, and a page asks again at each redraw. A cached
# comparison holds the samples of both runs (2 MB for each), which the overlay shows.
@lru_cache(maxsize=6)
def _compared(
    bench: Bench, a: RunSummary, b: RunSummary, variant_a: str | None, variant_b: str | None, l2: str
) -> Comparison:
    first = bench.load(a.id)
    return compare(first, first if a.id == b.id else bench.load(b.id), variant_a=variant_a, variant_b=variant_b, l2=l2)
