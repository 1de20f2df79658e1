"""The variant that a user of a normalisation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

LONG_ROW, WIDE_ROW = 16384, 32768
"""From 16384 elements of bf16 on, a row takes more than the registers that Triton's programs have for it."""


def rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent programs of Triton for no more rows than multiprocessors; else a program a row up to 16384 elements, and
    prefetched rows in CUDA C++ beyond.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (8192, 8192), (1024, 131072))
    >>> [rmsnorm(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'triton_block_per_row', 'cuda_async']
    """
    if problem.direction == "backward":
        return _backward(problem)
    return _by_length(problem, card, LONG_ROW)


def layernorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent programs of Triton for no more rows than multiprocessors; else persistent clusters, but a program a row
    from 4097 to 16384 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (16384, 4096), (8192, 8192), (512, 131072))
    >>> [layernorm(Problem(op="layernorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'cuda_columns', 'triton_block_per_row', 'cuda_columns']
    """
    if problem.direction == "backward":
        return _backward(problem)
    if _few(problem, card):
        return ("triton_persistent", "cuda_registers")
    if 4096 < problem.sizes["n"] <= LONG_ROW:
        return ("triton_block_per_row", "cuda_registers")
    return ("cuda_columns", "cuda_registers")


def add_rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent programs of Triton for no more rows than multiprocessors; else a program a row up to 32768 elements, and
    prefetched rows in CUDA C++ beyond.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2048, 32768), (512, 131072))
    >>> [add_rmsnorm(Problem(op="add_rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'triton_block_per_row', 'cuda_async']
    """
    if problem.direction == "backward":
        return _backward(problem)
    return _by_length(problem, card, WIDE_ROW)


def _by_length(problem: Problem, card: Card, longest: int) -> tuple[str, ...]:
    """A program a row, but persistent programs for few rows, and prefetched rows beyond the longest."""
    if _few(problem, card):
        return ("triton_persistent", "cuda_registers")
    return ("triton_block_per_row" if problem.sizes["n"] <= longest else "cuda_async", "cuda_registers")


def _few(problem: Problem, card: Card) -> bool:
    return problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= LONG_ROW


def _backward(problem: Problem) -> tuple[str, ...]:
    """H200: 8192 rows of 8192 take 98 us in Triton and 111 in clusters; 2048 rows of 32768 take 311 and 112."""
    if problem.sizes["n"] <= LONG_ROW:
        return ("triton_persistent", "cuda_cluster")
    return ("cuda_cluster", "triton_persistent")
