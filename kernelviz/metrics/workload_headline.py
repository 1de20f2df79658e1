"""What the sentence about a run of a workload is about: its points without a planted condition, and who is best at them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelviz.core.workload import AxisValue, WorkloadRun
from kernelviz.metrics.workloads import WorkloadRow


@dataclass(frozen=True, slots=True)
class WorkloadHeadline:
    """The points that count, and who is best at them.

    `rows`: the usable cases at `points`. `planted`: how many other points have a planted condition; where all of them have one,
    all count. `wins`: at how many points each variant is best, the most first. `unbeaten`: at how many points no variant is
    better than the baseline. `best`: the case of the variant with the most wins at the last point where it is best; where the
    baseline is better at more points, the last case that is best anywhere.
    """

    rows: tuple[WorkloadRow, ...]
    points: tuple[str, ...]
    planted: int
    wins: Mapping[str, int]
    unbeaten: int
    best: WorkloadRow | None


def headline_of(run: WorkloadRun, usable: Sequence[WorkloadRow]) -> WorkloadHeadline:
    """The headline of a run by its usable cases, in the order of the plan."""
    axes = [axis.name for axis in run.declared.axes if axis.planted is True]
    natural = [row for row in usable if not _is_planted(axes, row.case.values)]
    counted = natural or list(usable)
    points = tuple(dict.fromkeys(row.case.point for row in counted))
    best = [row for row in counted if row.best]
    wins = dict(Counter(row.case.variant for row in best).most_common())
    unbeaten = len(points) - len({row.case.point for row in best})
    most = max(wins.values(), default=0)
    leading = [row for row in best if wins[row.case.variant] == most] if most > unbeaten else best
    return WorkloadHeadline(
        rows=tuple(counted),
        points=points,
        planted=len({row.case.point for row in usable} - set(points)),
        wins=wins,
        unbeaten=unbeaten,
        best=leading[-1] if leading else None,
    )


def _is_planted(axes: Sequence[str], values: Mapping[str, AxisValue]) -> bool:
    """Whether something was planted at these values, so that they are not those of usual work."""
    return any(values.get(name) not in (0, None) for name in axes)
