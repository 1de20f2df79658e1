"""The variant that a user of a normalisation with an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

SHORT_ROW = 4096
"""H200: 16384 rows of 4096 take 69 us in triton_fused and 74 in cuda_columns; 8192 rows of 8192 take 74 and 72."""


def layernorm_gelu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton for rows of at most 4096, and persistent clusters of CUDA C++ for longer ones.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [layernorm_gelu(Problem(op="norm_activation", sizes={"m": 512, "n": n}, dtype="bf16"), H200)[0] for n in (4096, 8192)]
    ['triton_fused', 'cuda_columns']
    """
    return ("triton_fused", "cuda_fused") if problem.sizes["n"] <= SHORT_ROW else ("cuda_columns", "triton_fused")


def batchnorm_relu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton, a few rows of the same channels a program, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> batchnorm_relu(Problem(op="batchnorm_relu", sizes={"m": 16, "n": 4096}, dtype="bf16"), H200)[0]
    'triton_fused'
    """
    return ("triton_fused", "cuda_columns")
