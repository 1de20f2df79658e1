"""The variant that a user of `linear_cross_entropy` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors


def loss(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton for at most 16 tokens, for fp32, and on cards without wgmma; else wgmma, padded where hidden sizes are no
    multiples of 8.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"m": 8192, "h": 4096, "v": 128256}
    >>> [loss(Problem(op="linear_cross_entropy", sizes={**sizes, "h": h}, dtype="bf16"), H200)[0] for h in (4096, 5835)]
    ['cuda_wgmma', 'cuda_wgmma_padded']
    """
    if problem.sizes["m"] <= 16:
        return ("triton_tiles",)
    return ("cuda_wgmma" if whole_vectors(problem, "h") else "cuda_wgmma_padded", "triton_tiles")
