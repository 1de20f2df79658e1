"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """The 16-byte vectors that leave the inputs as they are, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> rope(Problem(op="rope", sizes={"t": 16384, "hq": 32, "hk": 8, "p": 64}, dtype="bf16"), H200)[0]
    'cuda_vec16'
    """
    return ("cuda_vec16", "triton_token")
