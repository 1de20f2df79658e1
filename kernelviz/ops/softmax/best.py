"""The variant that a user of `softmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

WARP = 32


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters with fixed columns forward, clusters backward, and a block a row where there are no clusters;
    forward, persistent programs of Triton for rows of fewer than 32 elements that are no whole 16-byte vectors.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of such a row. Triton's
    programs take several rows at once.

    >>> from kernelviz.ops.catalog.best import H200
    >>> softmax(Problem(op="softmax", sizes={"m": 8192, "n": 8192}, dtype="bf16"), H200)
    ('cuda_columns', 'cuda_row')
    >>> softmax(Problem(op="softmax", sizes={"m": 2**20, "n": 7}, dtype="bf16"), H200)[0]
    'triton_persistent'
    """
    if problem.direction == "backward":
        return ("cuda_cluster", "cuda_row")
    if problem.sizes["n"] < WARP and not whole_vectors(problem, "n"):
        return ("triton_persistent", "cuda_row")
    return ("cuda_columns", "cuda_row")
