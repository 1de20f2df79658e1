"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """The 16-byte vectors of CUDA C++ that leave the inputs as they are, and Triton where half a head is no whole vectors.

    There CUDA C++ rotates single pairs.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"t": 16384, "hq": 32, "hk": 8}
    >>> [rope(Problem(op="rope", sizes={**sizes, "p": p}, dtype="bf16"), H200)[0] for p in (64, 5)]
    ['cuda_vec16', 'triton_token']
    """
    return ("cuda_vec16", "triton_token") if whole_vectors(problem, "p") else ("triton_token", "cuda_vec16")
