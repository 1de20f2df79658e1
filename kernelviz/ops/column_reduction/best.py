"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import TMA_BYTES, Card

FEW_ROWS = 32
"""Rows that one thread adds up while parts of the rows would still wait for each other."""


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """Parts of the rows that the last block of a strip adds up; a thread a column for at most 32 rows, and Triton's parts
    where a row is shorter than 16 bytes.

    Few rows have no parts, and a row of less than a vector is loaded by CUDA C++ element by element.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((4096, 1024), (7, 2**21), (2**28, 1))
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'cuda_column_per_thread', 'triton_split']
    """
    if problem.sizes["m"] <= FEW_ROWS:
        return ("cuda_column_per_thread", "cuda_split")
    if problem.sizes["n"] * dtype_named(problem.dtype).itemsize_bytes < TMA_BYTES:
        return ("triton_split", "cuda_split")
    return ("cuda_split", "triton_split")
