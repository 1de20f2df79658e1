"""The four tiles of a run, for pages and files: fastest variant, speed-up, share of the roof, worst size."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.core.problem import Plan
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import size_words, telling_axes
from kernelviz.plots.frame import share_words
from kernelviz.plots.variant_styles import variant_words


@dataclass(frozen=True, slots=True)
class Tile:
    """A label, a value with unit, its basis, and how it is computed."""

    label: str
    value: str
    basis: str
    how: str = ""


def tiles(found: Summary | None, plan: Plan, headline: Headline = "cold") -> tuple[Tile, Tile, Tile, Tile]:
    """The tiles of a run; without a correct time each says what is missing."""
    base = variant_words(plan.baseline)
    if found is None:
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
    return (_fastest(found), _speed_up(found, plan), _share(found), _worst(found, plan))


def _fastest(found: Summary) -> Tile:
    others = ", ".join(variant_words(name) for name in found.alike)
    return Tile(
        "Fastest correct variant",
        variant_words(found.fastest),
        _leads(found),
        "The variant with the lowest geometric mean time, of those that cover the most sizes and have no wrong result. It is "
        "tied at a size if its advantage over another variant is within the measurement noise."
        + (f" Within 0.5 % of its mean: {others}." if others else ""),
    )


def _leads(found: Summary) -> str:
    if found.problems == 1:
        return "fastest at 1 size" if found.wins else "tied at 1 size"
    alike = f", within 0.5 % of {variant_words(found.alike[0])}" if found.alike else ""
    tied = f", tied at {found.tied}" if found.tied else ""
    return f"fastest at {found.wins} of {found.problems} sizes{tied or alike}"


def _speed_up(found: Summary, plan: Plan) -> Tile:
    base = variant_words(plan.baseline)
    label = f"Speed-up over {base}"
    how = (
        f"Time of {base} divided by time of {variant_words(found.fastest)}, compared in each measuring round. Geometric mean "
        "over the sizes."
    )
    if found.speed_up is None:
        return Tile(label, "unknown", "the baseline has no time", how)
    mean = "1 size" if found.speed_ups == 1 else f"geometric mean, {found.speed_ups} sizes"
    if found.fastest == plan.baseline:
        return Tile(label, "1.00×", "the baseline is the fastest", how)
    doubt = f"; unclear at {found.unclear}" if found.unclear else ""
    return Tile(label, f"{found.speed_up:.2f}×", mean + doubt, how)


def _share(found: Summary) -> Tile:
    label = "Share of the measured roof"
    how = "The shortest time that the measured bandwidth and arithmetic rate of this device allow, divided by the measured time."
    if found.efficiency is None:
        return Tile(label, "not calibrated", "press Calibrate to measure the roofs", how)
    best = share_words(found.best_efficiency or found.efficiency)
    basis = "1 size" if found.efficiencies == 1 else f"mean, {found.efficiencies} sizes; best {best}"
    if (found.best_efficiency or 0) > 1:
        how += " Above 100 %: faster than the kernel that measured the roof, or part of the output is still in the L2."
    return Tile(label, share_words(found.efficiency), basis, how)


def _worst(found: Summary, plan: Plan) -> Tile:
    how = "The size at which the fastest variant has the lowest share of the roof; without roofs, the lowest speed-up."
    if found.worst is None or (found.worst_efficiency is None and found.fastest == plan.baseline):
        return Tile("Worst size", "unknown", "nothing to compare with", how)
    base = variant_words(plan.baseline)
    words = size_words(found.worst, telling_axes(plan.problems))
    if found.worst_efficiency is not None:
        return Tile("Worst size", words, f"{share_words(found.worst_efficiency)} of the roof", how)
    gain = "unknown" if found.worst_speed_up is None else f"{found.worst_speed_up:.2f}× the speed of {base}"
    return Tile("Worst size", words, gain, how)
