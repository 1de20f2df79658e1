"""What the types of a document cannot say, and what every reader relies on: quantities that can be, cases of the plan."""

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kernelviz.core import DocumentError, Failure, Figure, Plan, Problem, Result, Roof, Run, Timing

MAX_SIZE = 2**63 - 1
LEAST_S, MOST_S = 1e-12, 1e9
"""No kernel is faster than light across a chip, and nobody waits for thirty years."""
MAX_RATE = 1e24
MAX_COUNT = 2**100
MAX_CASES = 100_000
MAX_NAME = 2_000
"""Characters of an op, a variant, an axis, a dtype: C++ types in names are long, whole files are not names."""


def check(run: Run) -> None:
    """Errors: DocumentError with the path of the first field that cannot be."""
    _check_moment(run.created_at, "$.created_at")
    _check_plan(run.plan)
    for name in ("budget_s", "half_width", "ratio_half_width"):
        _between(getattr(run.method, name), 0.0, MOST_S, f"$.method.{name}")
    for i, roof in enumerate(run.environment.roofs):
        _check_roof(roof, f"$.environment.roofs[{i}]")
    problems = {p.key: p for p in run.plan.problems}
    seen: set[str] = set()
    for i, result in enumerate(run.results):
        path = f"$.results[{i}]"
        if problems.get(result.problem.key) != result.problem:
            raise DocumentError("this problem is not in the plan", path=f"{path}.problem")
        if result.variant not in run.plan.variants:
            raise DocumentError(f"variant {result.variant[:40]!r} is not in the plan", path=f"{path}.variant")
        if result.case.key in seen:
            raise DocumentError("this case has a result already", path=path)
        seen.add(result.case.key)
        _check_result(result, path)


def _check_moment(stamp: str, path: str) -> None:
    """Any text may stand there, since other tools write their own; a moment with a zone is one that UTC has a name for."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return
    if moment.tzinfo is None:
        return
    try:
        moment.astimezone(UTC)
    except OverflowError:
        said = (
            "is outside the years 1 to 9999 in UTC; write it as 2026-11-21T10:42:00+00:00, or leave it empty if unknown"
        )
        raise DocumentError(f"{stamp[:40]!r} {said}", path=path) from None


def _check_plan(plan: Plan) -> None:
    if not plan.problems:
        raise DocumentError("a plan has at least one problem", path="$.plan.problems")
    if not plan.variants:
        raise DocumentError("a plan has at least one variant", path="$.plan.variants")
    if len(plan.problems) * len(plan.variants) > MAX_CASES:
        raise DocumentError(f"it has more than {MAX_CASES} cases", path="$.plan")
    if len(set(plan.variants)) < len(plan.variants):
        raise DocumentError("a variant is named twice", path="$.plan.variants")
    for i, variant in enumerate(plan.variants):
        _check_name(variant, f"$.plan.variants[{i}]")
    if plan.baseline not in plan.variants:
        raise DocumentError(f"the baseline {plan.baseline[:40]!r} is none of the variants", path="$.plan.baseline")
    first = plan.problems[0]
    seen: set[str] = set()
    for i, problem in enumerate(plan.problems):
        path = f"$.plan.problems[{i}]"
        _check_sizes(problem, path)
        if problem.op != first.op or list(problem.sizes) != list(first.sizes):
            raise DocumentError("all problems of a plan have the op and the axes of its first one", path=path)
        if problem.key in seen:
            raise DocumentError("this problem is in the plan twice", path=path)
        seen.add(problem.key)


def _check_name(name: str, path: str) -> None:
    if len(name) > MAX_NAME:
        raise DocumentError(f"a name of {len(name)} characters; at most {MAX_NAME} are read", path=path)


def _check_sizes(problem: Problem, path: str) -> None:
    for name in (problem.op, problem.dtype, problem.compute or "", *problem.sizes):
        _check_name(name, path)
    for axis, size in problem.sizes.items():
        if not 1 <= size <= MAX_SIZE:
            raise DocumentError(f"{size} is no size", path=f"{path}.sizes.{axis[:40]}")


def _check_roof(roof: Roof, path: str) -> None:
    rates = {"fma": "rate_flop_per_s", "matmul": "rate_flop_per_s", "launch": "time_s"}
    has = rates.get(roof.name, "bandwidth_bytes_per_s")
    if getattr(roof, has) is None:
        raise DocumentError(f"a roof {roof.name!r} has a {'time' if has == 'time_s' else 'rate'}", path=path)
    for name in ("bandwidth_bytes_per_s", "rate_flop_per_s", "clock_hz", "moved_bytes"):
        value = getattr(roof, name)
        if value is not None:
            _between(value, 1.0, MAX_RATE, f"{path}.{name}")
    least, most = (LEAST_S, MOST_S) if has == "time_s" else (1.0, MAX_RATE)
    for name in ("low", "high"):
        value = getattr(roof, name)
        if value is not None:
            _between(value, least, most, f"{path}.{name}")
    if roof.time_s is not None:
        _between(roof.time_s, LEAST_S, MOST_S, f"{path}.time_s")


def _check_result(result: Result, path: str) -> None:
    if result.cost is not None:
        for name in ("work_flop", "read_bytes", "written_bytes"):
            _between(getattr(result.cost, name), 0, MAX_COUNT, f"{path}.cost.{name}")
    outcome = result.outcome
    timing = outcome.timing if isinstance(outcome, Failure) else outcome
    inside = f"{path}.outcome.timing" if isinstance(outcome, Failure) else f"{path}.outcome"
    for name, figure in _figures(timing):
        _check_figure(figure, f"{inside}.{name}")
    for i, kernel in enumerate(result.kernels):
        if kernel.duration_s is not None:
            _between(kernel.duration_s, 0.0, MOST_S, f"{path}.kernels[{i}].duration_s")
    for name in ("bind_s", "first_call_s", "check_s"):
        value = getattr(result.preparation, name, None)
        if value is not None:
            _between(value, 0.0, MOST_S, f"{path}.preparation.{name}")


def _figures(timing: Timing | None) -> Iterator[tuple[str, Figure]]:
    if timing is None:
        return
    yield from timing.figures.items()
    yield from ((f"other_times.{name[:40]}", figure) for name, figure in timing.other_times.items())


def _check_figure(figure: Figure, path: str) -> None:
    for name in ("estimate", "low", "high"):
        value = getattr(figure, name)
        if value is not None:
            _between(value, LEAST_S, MOST_S, f"{path}.{name}")
    if figure.samples and not _can_be(figure.samples):
        for i, sample in enumerate(figure.samples):
            _between(sample, LEAST_S, MOST_S, f"{path}.samples[{i}]")
    if figure.buffers is not None:
        _between(figure.buffers, 1, MAX_COUNT, f"{path}.places")
    if figure.blocks is None:
        return
    for i, block in enumerate(figure.blocks):
        if block.size < 1:
            raise DocumentError(f"a block of {block.size} samples cannot be", path=f"{path}.blocks[{i}].size")
        _between(block.started_s, -MAX_RATE, MAX_RATE, f"{path}.blocks[{i}].started_s")
        if block.clock_hz is not None:
            _between(block.clock_hz, 0.0, MAX_RATE, f"{path}.blocks[{i}].clock_hz")
    in_blocks, given = sum(b.size for b in figure.blocks), len(figure.samples or ())
    if in_blocks != given:
        raise DocumentError(f"its blocks hold {in_blocks} samples, there are {given}", path=f"{path}.blocks")


def _can_be(samples: Sequence[float]) -> bool:
    """Whether all of them are times that can be. One by one, nearly all of the time of checking a document went into this."""
    return min(samples) >= LEAST_S and max(samples) <= MOST_S and not math.isnan(sum(samples))


def _between(value: float, low: float, high: float, path: str) -> None:
    """The bounds are finite, so NaN and infinity are outside them. JSON's whole numbers have no end, floats do."""
    if not low <= value <= high:
        said = f"{value:.6g}" if isinstance(value, float) else str(value)[:40]
        raise DocumentError(f"{said} is outside {low:g} to {high:g}", path=path)
