"""The own variants that can solve a problem on a card, in the order in which a user should get them."""

from __future__ import annotations

from kernelviz.core.backends import BACKENDS
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, sentence
from kernelviz.ops.catalog.op import Op
from kernelviz.ops.catalog.variant import Variant

WITHOUT_RULE = "The last own variant of the ladder, because the op states no rule."
_LEAST_CAPABILITY = {"sm_89": (8, 9), "sm_90": (9, 0)}
_ONLY_CAPABILITY = {"sm_90a": (9, 0)}


def rule_of(op: Op) -> str:
    """The op's rule in one sentence."""
    return WITHOUT_RULE if op.best is None else sentence(op.best)


def candidates(op: Op, problem: Problem, card: Card) -> tuple[Variant, ...]:
    """Own variants that solve the problem on the card, the best first: those that the op's rule names, then the rest of the
    ladder from its end, where those that change their inputs are last.

    Never a library's variant, and none that runs only if it is named, because such a variant is known to be wrong or slow. What a
    machine lacks and how tensors lie in memory are not known here, so the caller takes the first that can be bound.
    """
    usable = {v.name: v for v in op.variants if _is_own(v) and _fits(v, card) and v.refuses(problem) is None}
    named = () if op.best is None else op.best(problem, card)
    from_the_end = tuple(reversed(usable))
    rest = (name for changing in (False, True) for name in from_the_end if bool(usable[name].mutates) is changing)
    return tuple(usable[name] for name in dict.fromkeys((*named, *rest)) if name in usable)


def _is_own(variant: Variant) -> bool:
    return BACKENDS[variant.backend].written_here and not variant.only_when_named and "cpu" not in variant.needs


def _fits(variant: Variant, card: Card) -> bool:
    capability = card.compute_capability
    return all(
        capability >= _LEAST_CAPABILITY.get(need, capability) and capability == _ONLY_CAPABILITY.get(need, capability)
        for need in variant.needs
    )
