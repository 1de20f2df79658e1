"""Four answers about one variant: which is fastest, by how much, how near the roof, where it is worst; for pages and files."""

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
    """A question, its answer with unit, what it rests on, and how it was made."""

    label: str
    value: str
    basis: str
    how: str = ""


def tiles(found: Summary | None, plan: Plan, headline: Headline = "cold") -> tuple[Tile, Tile, Tile, Tile]:
    """The tiles of a run; without a correct time each says what it waits for."""
    base = variant_words(plan.baseline)
    if found is None:
        waiting = "no correct time yet" if headline == "cold" else "no correct warm time"
        return (
            Tile("Fastest correct variant", "–", waiting, "The lowest geometric mean time over the sizes."),
            Tile(f"Against {base}", "–", waiting, "Baseline's time over this variant's."),
            Tile("Share of the measured roof", "–", waiting, "Speed of light over measured time."),
            Tile("Worst size", "–", waiting, "The size with the lowest share of the roof."),
        )
    return (_fastest(found), _speed_up(found, plan), _share(found), _worst(found, plan))


def _fastest(found: Summary) -> Tile:
    others = ", ".join(variant_words(name) for name in found.alike)
    return Tile(
        "Fastest correct variant",
        variant_words(found.fastest),
        _leads(found),
        "The lowest geometric mean time among the variants that cover the most sizes. At a size it is fastest where the verdict "
        "rule tells it from every other variant, and tied where another may be as fast. A variant with a wrong result anywhere "
        "cannot be fastest." + (f" Within 0.5 % of its mean: {others}." if others else ""),
    )


def _leads(found: Summary) -> str:
    if found.problems == 1:
        return "fastest at 1 size" if found.wins else "tied at 1 size"
    alike = f", within 0.5 % of {variant_words(found.alike[0])}" if found.alike else ""
    tied = f", tied at {found.tied}" if found.tied else ""
    return f"fastest at {found.wins} of {found.problems} sizes{tied or alike}"


def _speed_up(found: Summary, plan: Plan) -> Tile:
    base = variant_words(plan.baseline)
    label = f"Against {base}"
    how = f"Time of {base} over time of {variant_words(found.fastest)}, by shared rounds, as a geometric mean over the sizes."
    if found.speed_up is None:
        return Tile(label, "unknown", "the baseline has no time", how)
    mean = "1 size" if found.speed_ups == 1 else f"geometric mean, {found.speed_ups} sizes"
    if found.fastest == plan.baseline:
        return Tile(label, "1.00×", "it is the baseline itself", how)
    doubt = f"; unclear at {found.unclear}" if found.unclear else ""
    return Tile(label, f"{found.speed_up:.2f}×", mean + doubt, how)


def _share(found: Summary) -> Tile:
    label = "Share of the measured roof"
    how = "Speed of light over measured time: the least time that this device's measured roofs allow, over the time it took."
    if found.efficiency is None:
        return Tile(label, "not calibrated", "Calibrate measures the roofs", how)
    best = share_words(found.best_efficiency or found.efficiency)
    basis = "1 size" if found.efficiencies == 1 else f"mean, {found.efficiencies} sizes; best {best}"
    if (found.best_efficiency or 0) > 1:
        how += " Above 100 %: it beats the stream that set the roof, or the L2 still holds part of what was written."
    return Tile(label, share_words(found.efficiency), basis, how)


def _worst(found: Summary, plan: Plan) -> Tile:
    how = (
        "Where the fastest variant is farthest from the roof, or, not calibrated, where it gains least on the baseline."
    )
    if found.worst is None or (found.worst_efficiency is None and found.fastest == plan.baseline):
        return Tile("Worst size", "unknown", "nothing to compare with", how)
    base = variant_words(plan.baseline)
    words = size_words(found.worst, telling_axes(plan.problems))
    if found.worst_efficiency is not None:
        return Tile("Worst size", words, f"{share_words(found.worst_efficiency)} of the roof", how)
    gain = "unknown" if found.worst_speed_up is None else f"{found.worst_speed_up:.2f}× the speed of {base}"
    return Tile("Worst size", words, gain, how)
