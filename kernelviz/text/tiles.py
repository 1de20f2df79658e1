"""The tiles of a run, for pages and files: best overall, most wins, speed-up, share of the roof, worst size."""

from dataclasses import dataclass

from kernelviz.core import Plan, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import varying_axes
from kernelviz.text.above_roof import describe_above_roof
from kernelviz.text.quality import SIGNS, describe_part, format_level
from kernelviz.text.results import format_variant
from kernelviz.text.roofs import format_share
from kernelviz.text.sizes import format_sizes
from kernelviz.text.winners import describe_doubts, describe_mean_time, describe_most_wins, format_most_wins


@dataclass(frozen=True, slots=True)
class Tile:
    """A label, a value with unit, its basis, and how it is computed. `more`: what a reader of the value has to know besides, for
    which a small picture has no space."""

    label: str
    value: str
    basis: str
    how: str = ""
    more: str = ""

    @property
    def whole_basis(self) -> str:
        """The basis, and what has to be known besides."""
        return "; ".join(filter(None, (self.basis, self.more)))


def tiles(summary: Summary | None, plan: Plan, headline: Headline = "cold") -> tuple[Tile, ...]:
    """The tiles of a run; without a correct time each says what is missing. At a single size the best variant overall is the one
    that wins the most sizes, so that they share a tile, and there is no worst size."""
    base, best, above = format_variant(plan.baseline), "the best variant", ""
    if summary is not None:
        best = format_variant(summary.fastest)
        if summary.above_roof is not None:
            above = f" The best one is {describe_above_roof(summary.above_roof)}."
    labels = {
        **(_ranking_labels(summary) if len(plan.problems) > 1 else _single_labels()),
        f"Speed-up over {base}": f"Time of {base} divided by time of {best}, compared in each measuring round. Geometric "
        "mean over the sizes. The difference is unclear at a size with too much noise, too few rounds or a time with two levels.",
        "Share of the measured roof": f"The shortest time that the measured bandwidth and arithmetic rate of this device "
        f"allow, divided by the measured time of {best}.{above}",
    }
    if len(plan.problems) > 1:
        labels["Worst size"] = (
            f"The size at which {best} has the lowest share of the roof; without roofs, the lowest speed-up."
        )
    if summary is None:
        values = [("–", "no correct time yet" if headline == "cold" else "no warm time")] * len(labels)
    else:
        ranking = [_best(summary), _most_wins(summary)] if len(plan.problems) > 1 else [_fastest(summary)]
        values = [*ranking, _speed_up(summary, plan), _share(summary), _worst(summary, plan)][: len(labels)]
    named = zip(labels.items(), values, strict=True)
    return tuple(Tile(label, value, basis, how, _more(label, summary, plan)) for (label, how), (value, basis) in named)


def _more(label: str, summary: Summary | None, plan: Plan) -> str:
    if summary is None:
        return ""
    if label in ("Best overall", "Fastest"):
        doubts = _doubts(summary) if len(plan.problems) > 1 else ""
        return "; ".join(filter(None, (doubts, _unreliable(summary, plan))))
    return _of_each_size(summary, plan) if label.startswith("Speed-up") else ""


def _doubts(summary: Summary) -> str:
    """`describe_doubts` in so few words that the tile stays as low as the others: "another is faster at 2, unclear at 5"."""
    slower, unclear = summary.at_each_size.slower, summary.wins_of_best.unclear
    parts = ([f"another is faster at {slower}"] if slower else []) + ([f"unclear at {unclear}"] if unclear else [])
    return ", ".join(parts)


def _ranking_labels(summary: Summary | None) -> dict[str, str]:
    best = (
        "The variant with the lowest geometric mean time, of those that cover the most sizes and have no wrong result. A large "
        "advantage at few sizes can outweigh more wins."
    )
    alike = doubts = ""
    if summary:
        doubts = describe_doubts(summary)
        alike = f"Within 0.5 % of its mean: {', '.join(map(format_variant, summary.alike))}." if summary.alike else ""
    return {
        "Best overall": " ".join(filter(None, (best, alike, doubts))),
        "Most wins": "The variant that is the fastest at the most sizes. It wins a size if the time ratio to every other "
        "variant is beyond the measurement noise, and is tied if the ratio is within it. A size where the noise is too high to "
        "compare is unclear, and counts as neither.",
    }


def _single_labels() -> dict[str, str]:
    return {
        "Fastest": "The fastest variant without a wrong result. It is tied if the time ratio to another variant is within the "
        "measurement noise, and unclear if the noise is too high to compare the two."
    }


def _fastest(summary: Summary) -> tuple[str, str]:
    best = summary.wins_of_best
    rivals = [format_variant(one.variant) for one in summary.wins if one.tied + one.unclear and one is not best]
    outcome = "" if best.won else f"tied with {_few(rivals)}" if best.tied else f"unclear against {_few(rivals)}"
    return format_variant(summary.fastest), outcome or "fastest at 1 size"


def _few(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} others"


def _best(summary: Summary) -> tuple[str, str]:
    return format_variant(summary.fastest), describe_mean_time(summary, format_variant)


def _unreliable(summary: Summary, plan: Plan) -> str:
    """The sizes at which the time of the best variant is unreliable, with the reason of the first."""
    if not summary.unreliable:
        return ""
    first, more = summary.unreliable[0], len(summary.unreliable) - 1
    where = f" at {format_sizes(first.problem, varying_axes(plan.problems))}" if len(plan.problems) > 1 else ""
    rest = f", and at {units.counted(more, 'other size')}" if more else ""
    return f"{format_level('suspect')}{where}: {describe_part(first.reason)}{rest}"


def _most_wins(summary: Summary) -> tuple[str, str]:
    return format_most_wins(summary, format_variant), describe_most_wins(summary)


def _of_best(summary: Summary) -> str:
    """The best variant overall, where another one wins the most sizes and the tile could be understood to be about that one."""
    most = [one.variant for one in summary.most_wins]
    return "" if most in ([], [summary.fastest]) else f"{format_variant(summary.fastest)}: "


def _speed_up(summary: Summary, plan: Plan) -> tuple[str, str]:
    if summary.speed_up is None:
        unclear = f"at {units.counted(summary.unclear, 'size')} the difference is unclear" if summary.unclear else ""
        return "unknown", unclear or "the baseline has no time"
    if summary.fastest == plan.baseline:
        return "1.00×", f"the baseline is the {'best overall' if len(plan.problems) > 1 else 'fastest'}"
    mean = "at 1 size" if summary.speed_ups == 1 else f"geometric mean, {summary.speed_ups} sizes"
    return f"{units.factor(summary.speed_up)}×", _of_best(summary) + mean + _unclear(summary)


def _of_each_size(summary: Summary, plan: Plan) -> str:
    """If the baseline is the best single variant and others are faster at some sizes: what the fastest variant of each size would
    bring."""
    each = summary.at_each_size
    if summary.fastest != plan.baseline or not each.slower or each.speed_up is None:
        return ""
    return f"the best one of each size ({units.counted(each.variants, 'variant')}): {units.factor(each.speed_up)}×"


def _unclear(summary: Summary) -> str:
    """At how many sizes it is unclear whether the best variant is faster than the baseline. It is never counted as a tie.

    Such a size is part of the mean, unless a time there has two levels, so that no ratio is known.
    """
    if not summary.unclear:
        return ""
    apart = summary.unclear - summary.unclear_speed_ups
    if summary.speed_ups == 1 and not apart:
        return "; the difference there is unclear"
    parts = [f"at {summary.unclear_speed_ups} of them"] if summary.unclear_speed_ups else []
    parts += [f"at {apart} other size{'s' if apart > 1 else ''}"] if apart else []
    return f"; {' and '.join(parts)} the difference is unclear"


def _share(summary: Summary) -> tuple[str, str]:
    if summary.efficiency is None:
        return "unknown", "its roof was not measured, or cannot be used"
    best = format_share(summary.best_efficiency or summary.efficiency)
    sizes = "1 size" if summary.efficiencies == 1 else f"mean, {summary.efficiencies} sizes; best {best}"
    return format_share(summary.efficiency), _of_best(summary) + sizes


def _worst(summary: Summary, plan: Plan) -> tuple[str, str]:
    if summary.worst is None:
        return "unknown", "needs a measured roof, or a time of the baseline"
    if summary.worst_efficiency is None and summary.fastest == plan.baseline:
        return "unknown", "needs a measured roof, because the best variant is the baseline itself"
    sizes = format_sizes(summary.worst, varying_axes(plan.problems))
    if any(one.problem == summary.worst for one in summary.unreliable):
        sizes += f" {SIGNS['suspect']}"
    if summary.worst_efficiency is not None:
        return sizes, f"{_of_best(summary)}{format_share(summary.worst_efficiency)} of the roof"
    if summary.worst_speed_up is None:
        return sizes, "unknown"
    return sizes, f"{units.factor(summary.worst_speed_up)}× the speed of {format_variant(plan.baseline)}"
