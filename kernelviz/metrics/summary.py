"""The answers about a run: the best variant overall, its speed-up, share of the roof and worst size; who wins the most sizes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelviz.core import Problem
from kernelviz.core.run_cache import TableCache
from kernelviz.metrics.above_roof import AboveRoof
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.quality import Part, quality
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, geometric_mean
from kernelviz.metrics.winner import Winner, never_winning, winners

_computed: TableCache["Summary | None"] = TableCache(most=32)


@dataclass(frozen=True, slots=True)
class Wins:
    """At how many sizes a variant is the fastest alone (`won`), one of several that are the same and faster than all others
    (`tied`), or possibly the fastest (`unclear`). A size counts once."""

    variant: str
    won: int = 0
    tied: int = 0
    unclear: int = 0


@dataclass(frozen=True, slots=True)
class Unreliable:
    """A size at which the time of the best variant may be wrong by more than its interval, and the worst reason."""

    problem: Problem
    reason: Part


@dataclass(frozen=True, slots=True)
class AtEachSize:
    """The fastest variant of each size, in place of one for all sizes.

    `variants`: how many different ones lead. `slower`: at how many sizes the best variant overall is slower than the leader.
    `leader_unclear`: at how many of these it is unclear which of the other variants is the fastest.
    `speed_up`: the geometric mean of the leaders' speed-ups over the baseline, None if one of them is unknown.
    """

    variants: int
    slower: int
    leader_unclear: int
    speed_up: float | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The answers above the charts. All but `wins`, `most_wins` and `at_each_size` are about one variant: the best one overall.

    `fastest`: the best variant overall, by the geometric mean of its times over `common` of `problems` sizes; 0 if the variants
    that could be it have no size at which the time of each is stable. `alike`: variants whose mean is within 0.5 % of its own.
    `wins`: of every variant with a correct time. `unclear`: at how many sizes the comparison of the best variant with the
    baseline is undecided; `unclear_speed_ups` of these have a speed-up, which is part of the mean. `efficiency`: its mean share
    of the measured roof over `efficiencies` sizes; `best_efficiency`: the largest; both are None without a calibration.
    `worst`: the size with its lowest share or, without a calibration, its lowest speed-up. `excluded`: variants with a wrong or
    impossible result at some size, which cannot be fastest. `tied_sizes` and `unclear_sizes`: at how many sizes several variants
    are the fastest, or may be. `unreliable`: the sizes at which the time of the best variant is unreliable. `above_roof`: why
    `best_efficiency` is above 1.
    """

    fastest: str
    common: int
    alike: tuple[str, ...]
    wins: tuple[Wins, ...]
    problems: int
    covered: int
    speed_up: float | None
    speed_ups: int
    unclear: int
    unclear_speed_ups: int
    efficiency: float | None
    best_efficiency: float | None
    efficiencies: int
    worst: Problem | None
    worst_efficiency: float | None
    worst_speed_up: float | None
    excluded: tuple[str, ...]
    tied_sizes: int
    unclear_sizes: int
    at_each_size: AtEachSize
    unreliable: tuple[Unreliable, ...]
    above_roof: AboveRoof | None = None

    @property
    def most_wins(self) -> tuple[Wins, ...]:
        """The variant that is fastest alone at the most sizes; of several, the one with more ties, or all that are equal in both.
        Empty if no variant is known to be fastest at any size: unclear sizes do not count."""
        won, tied = max((one.won, one.tied) for one in self.wins)
        return tuple(one for one in self.wins if (one.won, one.tied) == (won, tied)) if won or tied else ()

    @property
    def wins_of_best(self) -> Wins:
        """The wins of the best variant overall."""
        return next(one for one in self.wins if one.variant == self.fastest)


def summary(table: Sequence[Row], headline: Headline = "cold") -> Summary | None:
    """The answers, or None while there is no correct time.

    The best variant overall has the lowest geometric mean time among those that cover the most sizes, so that a variant that
    failed at the large sizes cannot win by its small ones. The mean is over the sizes at which all of these variants have a
    stable time: of a time with two levels, it is not known which one counts. If there are none, the variant that leads at the
    most sizes is the best. At a single size the best variant is the leader of the winner map.
    """
    if not isinstance(table, tuple):  # a list may change
        return _summary(table, headline)
    return _computed.get(table, headline, lambda: _summary(table, headline))


def best_of(table: Sequence[Row], headline: Headline = "cold") -> str | None:
    """The best variant overall, None while there is no correct time."""
    answers = summary(table, headline)
    return None if answers is None else answers.fastest


def _summary(table: Sequence[Row], headline: Headline) -> Summary | None:
    excluded = never_winning(table)
    timed = [r for r in table if r.figure is not None and r.result.variant not in excluded]
    if not timed:
        return None
    by_variant = grouped(timed, key=lambda r: r.result.variant)
    leads = winners(table, headline)
    fastest, alike, common = _fastest(by_variant, leads)
    own = by_variant[fastest]
    ratios = [r.speed_up for r in own if r.speed_up is not None]
    undecided = [r for r in own if r.verdict is not None and r.verdict.kind == "unclear"]
    shares = [r.efficiency for r in own if r.efficiency is not None]
    worst = _worst(own)
    return Summary(
        fastest=fastest,
        common=common,
        alike=alike,
        wins=tuple(_wins(name, leads) for name in by_variant),
        problems=len({r.result.problem.key for r in timed}),
        covered=len(own),
        speed_up=geometric_mean(ratios),
        speed_ups=len(ratios),
        unclear=len(undecided),
        unclear_speed_ups=sum(r.speed_up is not None for r in undecided),
        efficiency=sum(shares) / len(shares) if shares else None,
        best_efficiency=max(shares, default=None),
        above_roof=max((r.above_roof for r in own if r.above_roof), key=lambda a: a.share_fraction, default=None),
        efficiencies=len(shares),
        worst=worst.result.problem if worst else None,
        worst_efficiency=worst.efficiency if worst else None,
        worst_speed_up=worst.speed_up if worst else None,
        excluded=excluded,
        tied_sizes=sum(lead.outcome == "tied" for lead in leads),
        unclear_sizes=sum(lead.outcome == "unclear" for lead in leads),
        at_each_size=_at_each_size(fastest, leads),
        unreliable=_unreliable(own, headline),
    )


def _at_each_size(fastest: str, leads: Sequence[Winner]) -> AtEachSize:
    leaders = [lead.leader for lead in leads if lead.leader is not None]
    speed_ups = [row.speed_up for row in leaders]
    known = [speed_up for speed_up in speed_ups if speed_up is not None]
    slower = [lead for lead in leads if lead.names and fastest not in lead.names]
    return AtEachSize(
        variants=len({row.result.variant for row in leaders}),
        slower=len(slower),
        leader_unclear=sum(lead.outcome == "unclear" for lead in slower),
        speed_up=geometric_mean(known) if len(known) == len(speed_ups) else None,
    )


def _unreliable(own: Sequence[Row], headline: Headline) -> tuple[Unreliable, ...]:
    judged = ((row.result.problem, quality(row.result, headline, row.clock)) for row in own)
    return tuple(Unreliable(p, q.reasons[0]) for p, q in judged if q is not None and q.level == "suspect")


def _wins(variant: str, leads: Sequence[Winner]) -> Wins:
    outcomes = Counter(lead.outcome for lead in leads if variant in lead.names)
    return Wins(variant, outcomes["won"], outcomes["tied"], outcomes["unclear"])


def _fastest(by_variant: Mapping[str, Sequence[Row]], leads: Sequence[Winner]) -> tuple[str, tuple[str, ...], int]:
    """The fastest of the variants that cover the most sizes, those whose mean time is within 0.5 % of its own, and the number of
    sizes of the mean."""
    if (
        len(leads) == 1 and leads[0].leader
    ):  # As on the winner map, where shared rounds overrule the order of the estimates.
        stable = not any(row.unstable for group in by_variant.values() for row in group)
        return leads[0].leader.result.variant, (), int(stable)
    most = max(map(len, by_variant.values()))
    times_s = {
        name: {r.result.problem.key: r.time_s for r in group if not r.unstable}
        for name, group in by_variant.items()
        if len(group) == most
    }
    common = set.intersection(*map(set, times_s.values()))
    if not common:
        wins = Counter(lead.leader.result.variant for lead in leads if lead.leader)
        return max(times_s, key=lambda name: wins[name]), (), 0
    means = {name: geometric_mean([times[key] for key in common]) or 0.0 for name, times in times_s.items()}
    fastest = min(means, key=lambda name: means[name])
    limit = means[fastest] * (1 + LEAST_DIFFERENCE)
    alike = tuple(name for name, mean in means.items() if name != fastest and mean <= limit)
    return fastest, alike, len(common)


def _worst(own: Sequence[Row]) -> Row | None:
    by_share = min((r for r in own if r.efficiency is not None), key=lambda r: r.efficiency or 0.0, default=None)
    return by_share or min((r for r in own if r.speed_up is not None), key=lambda r: r.speed_up or 0.0, default=None)
