"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """Parts of the rows that the last block of a strip adds up, at every size (no recorded run).

    >>> from kernelviz.ops.catalog.best import H200
    >>> columns(Problem(op="column_sum", sizes={"m": 4096, "n": 1024}, dtype="bf16"), H200)[0]
    'cuda_split'
    """
    return ("cuda_split", "triton_split")
