"""The variant that a user of a convolution gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, tiles, whole_vectors

TILE = (256, 128)
"""Pixels and filters of a tile of the wgmma kernel."""
FEW_CHANNELS = 32
"""H200, 1024 × 56² × 64 filters of 3²: with 16 channels Triton takes 291 us and wgmma 509; with 64 it is 690 and 470."""


def conv2d(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma, in parts of the terms where tiles are few, but with resident blocks where they number between a quarter of the SMs
    and all of them; with padded copies where channels or filters are no multiples of 8; Triton for fewer than 8 of either.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"n": 256, "h": 14, "w": 14, "c": 256, "k": 256, "r": 3, "s": 1}
    >>> [conv2d(Problem(op="conv2d", sizes={**sizes, "c": c}, dtype="bf16"), H200)[0] for c in (256, 100, 3)]
    ['cuda_wgmma_parts', 'cuda_wgmma_padded', 'triton_implicit']
    >>> conv2d(Problem(op="conv2d", sizes={**sizes, "n": 2, "h": 32, "w": 32, "c": 640, "k": 640}, dtype="bf16"), H200)[0]
    'cuda_wgmma_resident'
    """
    if min(problem.sizes["c"], problem.sizes["k"]) < 8:
        return ("triton_implicit",)
    if not whole_vectors(problem, "c", "k"):
        return ("cuda_wgmma_padded", "triton_implicit")
    if card.multiprocessors // 4 < tiles(_pixels(problem), problem.sizes["k"], TILE) < card.multiprocessors:
        return ("cuda_wgmma_resident", "cuda_wgmma_parts", "triton_implicit")
    return ("cuda_wgmma_parts", "triton_implicit")


def _pixels(problem: Problem) -> int:
    """Pixels of the output of all images."""
    s = problem.sizes
    return s["n"] * -(-s["h"] // s["s"]) * -(-s["w"] // s["s"])


def conv_bias_relu(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma with bias and relu fused; Triton for fewer than 32 channels, or where tiles of 256 pixels by 128 filters are
    fewer than multiprocessors; padded where channels or filters are no multiples of 8.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"n": 256, "h": 56, "w": 56, "c": 64, "k": 64, "r": 3, "s": 1}
    >>> [conv_bias_relu(Problem(op="conv_bias_relu", sizes={**sizes, "n": n}, dtype="bf16"), H200)[0] for n in (4, 16)]
    ['triton_implicit', 'cuda_wgmma_fused']
    """
    s = problem.sizes
    if s["c"] < FEW_CHANNELS or tiles(_pixels(problem), s["k"], TILE) < card.multiprocessors:
        return ("triton_implicit",)
    if not whole_vectors(problem, "c", "k"):
        return ("cuda_wgmma_padded", "triton_implicit")
    return ("cuda_wgmma_fused", "triton_implicit")
