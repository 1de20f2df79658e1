"""The variant that a user of `row_sum` or `argmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def row_sum(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that prefetches vectors and chooses threads and parts of a row by size, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> row_sum(Problem(op="row_sum", sizes={"m": 8192, "n": 8192}, dtype="bf16"), H200)[0]
    'cuda_streamed'
    """
    return ("cuda_streamed", "cuda_adaptive")


def argmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """The packed maximum of each 16-byte vector, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> argmax(Problem(op="argmax", sizes={"m": 16, "n": 4096}, dtype="bf16"), H200)[0]
    'cuda_words'
    """
    return ("cuda_words", "cuda_adaptive")
