"""What one sentence says about a run: which variant is fastest, at which sizes, and by how much."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from kernelviz.core.problem import Problem, Struct
from kernelviz.metrics.figures import Headline, again_of
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import geometric_mean
from kernelviz.metrics.summary import summary
from kernelviz.metrics.sweep import line_axes, swept_axis, tied_axes
from kernelviz.metrics.winner import Winner, compared, never_winning, winners

Span = Literal["all", "from", "up_to", "between", "some", "none"]
"""At which sizes the variant is fastest: at all, from one size on, up to one, between two, at some that are not neighbours
or vary on several axes; ``none``: no variant leads alone anywhere."""
FIRST_RIVALS = ("torch_compile",)
"""What a reader wants to see beaten besides the baseline: a compiler's answer to the same problem."""


class Insight(Struct, frozen=True, kw_only=True):
    """The variant that leads alone at the most sizes, and the span of these sizes: with the sizes between them, if it may be the
    fastest there too.

    `first` and `last`: the ends of the span on `axes`, the swept axis and those tied to it. `wins`: how many sizes the span
    holds, and `tied`: at how many of them other variants may be as fast. `sizes`: all sizes with a correct time, and `undecided`:
    at how many of them several variants may be the fastest. `unclear_in_span` and `unclear`: how many of these are no ties,
    because noise was too high to compare. `ratio`: the geometric mean, over the `ratio_sizes` sizes of the span, of the time of
    `rival` over that of the variant. `tied_with`: where the span is ``none``, the variants that may be the fastest at every
    size. `variants`: how many have a correct time. `as_many_wins`: other variants that lead alone at as many sizes. `best`: the
    best variant overall (`metrics.summary`) where it is another one; None if it is `variant` or alike, or if that leads nowhere.
    """

    variant: str | None
    span: Span
    axes: tuple[str, ...] = ()
    first: int | None = None
    last: int | None = None
    wins: int = 0
    tied: int = 0
    sizes: int = 0
    undecided: int = 0
    unclear: int = 0
    unclear_in_span: int = 0
    rival: str | None = None
    ratio: float | None = None
    ratio_sizes: int = 0
    tied_with: tuple[str, ...] = ()
    variants: int = 0
    as_many_wins: tuple[str, ...] = ()
    best: str | None = None


def insight(table: Sequence[Row], headline: Headline = "cold") -> Insight | None:
    """The insight of a run's rows; None if no case has a correct time."""
    leads = [w for w in winners(table, headline) if w.names]
    if not leads:
        return None
    variants = len({row.result.variant for w in leads for row in w.timed})
    problems = [w.problem for w in leads]
    axis = _axis(problems)
    if axis is not None:
        leads.sort(key=lambda w: w.problem.sizes[axis])
    alone = _alone_at_most(leads)
    stretch = _filled(leads, alone) if axis is not None else alone
    undecided = sum(len(w.names) > 1 for w in leads)
    unclear = sum(w.outcome == "unclear" for w in leads)
    if not stretch:
        alike = set.intersection(*(set(w.names) for w in leads))
        names = tuple(r.result.variant for r in leads[-1].timed if r.result.variant in alike)
        return Insight(
            variant=None,
            span="none",
            sizes=len(leads),
            undecided=undecided,
            unclear=unclear,
            tied_with=names,
            variants=variants,
        )
    variant = next(w.names[0] for w in stretch if len(w.names) == 1)
    rival = _rival(table, stretch, variant)
    ratios = _ratios(table, stretch, variant, rival, headline) if rival is not None else []
    return Insight(
        variant=variant,
        span=_span(leads, stretch, axis),
        axes=tied_axes(problems, axis) if axis is not None else (),
        first=stretch[0].problem.sizes[axis] if axis is not None else None,
        last=stretch[-1].problem.sizes[axis] if axis is not None else None,
        wins=len(stretch),
        tied=sum(len(w.names) > 1 for w in stretch),
        sizes=len(leads),
        undecided=undecided,
        unclear=unclear,
        unclear_in_span=sum(w.outcome == "unclear" for w in stretch),
        rival=rival,
        ratio=geometric_mean(ratios),
        ratio_sizes=len(ratios),
        variants=variants,
        as_many_wins=_as_many_wins(leads, variant),
        best=_other_best(table, headline, variant),
    )


def _as_many_wins(leads: Sequence[Winner], variant: str) -> tuple[str, ...]:
    alone = Counter(w.names[0] for w in leads if len(w.names) == 1)
    return tuple(name for name, wins in alone.items() if name != variant and wins == alone[variant])


def _other_best(table: Sequence[Row], headline: Headline, variant: str) -> str | None:
    answers = summary(table, headline)
    if answers is None or answers.problems < 2 or variant in (answers.fastest, *answers.alike):
        return None
    return answers.fastest


def _axis(problems: Sequence[Problem]) -> str | None:
    """The swept axis if the sizes are one line along it, else None."""
    axis = swept_axis(problems)
    one_line = axis is not None and len({p.sizes.get(axis) for p in problems}) == len(problems)
    return axis if axis is not None and one_line and not line_axes(problems, axis) else None


def _alone_at_most(leads: Sequence[Winner]) -> list[Winner]:
    """The sizes at which the variant leads alone that does so at the most sizes; empty if none does anywhere."""
    alone = Counter(w.names[0] for w in leads if len(w.names) == 1)
    most = max(alone, key=lambda name: alone[name], default=None)
    return [w for w in leads if w.names == (most,)]


def _filled(line: Sequence[Winner], wins: Sequence[Winner]) -> Sequence[Winner]:
    """All sizes from the first to the last of `wins`, if their variant may be the fastest at each of them; else `wins`."""
    indices = [place for place, one in enumerate(line) if any(one is win for win in wins)]
    between = line[indices[0] : indices[-1] + 1] if indices else ()
    return between if all(wins[0].names[0] in one.names for one in between) else wins


def _span(leads: Sequence[Winner], stretch: Sequence[Winner], axis: str | None) -> Span:
    if len(stretch) == len(leads):
        return "all"
    indices = [place for place, one in enumerate(leads) if any(one is part for part in stretch)]
    if axis is None or indices[-1] - indices[0] + 1 != len(indices):
        return "some"
    if stretch[-1] is leads[-1]:
        return "from"
    return "up_to" if stretch[0] is leads[0] else "between"


def _rival(table: Sequence[Row], stretch: Sequence[Winner], variant: str) -> str | None:
    """The variant to compare with: the faster one of torch.compile and the baseline over the stretch. Without a time of either,
    the one that comes second at the most sizes."""
    times_s: dict[str, dict[str, float]] = {}
    for one in stretch:
        for row in one.timed:
            times_s.setdefault(row.result.variant, {})[one.problem.key] = row.time_s
    for name in (variant, *never_winning(table)):
        times_s.pop(name, None)
    baseline = tuple(dict.fromkeys(r.result.variant for r in table if r.is_baseline))
    known = [name for name in dict.fromkeys((*FIRST_RIVALS, *baseline)) if name in times_s]
    if known:
        # At the sizes that all of them have: one that has only the small sizes would look fast.
        shared = set.intersection(*(set(times_s[name]) for name in known))
        if not shared:
            return max(known, key=lambda name: len(times_s[name]))
        return min(known, key=lambda name: geometric_mean([times_s[name][key] for key in shared]) or 0.0)
    seconds = Counter(w.second.result.variant for w in stretch if w.second)
    return next((name for name, _ in seconds.most_common() if name in times_s), None)


def _ratios(
    table: Sequence[Row], stretch: Sequence[Winner], variant: str, rival: str, headline: Headline
) -> list[float]:
    """The rival's time over the variant's at each size of the stretch where both have one, by shared rounds if there are any."""
    bases = {r.result.problem.key: r for r in table if r.is_baseline}
    ratios = []
    for one in stretch:
        own, other = (next((r for r in one.timed if r.result.variant == name), None) for name in (variant, rival))
        if own is None or other is None or own.figure is None or other.figure is None:
            continue
        base = bases.get(one.problem.key)
        again = again_of(base.result.timing if base else None, headline)
        ratio = compared(other.figure, own.figure, base.figure if base else None, again).ratio
        ratios.append(ratio.estimate if ratio is not None else other.time_s / own.time_s)
    return ratios
