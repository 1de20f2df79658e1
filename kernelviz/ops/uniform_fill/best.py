"""The variant that a user of `uniform_fill` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def uniform(problem: Problem, card: Card) -> tuple[str, ...]:
    """Philox of seven rounds, with all 128 bits of a call used from 2^14 elements on.

    Seven rounds pass BigCrush according to Philox's authors, and rounds set the time while the output fits the L2. Of fewer
    elements nothing waits for arithmetic, so the shortest chain of instructions is the fastest, which the variant has for them.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [uniform(Problem(op="uniform_fill", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (1000, 1048576)]
    ['cuda_philox_7', 'cuda_philox_7']
    """
    return ("cuda_philox_7", "cuda_philox")
