"""Why two runs have no case in common, as tagged values. `kernelviz.text.no_common_case` has the text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Problem, Result
from kernelviz.metrics.comparison import Comparison

Part = Literal["op", "dtype", "compute", "direction", "variant"]
_PARTS: tuple[tuple[Part, Callable[[Result], str | None]], ...] = (
    ("dtype", lambda r: r.problem.dtype),
    ("compute", lambda r: r.problem.compute),
    ("direction", lambda r: r.problem.direction),
    ("variant", lambda r: r.variant),
)


@dataclass(frozen=True, slots=True)
class NoResults:
    """These sides have no result of the chosen variant, or none at all."""

    sides: tuple[Literal["A", "B"], ...]


@dataclass(frozen=True, slots=True)
class OtherPart:
    """A and B share no value of this part of a case. None is the op's usual precision of arithmetic."""

    what: Part
    a: tuple[str | None, ...]
    b: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class OtherSizes:
    """The same op, but no size of A is a size of B. One problem for each size, in the order of the plans."""

    a: tuple[Problem, ...]
    b: tuple[Problem, ...]

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that have no size in common; all axes if each has one."""
        axes = tuple(self.a[0].sizes)
        apart = [x for x in axes if not {p.sizes[x] for p in self.a} & {p.sizes.get(x) for p in self.b}]
        return tuple(apart) or axes


@dataclass(frozen=True, slots=True)
class NoCombination:
    """Each part of a case is in both runs, but no combination of them is."""


NoCommonCase = NoResults | OtherPart | OtherSizes | NoCombination


def why_no_common_case(comparison: Comparison) -> tuple[NoCommonCase, ...]:
    """The reasons, all at once, so that removing one of them does not uncover another. Empty if there is a pair."""
    if comparison.pairs:
        return ()
    a, b = comparison.only_a, comparison.only_b
    if not a or not b:
        sides: tuple[Literal["A", "B"], ...] = ("A", "B")
        return (NoResults(tuple(side for side, results in zip(sides, (a, b), strict=True) if not results)),)
    ops = OtherPart("op", _values(a, lambda r: r.problem.op), _values(b, lambda r: r.problem.op))
    if not set(ops.a) & set(ops.b):
        return (ops,)
    parts = [OtherPart(what, _values(a, of), _values(b, of)) for what, of in _PARTS]
    reasons: list[NoCommonCase] = [
        part
        for part in parts
        if not set(part.a) & set(part.b) and not (part.what == "variant" and comparison.by_problem)
    ]
    sizes = OtherSizes(_sizes(a), _sizes(b))
    if not {_key(p) for p in sizes.a} & {_key(p) for p in sizes.b}:
        reasons.append(sizes)
    return tuple(reasons) or (NoCombination(),)


def _values(results: Sequence[Result], of: Callable[[Result], str | None]) -> tuple[str | None, ...]:
    return tuple(dict.fromkeys(of(r) for r in results))


def _key(problem: Problem) -> tuple[tuple[str, int], ...]:
    return tuple(problem.sizes.items())


def _sizes(results: Sequence[Result]) -> tuple[Problem, ...]:
    """One problem for each combination of sizes."""
    return tuple({_key(r.problem): r.problem for r in reversed(results)}.values())[::-1]
