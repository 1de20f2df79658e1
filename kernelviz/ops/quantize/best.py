"""The variant that a user of a quantisation of rows gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

SHORT_ROW = 8192
"""H200, fp8: 8192 rows of 8192 take 47 us in Triton and 48 in clusters; 2048 rows of 32768 take 54 and 48."""


def quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a row up to 8192 elements, and persistent clusters for longer rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [quantize(Problem(op="quantize_fp8", sizes={"m": 512, "n": n}, dtype="bf16"), H200)[0] for n in (8192, 131072)]
    ['triton_row', 'cuda_columns']
    """
    if problem.sizes["n"] <= SHORT_ROW:
        return ("triton_row", "cuda_registers")
    return ("cuda_columns", "cuda_registers")


def rmsnorm_quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row where rows of up to 8192 are no more than multiprocessors; else Triton up to 2048
    elements, and persistent clusters beyond.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (32768, 2048), (8192, 8192))
    >>> [rmsnorm_quantize(Problem(op="rmsnorm_quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_fused', 'triton_fused', 'cuda_columns']
    """
    if problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= SHORT_ROW:
        return ("cuda_fused",)
    return ("triton_fused", "cuda_fused") if problem.sizes["n"] <= 2048 else ("cuda_columns", "cuda_fused")
