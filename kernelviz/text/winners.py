"""Text of winners: who is best overall, who wins the most sizes, and the fastest variant up to each size."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelviz.core import Stage, units
from kernelviz.metrics.rows import Row
from kernelviz.metrics.summary import Summary
from kernelviz.metrics.sweep import companion_axes, line_sizes, swept_axis, tied_axes
from kernelviz.metrics.winner import Winner, mistakes
from kernelviz.text.sizes import format_sizes
from kernelviz.text.text import sentence_case
from kernelviz.text.verdicts import describe_verdict_reason

Name = Callable[[str], str]
Size = Callable[[int], str]
Beside = tuple[tuple[str, int], ...]
"""The sizes on the axes other than the one along which a strip runs."""
_MOST_NAMES = 2
"""Of more variants that are tied with the fastest, a sentence gives their number. The map's hover text names them all."""
_MISTAKES: Mapping[frozenset[Stage], str] = {
    frozenset({"wrong"}): "a wrong result",
    frozenset({"impossible"}): "an impossible time",
    frozenset({"wrong", "impossible"}): "a wrong result and an impossible time",
}
"""What excludes a variant, by the stages of its failures."""
_DID: Mapping[frozenset[Stage], str] = {
    frozenset({"wrong"}): "computed a wrong result",
    frozenset({"impossible"}): "reported an impossible time",
    frozenset({"wrong", "impossible"}): "computed a wrong result and reported an impossible time",
}


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring sizes of a strip with a variant that may be the fastest at all of them; None if no time is correct."""

    variant: str | None
    winners: tuple[Winner, ...]

    @property
    def tied(self) -> int:
        """The number of sizes at which several variants are equally fast and faster than all others."""
        return sum(w.outcome == "tied" for w in self.winners)

    @property
    def unclear(self) -> int:
        """The number of sizes at which it is not known which of several variants is the fastest."""
        return sum(w.outcome == "unclear" for w in self.winners)

    @property
    def level(self) -> tuple[str, ...]:
        """The other variants, if at every size of the region the same variants are tied, or are unclear; else empty."""
        alike = {(w.outcome, frozenset(w.names)) for w in self.winners}
        return tuple(n for n in self.winners[0].names if n != self.variant) if len(alike) == 1 else ()


def strips(winners: Sequence[Winner], axis: str | None = None) -> dict[Beside, list[Winner]]:
    """The winners along an axis: one strip for each combination of sizes on the other axes, in the order of sizes."""
    problems = [w.problem for w in winners]
    along = axis or swept_axis(problems)
    if along is None:
        return {}
    by_other_sizes: dict[Beside, list[Winner]] = {}
    for one in sorted(winners, key=lambda w: w.problem.sizes[along]):
        by_other_sizes.setdefault(line_sizes(one.problem, problems, along), []).append(one)
    return dict(sorted(by_other_sizes.items()))


def regions(strip: Sequence[Winner], best: str | None = None) -> list[Region]:
    """Divide the strip into as few regions as possible, so that in each a variant may be the fastest at all sizes. Unclear
    sizes at the end of a region belong to the next one if another variant leads there, unless no size of the region is decided.

    If there are several such variants, the region is named after the one that leads alone at the most sizes, then after `best`
    (the best variant overall, so that no other one is named the fastest beside it), and then after the one that leads at the
    most sizes.
    """
    finished: list[Region] = []
    rest = strip
    while rest:
        finished.append(_first_region(rest, best))
        rest = rest[len(finished[-1].winners) :]
    return finished


def _first_region(strip: Sequence[Winner], best: str | None) -> Region:
    """The region at the beginning of a strip: as long as possible, but for unclear sizes at its end."""
    common, count = set(strip[0].names), 1
    for one in strip[1:]:
        left = common & set(one.names)
        if not left and (common or one.names):
            break
        common, count = left, count + 1
    region = _region(strip[:count], common, best)
    if any(w.outcome != "unclear" for w in region.winners):
        while strip[count - 1].outcome == "unclear" and strip[count - 1].names[0] != region.variant:
            count -= 1
    return Region(region.variant, region.winners[:count])


def _region(part: Sequence[Winner], common: set[str], best: str | None) -> Region:
    if not common:
        return Region(None, tuple(part))
    alone = Counter(w.names[0] for w in part if len(w.names) == 1)
    first = Counter(w.names[0] for w in part)
    return Region(max(sorted(common), key=lambda v: (alone[v], v == best, first[v])), tuple(part))


def describe_winners(
    table: Sequence[Row], winners: Sequence[Winner], axis: str | None, name: Name, size: Size, best: str | None = None
) -> list[str]:
    """A line for each strip; strips with the same text share a line.

    If there are several strips, the first line counts the sizes at which each variant leads. The last line lists variants that
    are excluded. `name` and `size` format a variant and a size. `best`: the best variant overall, see
    `regions`.
    """
    by_other_sizes = strips(winners, axis)
    if not by_other_sizes:
        return []
    along = axis or swept_axis([w.problem for w in winners]) or ""
    axes = " = ".join(tied_axes([w.problem for w in winners], along))
    together = companion_axes([w.problem for w in winners], along)
    said: dict[str, list[Beside]] = {}
    for beside, strip in by_other_sizes.items():
        said.setdefault(_describe_strip(regions(strip, best), axes, along, name, size, together), []).append(beside)
    lines = [_count_winners(winners, name)] if len(by_other_sizes) > 1 else []
    lines += [f"{_format_other_sizes(where, size)}{line}" for line, where in said.items()]
    excluded = (
        f"Excluded because of {_MISTAKES[stages]}: {', '.join(map(name, variants))}."
        for stages, variants in by_mistake(mistakes(table)).items()
    )
    return [*lines, *excluded]


def by_mistake(mistakes_of: Mapping[str, frozenset[Stage]]) -> dict[frozenset[Stage], tuple[str, ...]]:
    """The variants with each kind of mistake, those with a wrong result first.

    >>> wrong, impossible = frozenset({"wrong"}), frozenset({"impossible"})
    >>> [variants for variants in by_mistake({"a": impossible, "b": wrong, "c": wrong}).values()]
    [('b', 'c'), ('a',)]
    """
    groups = {stages: tuple(v for v, of in mistakes_of.items() if of == stages) for stages in _MISTAKES}
    return {stages: variants for stages, variants in groups.items() if variants}


def describe_mistake(stages: frozenset[Stage]) -> str:
    """What a variant with these failures did."""
    return _DID[stages]


def _format_other_sizes(where: Sequence[Beside], size: Size) -> str:
    """The other sizes: "m = 16, 64: " for one other axis, "m = 16 and k = 8; m = 64 and k = 8: " for several."""
    if not where or not where[0]:
        return ""
    if len(where[0]) == 1:
        return f"{where[0][0][0]} = {', '.join(size(b[0][1]) for b in where)}: "
    return "; ".join(" and ".join(f"{a} = {size(s)}" for a, s in beside) for beside in where) + ": "


def _count_winners(winners: Sequence[Winner], name: Name) -> str:
    alone = Counter(w.names[0] for w in winners if len(w.names) == 1)
    outcomes = Counter(w.outcome for w in winners)
    parts = [f"{name(v)} is fastest at {n}" for v, n in alone.most_common()]
    parts += [f"several are tied at {outcomes['tied']}"] if outcomes["tied"] else []
    parts += [f"it is unclear at {outcomes['unclear']}"] if outcomes["unclear"] else []
    parts += [f"{outcomes['none']} have no correct time"] if outcomes["none"] else []
    return f"Of {len(winners)} sizes: {', '.join(parts)}."


def _describe_strip(
    parts: Sequence[Region], axes: str, along: str, name: Name, size: Size, together: Sequence[str]
) -> str:
    if len(parts) == 1:
        count = len(parts[0].winners)
        if parts[0].variant is None:
            return "no correct time at any size."
        return _sentence(parts[0], name, f" at {units.all_of(count, 'size')}" if count > 1 else "") + "."
    said = []
    for number, region in enumerate(parts):
        problem = region.winners[-1].problem
        beside = format_sizes(problem, together)
        last = size(problem.sizes[along]) + (f" ({beside})" if beside else "")
        up_to = "" if number == len(parts) - 1 else f" up to {f'{axes} = ' if not number else ''}{last}"
        said.append(f"then {_who(region, name)}{up_to}{_doubts(region)}" if number else _sentence(region, name, up_to))
    return ", ".join(said) + "."


def _sentence(region: Region, name: Name, where: str) -> str:
    """The first region of a sentence. A variant that is not known to be the fastest at half of the sizes
    or more only "may be"."""
    if region.variant is None:
        return f"no correct time{where}"
    if 0 < len(region.level) <= _MOST_NAMES:
        verb = "are the fastest" if region.tied else "is the fastest"
    else:
        count = len(region.winners)
        uncertain = region.unclear and (2 * region.unclear >= count or region.tied + region.unclear == count)
        verb = "may be the fastest" if uncertain else "is the fastest"
    return f"{_who(region, name)} {verb}{where}{_doubts(region)}"


def _who(region: Region, name: Name) -> str:
    """The variant of the region, or all variants, if the same ones are tied or unclear at each of its sizes."""
    if region.variant is None:
        return "no correct time"
    names = (region.variant, *(region.level if len(region.level) <= _MOST_NAMES else ()))
    return (" and " if region.tied else " or ").join(map(name, names))


def _doubts(region: Region) -> str:
    """At how many sizes of the region others are tied with the variant, or it is unclear which is the fastest."""
    count = len(region.winners)
    outcomes = (("tied", region.tied), ("unclear", region.unclear))
    if region.variant is None or not region.tied + region.unclear:
        return ""
    if len(region.level) > _MOST_NAMES:
        return f" ({'tied with' if region.tied else 'unclear against'} {len(region.level)} others)"
    if region.level:
        return " (tied)" if region.tied else " (unclear which)"
    parts = [f"{outcome} at {'every size' if n == count else n}" for outcome, n in outcomes if n]
    return f" ({', '.join(parts)}{'' if count in (region.tied, region.unclear) else f' of {count} sizes'})"


def describe_mean_time(summary: Summary, name: Name) -> str:
    """Why the best variant overall is the best: "lowest geometric mean time, 11 sizes; within 0.5 % of cuda vec16"."""
    if not summary.common:
        return "fastest at the most sizes; no size has a stable time of all variants"
    of = f" of {summary.problems}" if summary.common < summary.problems else ""
    basis = f"lowest geometric mean time, {summary.common}{of} {'size' if summary.problems == 1 else 'sizes'}"
    if not summary.alike:
        return basis
    more = f" and {len(summary.alike) - 1} more" if len(summary.alike) > 1 else ""
    return f"{basis}; within 0.5 %: {name(summary.alike[0])}{more}"


def describe_doubts(summary: Summary) -> str:
    """A sentence: at how many sizes the best variant overall is slower than another one, and at how many that is unclear. Empty
    where it is the fastest at each size."""
    each, unclear, sizes = summary.at_each_size, summary.wins_of_best.unclear, summary.problems
    which = f" (unclear which one at {each.leader_unclear})" if each.leader_unclear else ""
    parts = [f"another variant is faster at {each.slower} of {sizes}{which}"] if each.slower else []
    parts += [f"unclear against another variant at {unclear} of {sizes}"] if unclear else []
    return f"{sentence_case('; '.join(parts))}." if parts else ""


def format_most_wins(summary: Summary, name: Name) -> str:
    """The variants that win the most sizes: "cuda vec16", "cuda vec16, triton block", "cuda vec16 and 2 others", or "undecided".
    Of several, the best variant overall is first; without it, more than two are counted: "3 variants"."""
    most = sorted(summary.most_wins, key=lambda one: one.variant != summary.fastest)  # stable
    if not most:
        return "undecided"
    if len(most) < 3:
        return ", ".join(name(one.variant) for one in most)
    return (
        f"{name(most[0].variant)} and {len(most) - 1} others"
        if most[0].variant == summary.fastest
        else f"{len(most)} variants"
    )


def describe_most_wins(summary: Summary) -> str:
    """At how many sizes they win: "alone at 4 of 11 sizes, tied at 3, unclear at 1". Of several variants, unclear sizes are
    counted only if no variant wins any size alone: then those of the run."""
    most = summary.most_wins
    of = "1 size" if summary.problems == 1 else f"{summary.problems} sizes"
    if not most:
        return f"at {units.all_of(summary.problems, 'size')} it is unclear which variant is the fastest"
    first = most[0]
    parts = [f"alone at {first.won} of {of}" if first.won else f"alone at none of {of}"]
    parts += [f"tied at {first.tied}"] if first.tied else []
    unclear = first.unclear if len(most) == 1 else 0 if first.won else summary.unclear_sizes
    parts += [f"unclear at {unclear}"] if unclear else []
    return ("each " if len(most) > 1 else "") + ", ".join(parts)


def record(one: Winner) -> dict[str, object]:
    """The winner as a row of a table. Times are in seconds, unknown values are None, tied and unclear variants are tuples."""
    problem, ratio = one.problem, one.verdict.ratio if one.verdict else None
    figure = one.leader.figure if one.leader else None
    second = one.second.figure if one.second else None
    return {
        "op": problem.op,
        **problem.sizes,
        "dtype": problem.dtype,
        "fastest": one.leader.result.variant if one.leader else None,
        "decided": None if one.leader is None else one.outcome == "won",
        "tied": one.tied,
        "unclear": one.unclear,
        "time_s": figure.estimate if figure else None,
        "time_low_s": figure.low if figure else None,
        "time_high_s": figure.high if figure else None,
        "second": one.second.result.variant if one.second else None,
        "second_time_s": second.estimate if second else None,
        "ratio": one.ratio,
        "ratio_low": ratio.low if ratio else None,
        "ratio_high": ratio.high if ratio else None,
        "reason": str(describe_verdict_reason(one.verdict.reason)) if one.verdict else None,
        "compared": len(one.timed),
    }
