"""The variant that a user of attention gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

SHORT, LONG = 128, 2048
"""H200: heads of 64 and 16 × 1024 queries take 164 us with descriptors, 176 with wgmma; at 4 × 4096 both take 560."""


def attention(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma with tiles by size; forward, Triton for at most 128 keys, and Triton's descriptors for heads of 64 with up to
    2048 keys; backward, Triton's descriptors for heads of 256.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 4, "s": 4096, "hq": 16, "hk": 16, "d": 128}
    >>> attention(Problem(op="attention", sizes=sizes, dtype="bf16"), H200)[0]
    'cuda_wgmma_by_size'
    >>> attention(Problem(op="attention", sizes={**sizes, "s": 1024, "d": 64}, dtype="bf16"), H200)[0]
    'triton_descriptors'
    """
    length, forward = problem.sizes["s"], problem.direction == "forward"
    if forward and length <= SHORT:
        return ("triton_flash",)
    if forward and problem.sizes["d"] == 64 and length <= LONG:
        return ("triton_descriptors", "triton_flash")
    return _by_size(problem)


def causal_attention(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma with tiles by size; forward, Triton for at most 128 keys, else Gluon for heads of 256; backward, Triton's
    descriptors for heads of 256.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 4, "s": 4096, "hq": 16, "hk": 16, "d": 64}
    >>> causal_attention(Problem(op="causal_attention", sizes=sizes, dtype="bf16"), H200)[0]
    'cuda_wgmma_by_size'
    >>> causal_attention(Problem(op="causal_attention", sizes={**sizes, "s": 16}, dtype="bf16"), H200)[0]
    'triton_flash'
    >>> causal_attention(Problem(op="causal_attention", sizes={**sizes, "d": 256}, dtype="bf16"), H200)[0]
    'gluon_warp_specialised'
    """
    forward = problem.direction == "forward"
    if forward and problem.sizes["s"] <= SHORT:
        return ("triton_flash",)
    if forward and problem.sizes["d"] > 128:  # H200, 4 x 4096 queries: 760 us, and 791 by wgmma
        return ("gluon_warp_specialised", *_by_size(problem))
    return _by_size(problem)


def varlen_attention(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma on Hopper, and Triton elsewhere, at every length (no recorded run).

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 8, "s": 4096, "u": 2, "hq": 32, "hk": 8, "d": 128}
    >>> varlen_attention(Problem(op="varlen_attention", sizes=sizes, dtype="bf16"), H200)[0]
    'cuda_wgmma'
    """
    return ("cuda_wgmma", "triton_flash")


def _by_size(problem: Problem) -> tuple[str, ...]:
    if problem.direction == "backward" and problem.sizes["d"] > 128:  # wgmma_backward takes heads of 64 and 128
        return ("triton_descriptors", "triton_flash")
    return ("cuda_wgmma_by_size", "triton_descriptors", "triton_flash")
