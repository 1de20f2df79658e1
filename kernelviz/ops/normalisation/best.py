"""The variant that a user of a normalisation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    ONE_PROGRAM,
    Card,
    few_long_rows,
    many_short_rows,
    row_bytes,
    slabs_of_rows,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.normalisation.cuda import FEW_ROWS
from kernelviz.ops.normalisation.cuda_backward import one_block_tile
from kernelviz.ops.normalisation.cuda_known_rows import known_tile
from kernelviz.ops.normalisation.cuda_slab_backward import LONGEST_ROW_BYTES

LONG_ROW, WIDE_ROW = 16384, 32768
"""From 16384 elements of bf16 on, a row takes more than the registers that Triton's programs have for it."""
WARP = 32
SLAB_ROW_BYTES = 1024
"""H200, layernorm: 200,000 rows of 300 bytes take 31 us through a ring of slabs, 35 as slabs and 104 by warps. Rows that are
whole 16-byte vectors are slower: rmsnorm of 400,000 rows of 128 bytes takes 25 us through a ring, and 24 by warps."""
LONGEST_BACKWARD_ROW = 2**18
"""Elements of bf16 that the 16 blocks of a cluster hold: 512 KiB. The kernel for longer rows has one block a row."""
LONGEST_BACKWARD_ROW_BYTES = 2**19
CLUSTER = 16
"""Blocks of the largest cluster."""
SLAB_BACKWARD_VECTORS_BYTES = 128
"""Of the longest rows of whole 16-byte vectors whose backward pass is chosen as slabs: an estimate. H200, as slabs and in
clusters: add_rmsnorm of 1,438,707 rows of 11 bf16 37.6 and 119 us, of 500 rows of 24 fp32 3.94 and 4.46; rmsnorm of 2,097,152
rows of 4 fp32 26.9 and 29.7; layernorm of 40,000 rows of 255 fp16 20.5 and 61.0."""
FEW_ELEMENTS = 8192
"""Of more than FEW_ROWS rows for whose length `cuda_columns` has a kernel, so that it is chosen. H200, by that kernel, by a
program of Triton each, and by persistent ones: add_rmsnorm of 24 rows of 840 bf16 1.61, 2.22 and 2.17 us, of 128 rows of 40 1.49,
1.66 and 2.49; rmsnorm of 8 rows of 80 fp32 1.35, 1.31 and 1.38, of 16 rows of 4096 bf16 1.77, 2.01 and 1.87, of 100 rows of 1000
1.62, 2.18 and 1.98."""
FEW_BACKWARD_ROW_BYTES = 16 * 1024
BLOCK_ROW_BYTES = 32 * 1024
"""Of the longest row that `cuda_cluster` gives one block. H200, layernorm: 3 rows of 102,693 fp32 take 8.39 us by clusters
and 9.06 by persistent ones, which prefetch the next row."""


def rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ for the length of a few rows of at most 1024 elements or of at most 512 16-byte vectors; persistent programs of
    Triton for no more longer rows than multiprocessors; else a program a row up to 16384 elements, and prefetched rows in CUDA
    C++ beyond; CUDA C++ also for short rows, for those of no multiple of 16 elements, and for a few that no cluster keeps; a
    cluster for each of so few longer rows that all of them are in progress at once.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (8, 2**18), (8192, 8192), (1024, 131072), (8192, 8195), (2**20, 64), (2**20, 7), (2, 2**22))
    >>> [rmsnorm(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'cuda_cluster', 'triton_block_per_row', 'cuda_async', 'cuda_columns', 'cuda_columns', \
'cuda_slab_stages', 'cuda_split']
    """
    return _uneven(problem, card) or _by_length(problem, card, LONG_ROW)


def layernorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent programs of Triton for no more longer rows than multiprocessors; else persistent clusters, but a program a row
    from 4097 to 16384 elements; CUDA C++ for rows of no multiple of 16 elements and for a few of at most 1024 or of at most 512
    16-byte vectors, and a cluster for each of a few of more than 32 KiB.

    Triton loads no vectors of such rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (16384, 4096), (8192, 8192), (512, 131072), (16, 4099), (3, 102693))
    >>> [layernorm(Problem(op="layernorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'cuda_columns', 'triton_block_per_row', 'cuda_columns', 'cuda_columns', 'cuda_cluster']
    """
    uneven = _uneven(problem, card)
    if uneven:
        return uneven
    if _few(problem, card):
        return ("triton_persistent", "cuda_registers")
    if 4096 < problem.sizes["n"] <= LONG_ROW:
        return ("triton_block_per_row", "cuda_registers")
    return ("cuda_columns", "cuda_registers")


def add_rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ for the length of a few rows of at most 1024 elements or of at most 512 16-byte vectors; persistent programs of
    Triton for no more longer rows than multiprocessors; else a program a row up to 32768 elements, and prefetched rows in CUDA
    C++ beyond; CUDA C++ also for short rows and those of no multiple of 16 elements; a cluster for each of a few longer ones.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (2048, 32768), (512, 131072), (2048, 32769), (2**20, 21), (24, 840))
    >>> [add_rmsnorm(Problem(op="add_rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_persistent', 'triton_block_per_row', 'cuda_async', 'cuda_columns', 'cuda_slab_stages', 'cuda_columns']
    """
    return _uneven(problem, card) or _by_length(problem, card, WIDE_ROW)


def _uneven(problem: Problem, card: Card) -> tuple[str, ...]:
    """For a backward pass, for a few rows that no cluster keeps or of at most 1024 elements, and for rows that Triton cannot load
    as vectors or that are too short for a program each; else none.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of a short row. Many of
    them are pieces of shared memory; others have persistent programs of Triton up to 31 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((2**20, 21), (2**18, 150), (500, 21), (100, 80), (4, 2**22), (4, 4099))
    >>> [_uneven(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_slab_stages', 'cuda_slab_stages', 'triton_persistent', 'cuda_columns', 'cuda_split', 'cuda_columns']
    """
    n = problem.sizes["n"]
    if problem.direction == "backward":
        return _backward(problem, card)
    if _has_known_length(problem):
        return ("cuda_columns", "cuda_registers")
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_registers")
    if not whole_vectors(problem, "n") and slabs_of_rows(problem, card, longest_bytes=SLAB_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_registers")
    if n < WARP and not whole_vectors(problem, "n"):
        return ("triton_persistent", "cuda_registers")
    if not whole_vectors(problem, "n") and _all_in_progress(problem, card):
        return ("cuda_cluster", "cuda_registers")
    uneven = not triton_vectorises(n) or many_short_rows(problem, card)
    return ("cuda_columns", "cuda_registers") if uneven else ()


def _has_known_length(problem: Problem) -> bool:
    """Whether `cuda_columns` has a kernel for rows of this length, and it is chosen.

    >>> shapes = ((24, 840), (129, 840), (200, 40), (200, 37), (500, 21), (16, 4096), (16, 4100))
    >>> [_has_known_length(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16")) for m, n in shapes]
    [True, False, True, False, False, True, False]
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    few = m <= FEW_ROWS or m * n <= FEW_ELEMENTS
    short = n <= ONE_PROGRAM or whole_vectors(problem, "n")
    return few and short and known_tile(m, n, dtype_named(problem.dtype).itemsize_bytes) is not None


def _by_length(problem: Problem, card: Card, longest: int) -> tuple[str, ...]:
    """A program a row, but persistent programs for few rows, and prefetched rows beyond the longest."""
    if _few(problem, card):
        return ("triton_persistent", "cuda_registers")
    if problem.sizes["n"] > longest:
        return ("cuda_cluster" if _all_in_progress(problem, card) else "cuda_async", "cuda_registers")
    return ("triton_block_per_row", "cuda_registers")


def _all_in_progress(problem: Problem, card: Card) -> bool:
    """Whether rows are longer than one block keeps, and so few that the clusters of all run at once: none is left to prefetch."""
    return problem.sizes["m"] * CLUSTER <= card.multiprocessors and row_bytes(problem) > BLOCK_ROW_BYTES


def _few(problem: Problem, card: Card) -> bool:
    return problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= LONG_ROW


def _backward(problem: Problem, card: Card) -> tuple[str, ...]:
    """H200: 8192 rows of 8192 take 98 us in Triton and 111 in clusters; 2048 rows of 32768 take 311 and 112, and 49751 rows
    of 23, of which Triton loads no vectors, 37 and 14. 8 rows of 3.5 million take 2261 and 3211: one block or cluster a row
    leaves multiprocessors idle, so several share each of a few rows that no cluster holds. So they do for rows of more than
    16 KiB where clusters have too few blocks: 3 rows of 12623 take 15.6 by clusters and 6.2 by parts. Few elements have one
    block and one launch in `cuda_cluster`; larger problems of short rows pass as slabs.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2048, 32768), (8192, 8195), (8, 2**22), (3, 12623), (600, 2**22), (2, 261), (2**21, 11))
    >>> sizes = [{"m": m, "n": n} for m, n in shapes]
    >>> problems = [Problem(op="rmsnorm", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [_backward(problem, H200)[0] for problem in problems]
    ['triton_persistent', 'cuda_cluster', 'cuda_cluster', 'cuda_split', 'cuda_split', 'triton_persistent', 'cuda_cluster', \
'cuda_slab_stages']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    centred = problem.op == "layernorm"
    if one_block_tile(m, n, dtype_named(problem.dtype).itemsize_bytes, centred=centred) is not None:
        return ("cuda_cluster", "triton_persistent")
    whole = whole_vectors(problem, "n")
    if row_bytes(problem) <= (SLAB_BACKWARD_VECTORS_BYTES if whole else LONGEST_ROW_BYTES):
        return ("cuda_slab_stages", "triton_persistent", "cuda_cluster")
    few = m * CLUSTER <= card.multiprocessors and row_bytes(problem) > FEW_BACKWARD_ROW_BYTES
    if few or few_long_rows(problem, card, longest_bytes=LONGEST_BACKWARD_ROW_BYTES):
        return ("cuda_split", "triton_persistent", "cuda_cluster")
    even = triton_vectorises(n) and not many_short_rows(problem, card)
    if n > LONGEST_BACKWARD_ROW or (n <= LONG_ROW and even):
        return ("triton_persistent", "cuda_cluster")
    return ("cuda_cluster", "triton_persistent")
