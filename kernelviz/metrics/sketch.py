"""The points of a small chart of a run: one line for each variant, and the roof, without intervals and failures."""

from kernelviz.core import Run
from kernelviz.core.problem import Struct
from kernelviz.metrics.chart_selection import charted_run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import bandwidth_bytes_per_s, rate_flop_per_s, speed_of_light
from kernelviz.metrics.rows import Quantity, Row, rows, usual_quantity
from kernelviz.metrics.sweep import line_sizes, swept_axis, tied_axes

DIGITS = 4
"""Significant digits of a point. A thousandth of the height of a small chart is less than a pixel."""


class Line(Struct, frozen=True, kw_only=True):
    """The points of one variant in the order of sizes; `y` in SI base units of the sketch's quantity."""

    variant: str
    x: tuple[int, ...]
    y: tuple[float, ...]


class Sketch(Struct, frozen=True, kw_only=True):
    """A chart by size: `axes` are the swept axis and those tied to it. The `roof` is the best value that the roofs of the device
    allow at each size. Without an axis or a correct time there are no lines. `variants`: all that the chart of the page shows,
    also those without a line."""

    axes: tuple[str, ...] = ()
    quantity: Quantity = "time"
    lines: tuple[Line, ...] = ()
    roof: tuple[tuple[int, float], ...] = ()
    variants: tuple[str, ...] = ()


def sketch(run: Run, headline: Headline = "cold") -> Sketch:
    """The sketch of the chart that the page Bench opens with: bandwidth, the rate of an op with much arithmetic, or the time of
    one with hardly any work."""
    charted = charted_run(run)
    timed = [r for r in rows(charted, run.environment.roofs, headline) if r.figure is not None]
    problems = list({r.result.problem.key: r.result.problem for r in timed}.values())
    axis = swept_axis(problems)
    if axis is None:
        return Sketch(variants=charted.plan.variants)
    quantity: Quantity = usual_quantity(timed)
    if any(_value(r, quantity) is None for r in timed):
        quantity = "time"
    by_line = grouped(timed, key=lambda r: (r.result.variant, line_sizes(r.result.problem, problems, axis)))
    lines = []
    for (variant, _), line in by_line.items():
        points = sorted((r.result.problem.sizes[axis], _rounded(_value(r, quantity) or 0.0)) for r in line)
        lines.append(Line(variant=variant, x=tuple(x for x, _ in points), y=tuple(y for _, y in points)))
    order = {name: place for place, name in enumerate(charted.plan.variants)}
    return Sketch(
        axes=tied_axes(problems, axis),
        quantity=quantity,
        lines=tuple(sorted(lines, key=lambda one: order.get(one.variant, len(order)))),
        roof=_roof(timed, run, axis, quantity, headline),
        variants=charted.plan.variants,
    )


def _value(row: Row, quantity: Quantity) -> float | None:
    match quantity:
        case "bandwidth":
            return row.bandwidth_bytes_per_s or None
        case "rate":
            return row.rate_flop_per_s or None
        case "time":
            return row.time_s


def _roof(
    timed: list[Row], run: Run, axis: str, quantity: Quantity, headline: Headline
) -> tuple[tuple[int, float], ...]:
    best: dict[int, float] = {}
    for row in timed:
        cost, problem = row.result.cost, row.result.problem
        light = speed_of_light(problem, cost, run.environment.roofs, headline) if cost else None
        if cost is None or light is None or light.time_s <= 0:
            continue
        rates = {"bandwidth": bandwidth_bytes_per_s, "rate": rate_flop_per_s}
        best[problem.sizes[axis]] = rates[quantity](cost, light.time_s) if quantity in rates else light.time_s
    return tuple((x, _rounded(best[x])) for x in sorted(best))


def _rounded(value: float) -> float:
    """The value with DIGITS significant digits.

    >>> _rounded(4_123_456_789.0), _rounded(1.23456e-05)
    (4123000000.0, 1.235e-05)
    """
    return float(f"{value:.{DIGITS}g}")
