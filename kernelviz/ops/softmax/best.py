"""The variant that a user of `softmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters with fixed columns forward, clusters backward, and a block a row where there are no clusters.

    >>> from kernelviz.ops.catalog.best import H200
    >>> softmax(Problem(op="softmax", sizes={"m": 8192, "n": 8192}, dtype="bf16"), H200)
    ('cuda_columns', 'cuda_row')
    """
    return ("cuda_cluster" if problem.direction == "backward" else "cuda_columns", "cuda_row")
