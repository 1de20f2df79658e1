"""The four tiles of a run, for pages and files: fastest variant, speed-up, share of the roof, worst size."""

from dataclasses import dataclass

from kernelviz.core import Plan
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import telling_axes
from kernelviz.plots.frame import format_share
from kernelviz.plots.variant_styles import format_variant
from kernelviz.text.sizes import format_sizes


@dataclass(frozen=True, slots=True)
class Tile:
    """A label, a value with unit, its basis, and how it is computed."""

    label: str
    value: str
    basis: str
    how: str = ""


def tiles(summary: Summary | None, plan: Plan, headline: Headline = "cold") -> tuple[Tile, Tile, Tile, Tile]:
    """The tiles of a run; without a correct time each says what is missing."""
    base = format_variant(plan.baseline)
    if summary is None:
        waiting = "no correct time yet" if headline == "cold" else "no correct warm time"
        return (
            Tile(
                "Fastest correct variant",
                "–",
                waiting,
                "The variant with the lowest geometric mean time over the sizes.",
            ),
            Tile(
                f"Speed-up over {base}",
                "–",
                waiting,
                "Time of the baseline divided by the time of the fastest variant.",
            ),
            Tile(
                "Share of the measured roof",
                "–",
                waiting,
                "Shortest time that the measured roofs allow, divided by the measured time.",
            ),
            Tile("Worst size", "–", waiting, "The size at which the fastest variant has the lowest share of the roof."),
        )
    return (_fastest(summary), _speed_up(summary, plan), _share(summary), _worst(summary, plan))


def _fastest(summary: Summary) -> Tile:
    alike_names = ", ".join(format_variant(name) for name in summary.alike)
    return Tile(
        "Fastest correct variant",
        format_variant(summary.fastest),
        _leads(summary),
        "The variant with the lowest geometric mean time, of those that cover the most sizes and have no wrong result. It is "
        "tied at a size if its advantage over another variant is within the measurement noise."
        + (f" Within 0.5 % of its mean: {alike_names}." if alike_names else ""),
    )


def _leads(summary: Summary) -> str:
    if summary.problems == 1:
        return "fastest at 1 size" if summary.wins else "tied at 1 size"
    alike = f", within 0.5 % of {format_variant(summary.alike[0])}" if summary.alike else ""
    tied = f", tied at {summary.tied}" if summary.tied else ""
    return f"fastest at {summary.wins} of {summary.problems} sizes{tied or alike}"


def _speed_up(summary: Summary, plan: Plan) -> Tile:
    base = format_variant(plan.baseline)
    label = f"Speed-up over {base}"
    how = (
        f"Time of {base} divided by time of {format_variant(summary.fastest)}, compared in each measuring round. Geometric mean "
        "over the sizes."
    )
    if summary.speed_up is None:
        return Tile(label, "unknown", "the baseline has no time", how)
    mean = "1 size" if summary.speed_ups == 1 else f"geometric mean, {summary.speed_ups} sizes"
    if summary.fastest == plan.baseline:
        return Tile(label, "1.00×", "the baseline is the fastest", how)
    doubt = f"; unclear at {summary.unclear}" if summary.unclear else ""
    return Tile(label, f"{summary.speed_up:.2f}×", mean + doubt, how)


def _share(summary: Summary) -> Tile:
    label = "Share of the measured roof"
    how = "The shortest time that the measured bandwidth and arithmetic rate of this device allow, divided by the measured time."
    if summary.efficiency is None:
        return Tile(label, "not calibrated", "press Calibrate to measure the roofs", how)
    best = format_share(summary.best_efficiency or summary.efficiency)
    basis = "1 size" if summary.efficiencies == 1 else f"mean, {summary.efficiencies} sizes; best {best}"
    if (summary.best_efficiency or 0) > 1:
        how += " Above 100 %: faster than the kernel that measured the roof, or part of the output is still in the L2."
    return Tile(label, format_share(summary.efficiency), basis, how)


def _worst(summary: Summary, plan: Plan) -> Tile:
    how = "The size at which the fastest variant has the lowest share of the roof; without roofs, the lowest speed-up."
    if summary.worst is None or (summary.worst_efficiency is None and summary.fastest == plan.baseline):
        return Tile("Worst size", "unknown", "nothing to compare with", how)
    base = format_variant(plan.baseline)
    sizes = format_sizes(summary.worst, telling_axes(plan.problems))
    if summary.worst_efficiency is not None:
        return Tile("Worst size", sizes, f"{format_share(summary.worst_efficiency)} of the roof", how)
    gain = "unknown" if summary.worst_speed_up is None else f"{summary.worst_speed_up:.2f}× the speed of {base}"
    return Tile("Worst size", sizes, gain, how)
