"""How far an op's own ladder gets: its best own variant against the libraries and the measured roof, problem by problem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelviz.core.problem import Cost, Problem
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import Roof, Run
from kernelviz.metrics.roofline import bandwidth_bytes_per_s, efficiency, stream_name
from kernelviz.metrics.roofs import STREAMS
from kernelviz.metrics.summary import figure_of
from kernelviz.metrics.sweep import problem_words
from kernelviz.metrics.winner import NEVER_WINNING

OWN = ("triton", "cuda", "cpp")
"""Backends of kernels that are written here. Everything else is a library: torch's own kernels, inductor's, Liger's."""
EAGER, COMPILED, LIGER = "torch_eager", "torch_compile", "liger"


@dataclass(frozen=True, slots=True)
class Standing:
    """One problem: the fastest correct variant of our own, and those of the libraries.

    `ratio`: time of the best library over that of the best own variant, at least 1 where ours is not slower; `share`: of the
    measured roof of the problem's read:write mix. None where a side has no correct time.
    """

    problem: Problem
    cost: Cost
    own: Result | None
    library: Result | None
    named: dict[str, Result]
    share: float | None

    @property
    def ratio(self) -> float | None:
        own, library = time_s(self.own), time_s(self.library)
        return None if own is None or library is None else library / own

    def bandwidth(self, result: Result | None) -> float | None:
        """Bytes that the problem needs over the time of this variant, bytes/s."""
        found = time_s(result)
        return None if found is None else bandwidth_bytes_per_s(self.cost, found)


def time_s(result: Result | None) -> float | None:
    """The cold device time of a correct result."""
    cold = figure_of(result.timing, "cold") if result is not None else None
    return None if cold is None else cold.estimate


def standings(runs: Iterable[Run], roofs: Sequence[Roof] = ()) -> tuple[Standing, ...]:
    """A standing a problem, op by op, forward before backward; a problem that was measured again counts as last measured.

    A variant that was wrong, or impossibly fast, at one problem of a run leads at none of that run.
    `roofs`: held against instead of those that each run knows.
    """
    found: dict[str, Standing] = {}
    for run in runs:
        by_problem: dict[str, list[Result]] = {}
        wrong = {r.variant for r in run.results if isinstance(r.outcome, Failure) and r.outcome.stage in NEVER_WINNING}
        for result in run.results:
            if result.variant not in wrong:
                by_problem.setdefault(result.problem.key, []).append(result)
        for key, results in by_problem.items():
            made = _standing(results, roofs or run.environment.roofs)
            if made is not None:
                found[key] = made
    # Stable: the problems of an op stay in the order of their plan.
    return tuple(sorted(found.values(), key=lambda s: (s.problem.op, s.problem.direction == "backward")))


def _standing(results: Sequence[Result], roofs: Sequence[Roof]) -> Standing | None:
    cost = next((r.cost for r in results if r.cost is not None), None)
    if cost is None:
        return None
    timed = sorted((r for r in results if time_s(r) is not None), key=lambda r: time_s(r) or math.inf)
    own = next((r for r in timed if r.backend in OWN), None)
    library = next((r for r in timed if r.backend not in OWN), None)
    return Standing(
        problem=results[0].problem,
        cost=cost,
        own=own,
        library=library,
        named={r.variant: r for r in timed},
        share=efficiency(own, roofs) if own is not None else None,
    )


def mean_ratio(found: Iterable[Standing]) -> float | None:
    """The geometric mean of the ratios that are known.

    >>> mean_ratio([]) is None
    True
    """
    logs = [math.log(s.ratio) for s in found if s.ratio]
    return math.exp(sum(logs) / len(logs)) if logs else None


def words(standing: Standing) -> tuple[str, ...]:
    """The cells of a row: problem, mix of bytes, best own variant, its rate, those of eager, compile, Liger, ratio, share."""
    own = standing.own
    named = standing.named
    rates = (own, named.get(EAGER), named.get(COMPILED), named.get(LIGER))
    best = standing.library
    # A library that is none of the three says its name.
    other = f" ({best.variant})" if best is not None and best.variant not in (EAGER, COMPILED, LIGER) else ""
    return (
        problem_words(standing.problem),
        STREAMS[stream_name(standing.cost)],
        own.variant if own is not None else "none is right",
        *(_rate(standing, r) for r in rates),
        "–" if standing.ratio is None else f"{standing.ratio:.2f}{other}",
        "–" if standing.share is None else f"{100 * standing.share:.0f} %",
    )


HEADINGS = (
    "problem",
    "bytes",
    "best own variant",
    "GB/s",
    "eager",
    "compile",
    "Liger",
    "own / best library",
    "of the roof",
)


def _rate(standing: Standing, result: Result | None) -> str:
    found = standing.bandwidth(result)
    return "–" if found is None else f"{found / 1e9:,.0f}" if found >= 1e10 else f"{found / 1e9:.2g}"


def markdown(found: Sequence[Standing]) -> str:
    """The table, for docs/kernels.md.

    >>> print(markdown([]).splitlines()[1])
    |---|---|---|--:|--:|--:|--:|--:|--:|
    """
    lines = [f"| {' | '.join(HEADINGS)} |", "|---|---|---|--:|--:|--:|--:|--:|--:|"]
    lines += [f"| {' | '.join(words(s))} |" for s in found]
    return "\n".join(lines)


def conclusion(found: Sequence[Standing]) -> str:
    """What the table says in one line.

    >>> conclusion([])
    'no problem with a correct time of an own variant and of a library'
    """
    both = [s for s in found if s.ratio is not None]
    mean = mean_ratio(both)
    if mean is None:
        return "no problem with a correct time of an own variant and of a library"
    behind = sum(round(s.ratio or 0, 2) < 1 for s in both)
    return (
        f"{len(both)} problems: geometric mean of own / best library {mean:.2f}; "
        f"{len(both) - behind} at 1.00 or above, {behind} below"
    )
