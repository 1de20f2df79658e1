"""The configurations of a variant: all that its space has, those that make sense for a problem, and some drawn from them."""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Op, Variant

MOST_IN_SPACE = 100_000
"""Each of them is asked whether it makes sense: some tenths of a second for so many."""
MOST_IN_PLAN = 2048


@dataclass(frozen=True, slots=True)
class Drawn:
    """Configurations to be tried, the default first, in the order of the space. `seed`: None where they are all there are."""

    configurations: tuple[dict[str, int], ...]
    space: int
    admitted: int
    seed: int | None


def draw(op: Op, variant: str, problem: Problem, count: int | None = None, seed: int = 0) -> Drawn:
    """`count` configurations of a variant for a problem (None: all), drawn at random with the seed where there are more.

    The default is always one of them, also where the variant's own rule does not admit it: it is what everything else is compared
    with. Errors: UnknownName for the variant, BadField where there is nothing to tune or too much for one plan.
    """
    found = op.of(problem).variant_named(variant)
    keys = tuned_keys(found)
    if found.configuration is not None or not keys:
        tunable = ", ".join(v.name for v in op.of(problem).variants if tuned_keys(v))
        words = f"it has nothing to tune; of op {op.name!r} one can tune: {tunable or 'none'}"
        raise BadField("variant", variant, words)
    if count is not None and count < 2:
        raise BadField("configurations", count, "give at least 2: the default and another one")
    space = prod(len(found.space[key]) for key in keys)
    if space > MOST_IN_SPACE:
        raise BadField("variant", variant, f"its space has {space} configurations, at most {MOST_IN_SPACE} are read")
    everything = [
        {**found.default, **dict(zip(keys, values, strict=True))}
        for values in itertools.product(*(found.space[key] for key in keys))
    ]
    first, rest = everything[0], [c for c in everything[1:] if _admitted(found, c, problem)]
    wanted = len(rest) + 1 if count is None else count
    if min(wanted, len(rest) + 1) > MOST_IN_PLAN:
        raise BadField(
            "configurations", wanted, f"there are {len(rest) + 1}, a plan holds at most {MOST_IN_PLAN}: give a number"
        )
    if wanted > len(rest):
        return Drawn((first, *rest), space, len(rest) + 1, None)
    return Drawn((first, *_some(rest, wanted - 1, seed)), space, len(rest) + 1, seed)


def space_words(variant: Variant) -> str:
    """What of a variant can be tuned; empty where there is nothing.

    >>> from kernelviz.ops import catalogue
    >>> space_words(next(v for v in catalogue()["copy"].variants if not v.space))
    ''
    """
    if not variant.space:
        return ""
    count = prod(len(values) for values in variant.space.values())
    return f"to tune: {', '.join(variant.space)} ({count} configurations)"


def tuned_keys(variant: Variant) -> tuple[str, ...]:
    """The parameters of its space that the function of this direction takes (one of a plug-in, which is elsewhere: all)."""
    known = inspect.signature(variant.bind).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    return tuple(key for key in variant.space if anything or key in known)


def _admitted(variant: Variant, configuration: dict[str, int], problem: Problem) -> bool:
    return variant.admits is None or variant.admits(configuration, problem) is None


def _some(of: Sequence[dict[str, int]], count: int, seed: int) -> list[dict[str, int]]:
    """
    >>> [c["b"] for c in _some([{"b": n} for n in range(10)], 3, seed=1)]
    [1, 2, 4]
    """
    chosen = sorted(random.Random(seed).sample(range(len(of)), count))
    return [of[index] for index in chosen]
