"""Text of the winner map: the fastest variant up to each size, for the terminal, pages and screen readers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelviz.metrics.rows import Row
from kernelviz.metrics.sweep import line_sizes, swept_axis, tied_axes
from kernelviz.metrics.winner import Winner, never_winning
from kernelviz.text.verdicts import describe_verdict_reason

Name = Callable[[str], str]
Size = Callable[[int], str]
Beside = tuple[tuple[str, int], ...]
"""The sizes on the axes other than the one along which a strip runs."""


@dataclass(frozen=True, slots=True)
class Region:
    """Neighbouring sizes of a strip with a variant that may be the fastest at all of them; None if no time is correct."""

    variant: str | None
    winners: tuple[Winner, ...]

    @property
    def undecided(self) -> int:
        """The number of sizes at which other variants are tied with the leader."""
        return sum(len(w.names) > 1 for w in self.winners)

    @property
    def level(self) -> tuple[str, ...]:
        """The other variants, if the same variants are tied at every size of the region; else empty."""
        alike = {frozenset(w.names) for w in self.winners}
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


def regions(strip: Sequence[Winner]) -> list[Region]:
    """Divide the strip into as few regions as possible, so that in each a variant may be the fastest at all sizes.

    If there are several such variants, the region is named after the one that leads alone at the most sizes, and then after the
    one that leads at the most sizes.
    """
    finished: list[Region] = []
    part: list[Winner] = []
    common: set[str] = set()
    for one in strip:
        left = common & set(one.names) if part else set(one.names)
        if part and not left and (common or one.names):
            finished.append(_region(part, common))
            part, left = [], set(one.names)
        part, common = [*part, one], left
    return [*finished, _region(part, common)] if part else finished


def _region(part: Sequence[Winner], common: set[str]) -> Region:
    if not common:
        return Region(None, tuple(part))
    alone = Counter(w.names[0] for w in part if len(w.names) == 1)
    first = Counter(w.names[0] for w in part)
    return Region(max(sorted(common), key=lambda v: (alone[v], first[v])), tuple(part))


def describe_winners(
    table: Sequence[Row], winners: Sequence[Winner], axis: str | None, name: Name, size: Size
) -> list[str]:
    """A line for each strip; strips with the same text share a line.

    If there are several strips, the first line counts the sizes at which each variant leads. The last line lists variants that
    are excluded. `name` and `size` format a variant and a size.
    """
    by_other_sizes = strips(winners, axis)
    if not by_other_sizes:
        return []
    along = axis or swept_axis([w.problem for w in winners]) or ""
    tied = tied_axes([w.problem for w in winners], along)
    said: dict[str, list[Beside]] = {}
    for beside, strip in by_other_sizes.items():
        said.setdefault(_describe_strip(strip, " = ".join(tied), along, name, size), []).append(beside)
    lines = [_count_winners(winners, name)] if len(by_other_sizes) > 1 else []
    lines += [f"{_format_other_sizes(where, size)}{line}" for line, where in said.items()]
    wrong = [name(v) for v in never_winning(table)]
    return lines + ([f"Excluded because of a wrong or impossible result: {', '.join(wrong)}."] if wrong else [])


def _format_other_sizes(where: Sequence[Beside], size: Size) -> str:
    """The other sizes: "m = 16, 64: " for one other axis, "m = 16 and k = 8; m = 64 and k = 8: " for several."""
    if not where or not where[0]:
        return ""
    if len(where[0]) == 1:
        return f"{where[0][0][0]} = {', '.join(size(b[0][1]) for b in where)}: "
    return "; ".join(" and ".join(f"{a} = {size(s)}" for a, s in beside) for beside in where) + ": "


def _count_winners(winners: Sequence[Winner], name: Name) -> str:
    alone = Counter(w.names[0] for w in winners if len(w.names) == 1)
    undecided = sum(len(w.names) > 1 for w in winners)
    parts = [f"{name(v)} leads alone at {n}" for v, n in alone.most_common()]
    parts += [f"{undecided} with a tie of the fastest"] if undecided else []
    without = sum(not w.names for w in winners)
    parts += [f"{without} without a correct time"] if without else []
    return f"Of {len(winners)} sizes: {', '.join(parts)}."


def _describe_strip(strip: Sequence[Winner], axes: str, along: str, name: Name, size: Size) -> str:
    parts = regions(strip)
    if len(parts) == 1:
        if parts[0].variant is None:
            return "no correct time at any size."
        return _leads(parts[0], name) + (f" at all {len(strip)} sizes." if len(strip) > 1 else ".")
    said = []
    for number, region in enumerate(parts):
        last = size(region.winners[-1].problem.sizes[along])
        up_to = "" if number == len(parts) - 1 else f" up to {f'{axes} = ' if not number else ''}{last}"
        said.append((_leads(region, name) if not number else f"then {_who(region, name)}") + up_to)
    return ", ".join(said) + "."


def _leads(region: Region, name: Name) -> str:
    """The first region of a sentence. A variant that is tied at every size only "may lead"."""
    if region.variant is None:
        return _who(region, name)
    certain = region.level or region.undecided < len(region.winners)
    return f"{_who(region, name)} {'leads' if certain else 'may lead'}"


def _who(region: Region, name: Name) -> str:
    """The variant of the region, and at how many sizes it is tied with others."""
    if region.variant is None:
        return "no correct time"
    who, count = name(region.variant), len(region.winners)
    if not region.undecided:
        return who
    if region.level:
        return f"{' or '.join((who, *map(name, region.level)))} (tied)"
    if region.undecided < count:
        return f"{who} (tied with others at {region.undecided} of {count} sizes)"
    return f"{who} (tied with others at every size)"


def record(one: Winner) -> dict[str, object]:
    """The winner as a row of a table. Times are in seconds, unknown values are None, and tied variants are a tuple."""
    problem, ratio = one.problem, one.verdict.ratio if one.verdict else None
    figure = one.leader.figure if one.leader else None
    second = one.second.figure if one.second else None
    return {
        "op": problem.op,
        **problem.sizes,
        "dtype": problem.dtype,
        "fastest": one.leader.result.variant if one.leader else None,
        "decided": None if one.leader is None else not one.tied,
        "tied": one.tied,
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
