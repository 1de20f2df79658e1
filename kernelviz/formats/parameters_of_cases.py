"""The parameters and their values for each case of a run, as tuners list them: those of its configuration, or what the cases of
another run differ in."""

from collections.abc import Mapping
from dataclasses import dataclass

from kernelviz.core import Figure, Result, Run
from kernelviz.core.configuration import Value, parameters
from kernelviz.metrics.rows import in_plan_order
from kernelviz.metrics.statistics import means_by_block


@dataclass(frozen=True, slots=True)
class Cases:
    """`name`: of what is tuned. `space`: the values of each parameter, in their order. `cases`: each case with its values, but
    those that were cancelled are left out."""

    name: str
    space: Mapping[str, tuple[Value, ...]]
    cases: tuple[tuple[Result, Mapping[str, Value]], ...]


def cases_of(run: Run) -> Cases:
    """The cases of a tuning with their configurations. The cases of another run have the variant, and each size and property in
    which they differ, as parameters."""
    results = [r for r in in_plan_order(run) if not r.given_up]
    search = run.plan.search
    named = [parameters(r.variant) for r in results] if search is not None and len(run.plan.problems) == 1 else []
    tuned = bool(named) and all(values and values.keys() == named[0].keys() for values in named)
    listed = named if tuned else [_of_case(run, r) for r in results]
    space: dict[str, dict[str, Value]] = {}
    known = search.parameter_values if search is not None and tuned else {}
    for values in ({key: value} for key, several in known.items() for value in several):
        _add(space, values)
    for case in listed:
        _add(space, case)
    return Cases(
        search.variant if search is not None and tuned else run.plan.op,
        {key: tuple(values.values()) for key, values in space.items()},
        tuple(zip(results, listed, strict=True)),
    )


def _add(space: dict[str, dict[str, Value]], values: Mapping[str, Value]) -> None:
    for key, value in values.items():
        space.setdefault(key, {}).setdefault(repr(value), value)  # because 1 == True


def _of_case(run: Run, result: Result) -> dict[str, Value]:
    problems = run.plan.problems
    values: dict[str, Value] = {"variant": result.variant}
    for axis, size in result.problem.sizes.items():
        if len({p.sizes.get(axis) for p in problems}) > 1:
            values[axis if axis != "variant" else "size variant"] = size
    for name in ("dtype", "compute", "direction", "data"):
        if len({getattr(p, name) for p in problems}) > 1 and name not in values:
            values[name] = getattr(result.problem, name) or ""
    return values


def figure_of_case(result: Result) -> Figure | None:
    """The time of a correct case: device cold, else that of another tool, else the first one that was measured."""
    timing = result.timing
    if timing is None:
        return None
    every = (timing.device_cold_s, *timing.other_times.values(), *timing.figures.values())
    return next((figure for figure in every if figure is not None), None)


def times_of(figure: Figure) -> list[float]:
    """The mean of each block, or the single times of another tool, s."""
    return means_by_block(figure).tolist() if figure.blocks else list(figure.samples or ())
