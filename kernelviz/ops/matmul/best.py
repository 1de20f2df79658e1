"""The variant that a user of a matrix product gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, tiles, whole_vectors
from kernelviz.ops.matmul import wgmma_choice, wgmma_skinny

TILE = (128, 256)
"""Rows and columns of the largest tile of the wgmma kernels."""
SKINNY = 128
"""The most rows of `wgmma_skinny`, which takes the time of reading B once."""
LEAST_BACKWARD = 128
"""The smallest of M, N and K from which on wgmma is chosen. H200: 512³ takes 7.7 us, and 8.1 in triton_grouped, 192 × 640 × 1536
8.0 and 8.7; nothing with a side of less than 192 was measured."""
LEAST_MULTIPROCESSORS = 64
"""Of a GPU, from which on the time of `cuda_wgmma_parts` is estimated. Its blocks were measured on 132."""
FULL = 0.95
"""Part of the multiprocessors that are busy, on average, from which a kernel that divides no product is the fastest. H200, 512
rows of 4096: 14336 columns (0.85) take 86 us in Gluon and took 89 by size before there were tiles of 224 columns; 6144 (0.73)
take 42 and 35."""


def matmul(problem: Problem, card: Card) -> tuple[str, ...]:
    """In 16 bits forward, Triton for unaligned or narrow products, else the skinny kernel up to 128 rows, `cuda_wgmma_parts`
    where all its blocks run at once in less estimated time than wgmma by size, Gluon where 128 × 256 tiles fill 95 % of their
    rounds, else wgmma by size; 16 bits backward, wgmma if aligned and no side is less than 128, else Triton; tf32 forward,
    wgmma if aligned, else Triton; other fp32, Triton backward, and forward CUDA C++ by size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(m, n, k):
    ...     return matmul(Problem(op="matmul", sizes={"m": m, "n": n, "k": k}, dtype="bf16"), H200)[0]
    >>> best(16, 14336, 4096), best(512, 512, 512), best(512, 6144, 4096)
    ('cuda_wgmma_skinny', 'cuda_wgmma_parts', 'cuda_wgmma_by_size')
    >>> best(4096, 4096, 4096), best(300, 7, 3)
    ('gluon_warp_specialised', 'triton_tile_by_size')
    >>> backward = [Problem(op="matmul", sizes=dict.fromkeys("mnk", n), dtype="bf16", direction="backward") for n in (64, 512)]
    >>> [matmul(problem, H200)[0] for problem in backward]
    ['triton_grouped', 'cuda_wgmma_layouts']
    """
    if problem.dtype == "fp32":
        return _fp32(problem, card)
    aligned = whole_vectors(problem, "n", "k")
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    if problem.direction == "backward":
        if not aligned or not whole_vectors(problem, "m"):
            return ("triton_grouped",)
        large = min(m, n, k) >= LEAST_BACKWARD
        return ("cuda_wgmma_layouts", "triton_grouped") if large else ("triton_grouped", "cuda_wgmma_layouts")
    if not aligned or min(n, k) < 64:
        return ("triton_tile_by_size",)
    if m <= SKINNY:
        return ("cuda_wgmma_skinny", "triton_tile_by_size")
    if _fits_at_once(m, n, k, card.multiprocessors):
        return ("cuda_wgmma_parts", "cuda_wgmma_by_size", "triton_grouped")
    count = tiles(m, n, TILE)
    if count / (-(-count // card.multiprocessors) * card.multiprocessors) >= FULL:
        return ("gluon_warp_specialised", "cuda_wgmma_by_size", "triton_grouped")
    return ("cuda_wgmma_by_size", "triton_grouped")


def _fits_at_once(m: int, n: int, k: int, multiprocessors: int) -> bool:
    """Whether all blocks of `cuda_wgmma_parts` run at once, in less estimated time than `cuda_wgmma_by_size`."""
    if multiprocessors < LEAST_MULTIPROCESSORS:
        return False
    rows, tile = wgmma_skinny.choose_parts(m, n, k, multiprocessors)
    one_round = wgmma_skinny.rounds(m, n, rows, tile, multiprocessors) == 1
    us = wgmma_skinny.estimated_us(m, n, k, rows, tile, multiprocessors)
    return one_round and us < wgmma_choice.estimated_us(m, n, k, multiprocessors)


def _fp32(problem: Problem, card: Card) -> tuple[str, ...]:
    m, n = problem.sizes["m"], problem.sizes["n"]
    if problem.direction == "backward":
        return ("triton_grouped",)
    if problem.compute == "tf32":
        return ("cuda_wgmma_tf32", "triton_grouped") if whole_vectors(problem, "n", "k") else ("triton_tile_by_size",)
    return ("cuda_async_copy",) if tiles(m, n, (128, 128)) >= 4 * card.multiprocessors else ("cuda_tile_by_size",)


def linear(problem: Problem, card: Card) -> tuple[str, ...]:
    """In 16 bits, wgmma with the bias and the activation fused where rows are aligned and 128 × 256 tiles are more than half
    as many as multiprocessors; else Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"m": 256, "n": 8192, "k": 4096}
    >>> [linear(Problem(op="linear_relu", sizes={**sizes, "m": m}, dtype="bf16"), H200)[0] for m in (256, 1024)]
    ['triton_fused', 'cuda_wgmma_fused']
    """
    return ("cuda_wgmma_fused", "triton_fused") if _fills(problem, card, "n", "k") else ("triton_fused",)


def layouts(problem: Problem, card: Card) -> tuple[str, ...]:
    """In 16 bits, wgmma, which reads transposed factors as they are stored, where rows are aligned and 128 × 256 tiles are
    more than half as many as multiprocessors; else Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"m": 4096, "n": 256, "k": 32768}
    >>> [layouts(Problem(op="transpose_matmul", sizes={**sizes, "n": n}, dtype="bf16"), H200)[0] for n in (256, 1024)]
    ['triton_strided', 'cuda_wgmma']
    """
    return ("cuda_wgmma", "triton_strided") if _fills(problem, card, "m", "n", "k") else ("triton_strided",)


def _fills(problem: Problem, card: Card, *axes: str) -> bool:
    many = 2 * tiles(problem.sizes["m"], problem.sizes["n"], TILE) > card.multiprocessors
    return many and problem.dtype != "fp32" and whole_vectors(problem, *axes)


def fp8(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma, with sums in fp32 where these are asked for, if rows are aligned, and Triton else.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"m": 8192, "n": 8192, "k": 8192}
    >>> fp8(Problem(op="scaled_matmul", sizes=sizes, dtype="fp8", compute="fp32_accumulation"), H200)[0]
    'cuda_wgmma_two_level'
    """
    aligned = problem.sizes["k"] % 16 == 0 and problem.sizes["n"] % 8 == 0
    precise = problem.compute == "fp32_accumulation"
    return ("cuda_wgmma_two_level" if precise else "cuda_wgmma", "triton_grouped") if aligned else ("triton_grouped",)


def groups(problem: Problem, card: Card) -> tuple[str, ...]:
    """wgmma with halved tiles in the last round if rows are aligned, and Triton's persistent kernel else.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"g": 8, "m": 256, "n": 4096, "k": 4096, "s": 2}
    >>> groups(Problem(op="grouped_matmul", sizes=sizes, dtype="bf16"), H200)[0]
    'cuda_wgmma_halves'
    """
    return ("cuda_wgmma_halves", "triton_persistent") if whole_vectors(problem, "n", "k") else ("triton_persistent",)
