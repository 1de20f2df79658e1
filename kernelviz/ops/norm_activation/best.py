"""The variant that a user of a normalisation with an activation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    Card,
    all_on_chip,
    few_long_rows,
    row_bytes,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.known_lengths import block_tile
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.norm_activation.few_elements import UNEVEN_ELEMENTS

PROGRAM_BYTES, PROGRAM_ROW = 1024, 4096
"""Of a row whose gelu takes as long as the start of a program, and elements of one that a program of Triton has in registers."""
SLAB_ROW_BYTES, UNEVEN_SLAB_ROW_BYTES = 256, 2048
"""Of rows that are whole 16-byte vectors and of others, of which no slab has longer ones."""


def layernorm_gelu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks a row for few rows over 1 MiB; a kernel for the length of a row where lanes of a warp or blocks of all rows
    run at once; slabs for others up to 256 bytes, or 2 KiB if not whole 16-byte vectors; Triton from 1 KiB to 4096 elements in
    multiples of 16; else clusters.

    A slab is a piece of shared memory with several rows. Triton loads no vectors of other rows, and starting a program takes
    longer than a row of less than 1 KiB. Clusters are persistent unless the GPU holds all rows at once.

    H200: 62 rows of 13 fp32 take 1.27 us by lanes and 1.34 in torch.compile, 77 of 935 bf16 3.58 by blocks that know the length
    and 5.50 in Triton. 300,000 of 192 bytes take 31 us through a ring of slabs, 47 as slabs and 55 by a warp each; 16,384 of 4096
    bf16 69 in Triton and 74 by persistent clusters; 16 of 118,016 fp16 8.05 by a cluster each and 8.97 by persistent ones, 392 of
    65,240 bf16 41.8 and 37.2.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((4, 2**22), (1366, 6), (77, 935), (2**20, 64), (2**20, 6), (1773, 737), (512, 4096), (512, 4099), (512, 8192))
    >>> shapes = (*shapes, (8192, 8192))
    >>> [layernorm_gelu(Problem(op="norm_activation", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'cuda_slab', 'cuda_slab', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_slab_stages', 'triton_fused', \
'cuda_cluster', 'cuda_cluster', 'cuda_columns']
    """
    m, n, of_row, whole = problem.sizes["m"], problem.sizes["n"], row_bytes(problem), whole_vectors(problem, "n")
    itemsize_bytes = dtype_named(problem.dtype).itemsize_bytes
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_fused")
    if row_lanes(m, n, itemsize_bytes) is not None or block_tile(m, n, itemsize_bytes) is not None:
        return ("cuda_slab", "triton_fused", "triton_erf", "cuda_fused", "cuda_slab_stages")
    if of_row <= (SLAB_ROW_BYTES if whole else UNEVEN_SLAB_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_fused", "triton_fused")
    if of_row >= PROGRAM_BYTES and n <= PROGRAM_ROW and triton_vectorises(n):
        return ("triton_fused", "cuda_fused", "cuda_columns", "cuda_cluster")
    clusters = ("cuda_cluster", "cuda_columns") if all_on_chip(problem, card) else ("cuda_columns", "cuda_cluster")
    return (*clusters, "cuda_fused", "cuda_slab_stages", "triton_fused")


LONG_BATCHNORM_BYTES = 512
"""Of a row of which a warp of Triton's kernel loads a 16-byte vector a thread."""
TALL_ROWS, TALL_LENGTH = 2**16, 1024
"""Rows, and their elements, from which on CUDA C++ is faster. Only 2^17 rows of 1024 were measured so."""


def batchnorm_relu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton up to 2^21 elements, and for rows of a multiple of 16 elements that have at least 512 bytes; CUDA C++ for the rest,
    and for at least 2^16 rows of at least 1024 elements.

    Triton loads no vectors of other rows. Of few elements, its kernel knows the size of the matrix.

    H200, by Triton and CUDA C++: 8 rows of 2648 fp32 1.43 and 1.66 us, 181 of 247 1.62 and 2.75, 3576 of 248 fp16 2.58 and 3.02,
    20 of 31,413 bf16 2.77 and 3.78, but 512 of 180 fp32 2.34 and 1.82; 88 of 788,480 bf16 70.8 and 74.2; 524,288 of 16 fp16 11.5
    and 8.88, 554 of 269,967 bf16 222 and 154, but 16 of 11,190,089 269 and 478; 131,072 of 1024 bf16 134.7 and 127.8, 32,768 of
    4096 133.2 and 132.4.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (7, 46187), (2**20, 32), (2**20, 256), (16, 2**20 + 1), (2**17, 1024))
    >>> [batchnorm_relu(Problem(op="batchnorm_relu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_fused', 'triton_fused', 'cuda_columns', 'triton_fused', 'cuda_columns', 'cuda_columns']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    has_vectors = triton_vectorises(n) and row_bytes(problem) >= LONG_BATCHNORM_BYTES
    tall = m >= TALL_ROWS and n >= TALL_LENGTH
    in_triton = (has_vectors and not tall) or m * n <= UNEVEN_ELEMENTS
    return ("triton_fused", "cuda_columns") if in_triton else ("cuda_columns", "triton_fused")
