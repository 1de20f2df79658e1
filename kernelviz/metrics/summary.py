"""The answers about a run: the fastest correct variant, its speed-up, its share of the roof, and its worst size."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelviz.core import Problem
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, geometric_mean
from kernelviz.metrics.winner import Winner, never_winning, winners


@dataclass(frozen=True, slots=True)
class Summary:
    """The four answers above the charts, all about one variant: the fastest correct one.

    `wins` of `problems`: at how many sizes it leads by the verdict rule; at `tied` more sizes it may lead. `alike`: variants
    whose geometric mean time is within 0.5 % of its own. `unclear`: at how many sizes its comparison with the baseline is
    undecided. `efficiency`: its mean share of the measured roof over `efficiencies` sizes; `best_efficiency`: the largest;
    both are None without a calibration. `worst`: the size with its lowest share or, without a calibration, its lowest
    speed-up. `excluded`: variants with a wrong or impossible result at some size, which cannot be fastest.
    """

    fastest: str
    wins: int
    tied: int
    alike: tuple[str, ...]
    problems: int
    covered: int
    speed_up: float | None
    speed_ups: int
    unclear: int
    efficiency: float | None
    best_efficiency: float | None
    efficiencies: int
    worst: Problem | None
    worst_efficiency: float | None
    worst_speed_up: float | None
    excluded: tuple[str, ...]


def summary(table: Sequence[Row], headline: Headline = "cold") -> Summary | None:
    """The answers, or None while there is no correct time.

    Fastest is the variant with the lowest geometric mean time among those that cover the most sizes, so that a variant
    that failed at the large sizes cannot win by its small ones. If these variants cover different sizes, the mean is over the
    sizes that all of them cover; if there are none, the variant that leads at the most sizes is the fastest.
    """
    excluded = never_winning(table)
    timed = [r for r in table if r.figure is not None and r.result.variant not in excluded]
    if not timed:
        return None
    by_variant = grouped(timed, key=lambda r: r.result.variant)
    leads = winners(table, headline)
    fastest, alike = _fastest(by_variant, leads)
    own = by_variant[fastest]
    ratios = [r.speed_up for r in own if r.speed_up is not None]
    shares = [r.efficiency for r in own if r.efficiency is not None]
    worst = _worst(own)
    return Summary(
        fastest=fastest,
        wins=sum(lead.names == (fastest,) for lead in leads),
        tied=sum(fastest in lead.names for lead in leads if len(lead.names) > 1),
        alike=alike,
        problems=len({r.result.problem.key for r in timed}),
        covered=len(own),
        speed_up=geometric_mean(ratios),
        speed_ups=len(ratios),
        unclear=sum(r.verdict is not None and r.verdict.kind == "unclear" for r in own),
        efficiency=sum(shares) / len(shares) if shares else None,
        best_efficiency=max(shares, default=None),
        efficiencies=len(shares),
        worst=worst.result.problem if worst else None,
        worst_efficiency=worst.efficiency if worst else None,
        worst_speed_up=worst.speed_up if worst else None,
        excluded=excluded,
    )


def _fastest(by_variant: Mapping[str, Sequence[Row]], leads: Sequence[Winner]) -> tuple[str, tuple[str, ...]]:
    """The fastest of the variants that cover the most sizes, and those whose mean time is within 0.5 % of its own."""
    most = max(map(len, by_variant.values()))
    times_s = {
        name: {r.result.problem.key: r.time_s for r in group}
        for name, group in by_variant.items()
        if len(group) == most
    }
    common = set.intersection(*map(set, times_s.values()))
    if not common:
        wins = Counter(lead.leader.result.variant for lead in leads if lead.leader)
        return max(times_s, key=lambda name: wins[name]), ()
    means = {name: geometric_mean([times[key] for key in common]) or 0.0 for name, times in times_s.items()}
    fastest = min(means, key=lambda name: means[name])
    limit = means[fastest] * (1 + LEAST_DIFFERENCE)
    return fastest, tuple(name for name, mean in means.items() if name != fastest and mean <= limit)


def _worst(own: Sequence[Row]) -> Row | None:
    by_share = min((r for r in own if r.efficiency is not None), key=lambda r: r.efficiency or 0.0, default=None)
    return by_share or min((r for r in own if r.speed_up is not None), key=lambda r: r.speed_up or 0.0, default=None)
