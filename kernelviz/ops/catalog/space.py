"""The configurations of a variant: those in its space, those that it admits for a problem, and a random selection of these."""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.variant import Variant

MOST_IN_SPACE = 100_000
"""`admits` is called for each of them, which takes some tenths of a second for this many."""
MOST_IN_PLAN = 2048


@dataclass(frozen=True, slots=True)
class Selection:
    """Configurations to measure, the default first, in the order of the space. `parameters`: the values of each in the space.
    `seed`: None if all admitted ones are here."""

    configurations: tuple[dict[str, int], ...]
    parameters: dict[str, tuple[int, ...]]
    space: int
    admitted: int
    seed: int | None


def draw(op: Op, variant: str, problem: Problem, count: int | None = None, seed: int = 0) -> Selection:
    """`count` configurations of a variant for a problem (None: all), selected at random with the seed if there are more.

    The default is always one of them, even if the variant does not admit it, because the others are compared with it.
    Errors: UnknownName for the variant, BadField if there is nothing to tune, or too much for one plan.
    """
    tuned = op.of(problem).variant_named(variant)
    keys = tuned_keys(tuned)
    if tuned.configuration is not None or not keys:
        tunable = ", ".join(v.name for v in op.of(problem).variants if tuned_keys(v))
        raise BadField(
            "variant", variant, f"it has nothing to tune; of op {op.name!r} one can tune: {tunable or 'none'}"
        )
    if count is not None and count < 2:
        raise BadField("configurations", count, "give at least 2: the default and another one")
    space = prod(len(tuned.space[key]) for key in keys)
    if space > MOST_IN_SPACE:
        raise BadField("variant", variant, f"its space has {space} configurations, at most {MOST_IN_SPACE} are read")
    everything = [
        {**tuned.default, **dict(zip(keys, values, strict=True))}
        for values in itertools.product(*(tuned.space[key] for key in keys))
    ]
    parameters = {key: tuple(tuned.space[key]) if key in keys else (value,) for key, value in tuned.default.items()}
    first, rest = everything[0], [c for c in everything[1:] if _admitted(tuned, c, problem)]
    wanted = len(rest) + 1 if count is None else count
    if min(wanted, len(rest) + 1) > MOST_IN_PLAN:
        raise BadField(
            "configurations", wanted, f"there are {len(rest) + 1}, a plan holds at most {MOST_IN_PLAN}: give a number"
        )
    if wanted > len(rest):
        return Selection((first, *rest), parameters, space, len(rest) + 1, None)
    return Selection((first, *_some(rest, wanted - 1, seed)), parameters, space, len(rest) + 1, seed)


def format_space(variant: Variant) -> str:
    """The parameters of a variant that can be tuned; empty if there are none.

    >>> from kernelviz.ops import catalogue
    >>> format_space(next(v for v in catalogue()["copy"].variants if not v.space))
    ''
    """
    if not variant.space:
        return ""
    count = prod(len(values) for values in variant.space.values())
    return f"to tune: {', '.join(variant.space)} ({count} configurations)"


def tuned_keys(variant: Variant) -> tuple[str, ...]:
    """The parameters of its space that the function of this direction has (all for a plug-in, whose function is elsewhere)."""
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
