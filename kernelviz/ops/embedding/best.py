"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a row where rows are no more than the multiprocessors, else 16-byte vectors of a row in CUDA
    C++.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"v": 65536, "t": 16, "d": 4096}
    >>> [rows(Problem(op="embedding", sizes={**sizes, "t": t}, dtype="bf16"), H200)[0] for t in (16, 65536)]
    ['triton_row', 'cuda_row_vec16']
    """
    if problem.sizes["t"] <= card.multiprocessors:
        return ("triton_row", "cuda_row_vec16")
    return ("cuda_row_vec16", "triton_row")
