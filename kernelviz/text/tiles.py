"""The four tiles of a run, for pages and files: fastest variant, speed-up, share of the roof, worst size."""

from dataclasses import dataclass

from kernelviz.core import Plan
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import telling_axes
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.sizes import format_sizes


@dataclass(frozen=True, slots=True)
class Tile:
    """A label, a value with unit, its basis, and how it is computed."""

    label: str
    value: str
    basis: str
    how: str = ""


def tiles(summary: Summary | None, plan: Plan, headline: Headline = "cold") -> tuple[Tile, ...]:
    """The four tiles of a run; without a correct time each says what is missing."""
    base, fastest, alike, above = format_variant(plan.baseline), "the fastest variant", "", ""
    waiting = ("–", "no correct time yet" if headline == "cold" else "no correct warm time")
    values = [waiting] * 4
    if summary is not None:
        fastest = format_variant(summary.fastest)
        values = [(fastest, _leads(summary)), _speed_up(summary, plan), _share(summary), _worst(summary, plan)]
        if summary.alike:
            alike = f" Within 0.5 % of its mean: {', '.join(map(format_variant, summary.alike))}."
        if (summary.best_efficiency or 0) > 1:
            above = (
                " Above 100 %: faster than the kernel that measured the roof, or part of the output is still in the L2."
            )
    labels = {
        "Fastest correct variant": "The variant with the lowest geometric mean time, of those that cover the most sizes and "
        "have no wrong result. It is tied at a size if its advantage over another variant is within the measurement noise."
        + alike,
        f"Speed-up over {base}": f"Time of {base} divided by time of {fastest}, compared in each measuring round. Geometric "
        "mean over the sizes.",
        "Share of the measured roof": "The shortest time that the measured bandwidth and arithmetic rate of this device "
        f"allow, divided by the measured time.{above}",
        "Worst size": "The size at which the fastest variant has the lowest share of the roof; without roofs, the lowest "
        "speed-up.",
    }
    return tuple(Tile(label, *value, how) for (label, how), value in zip(labels.items(), values, strict=True))


def _leads(summary: Summary) -> str:
    if summary.problems == 1:
        return "fastest at 1 size" if summary.wins else "tied at 1 size"
    alike = f", within 0.5 % of {format_variant(summary.alike[0])}" if summary.alike else ""
    tied = f", tied at {summary.tied}" if summary.tied else ""
    return f"fastest at {summary.wins} of {summary.problems} sizes{tied or alike}"


def _speed_up(summary: Summary, plan: Plan) -> tuple[str, str]:
    if summary.speed_up is None:
        return "unknown", "the baseline has no time"
    if summary.fastest == plan.baseline:
        return "1.00×", "the baseline is the fastest"
    mean = "1 size" if summary.speed_ups == 1 else f"geometric mean, {summary.speed_ups} sizes"
    unclear = f"; unclear at {summary.unclear}" if summary.unclear else ""
    return f"{summary.speed_up:.2f}×", mean + unclear


def _share(summary: Summary) -> tuple[str, str]:
    if summary.efficiency is None:
        return "not calibrated", "press Calibrate to measure the roofs"
    best = format_share(summary.best_efficiency or summary.efficiency)
    sizes = "1 size" if summary.efficiencies == 1 else f"mean, {summary.efficiencies} sizes; best {best}"
    return format_share(summary.efficiency), sizes


def _worst(summary: Summary, plan: Plan) -> tuple[str, str]:
    if summary.worst is None or (summary.worst_efficiency is None and summary.fastest == plan.baseline):
        return "unknown", "nothing to compare with"
    sizes = format_sizes(summary.worst, telling_axes(plan.problems))
    if summary.worst_efficiency is not None:
        return sizes, f"{format_share(summary.worst_efficiency)} of the roof"
    if summary.worst_speed_up is None:
        return sizes, "unknown"
    return sizes, f"{summary.worst_speed_up:.2f}× the speed of {format_variant(plan.baseline)}"
