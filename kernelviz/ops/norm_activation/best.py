"""The variant that a user of a normalisation with an activation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    Card,
    all_on_chip,
    elements_a_multiprocessor,
    few_long_rows,
    many_short_rows,
    row_bytes,
    slabs_of_rows,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.known_lengths import block_tile
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.norm_activation.few_elements import FEW_ELEMENTS, UNEVEN_ELEMENTS

SHORT_ROW = 4096
"""H200: 16384 rows of 4096 take 69 us in triton_fused and 74 in cuda_columns; 8192 rows of 8192 take 74 and 72."""
SHORT_BYTES = 1024
"""The gelu of a row of 1 KiB takes as long as the start of a program."""
BLOCK_ROW_BYTES = 64 * 1024
"""Of the longest row that a block keeps."""
SLAB_ROW_BYTES, UNEVEN_SLAB_ROW_BYTES = 256, 2048
"""Of rows that are whole 16-byte vectors and of others, of which no slab has longer ones. H200: 300,000 rows of 192 bytes take
31 us through a ring of slabs, 47 as slabs and 55 by warps; 1773 rows of 737 fp16 4.78, 4.39 and 6.39."""
FEW_SLABS_BYTES, LONG_UNEVEN_BYTES = 6 * 2**20, 1024
"""Of a matrix of rows of more than 1 KiB, up to which slabs without a ring are faster: an estimate between the 2.6 MB above and
4516 rows of 883 fp16, 8.0 MB, which take 8.50 us through the ring and 10.8 without."""
LONGEST_BATCHNORM_BYTES = LARGEST_GRID_Y * 512
"""The second dimension of Triton's grid counts parts of 512 bytes of a row."""


def layernorm_gelu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Lanes of a warp for each of few short rows, which are together at most about 1000 lanes a multiprocessor, and a block for
    each of few others of up to about 16 KiB, with the length of a row as a constant; else Triton for rows of at most 4096, and of
    longer ones a block or cluster of CUDA C++ each if all are on chip at once, and persistent ones for more; several blocks a row
    for a few rows that no cluster keeps; many short rows as pieces of shared memory, without a ring for rows of more than 1 KiB
    that are together at most 6 MiB; blocks or clusters of CUDA C++ for other short rows and those of no multiple of 16 elements.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 1 KiB. H200, fp32: 19 rows
    of 17 took 1.49 us in Triton, which loads the weight once the row has arrived, 1.39 in torch.compile, and 62 of 13 take 1.27
    by lanes and 1.34 in torch.compile; 77 rows of 935 bf16 3.58 as slabs, 5.50 in Triton and 2.11 in torch.compile. How many rows
    are few is an estimate.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((512, 4096), (512, 8192), (512, 4099), (2**20, 64), (2**20, 6), (1366, 6), (4, 2**22), (1773, 737), (77, 935))
    >>> shapes = (*shapes, (16, 118_016))
    >>> [layernorm_gelu(Problem(op="norm_activation", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_fused', 'cuda_cluster', 'cuda_cluster', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_slab', 'cuda_split', \
'cuda_slab', 'cuda_slab', 'cuda_cluster']
    """
    m, n, itemsize_bytes = problem.sizes["m"], problem.sizes["n"], dtype_named(problem.dtype).itemsize_bytes
    whole, of_row = whole_vectors(problem, "n"), row_bytes(problem)
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_fused")
    if row_lanes(m, n, itemsize_bytes) is not None or block_tile(m, n, itemsize_bytes) is not None:
        return ("cuda_slab", "triton_fused", "cuda_fused")
    if slabs_of_rows(problem, card, longest_bytes=SLAB_ROW_BYTES if whole else UNEVEN_SLAB_ROW_BYTES):
        few_slabs = of_row > LONG_UNEVEN_BYTES and m * of_row <= FEW_SLABS_BYTES
        slabs = ("cuda_slab", "cuda_slab_stages")
        return (*(slabs if few_slabs else slabs[::-1]), "cuda_fused")
    persistent = not all_on_chip(problem, card)
    if not triton_vectorises(n) or many_short_rows(problem, card, short_bytes=SHORT_BYTES):
        persistent = persistent and whole and of_row > BLOCK_ROW_BYTES
        return ("cuda_columns" if persistent else "cuda_cluster", "cuda_fused")
    if n <= SHORT_ROW:
        return ("triton_fused", "cuda_fused")
    return ("cuda_columns" if persistent else "cuda_cluster", "triton_fused")


SHORT_BATCHNORM_BYTES = 512
"""Of rows of a multiple of 16 elements. H200: 24,611 rows of 160 fp32 take 8.14 us in Triton and 9.03 in CUDA C++, 524,288 of 256
fp16 126.6 and 128.0, 197,688 of 112 fp32 the same; 3.7 million of 112 bf16 393 and 401, 8.9 million of 16 fp16 171 and 135."""
ONE_WAVE = 4096
"""Elements a multiprocessor, of shorter rows of a multiple of 16 elements. H200: 29,008 rows of 16 fp32 take 2.09 us by Triton's
programs and 2.28 in CUDA C++."""
FEW_EVEN_ROWS = 8
"""Rows of a multiple of 16 elements. H200: 8 rows of 262,144 fp16 take 4.82 us in Triton, of which each program has few rows,
and 4.30 in CUDA C++; 512 rows of 16384 bf16 8.74 and 10.7."""
FEW_OF_SHORT_ROWS = 2**12
"""Elements in rows of 2, 4 or 8 bytes, of which CUDA C++ has whole rows in a vector. H200: 3745 rows of 2 fp32 take 1.27 us so
and 1.40 in Triton, 1117 of 4 bf16 1.27 and 1.24."""
FEW_ROWS, LARGE_BYTES = 32, 2**26
"""Of a matrix whose rows begin within vectors. H200: 16 rows of 11,190,089 bf16 take 269 us in Triton and 478 in CUDA C++, but
2 rows of 1,186,381 fp32 36 and 12."""


def batchnorm_relu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton, the matrix as one vector, up to 2^15 elements, or 2^12 in rows of 2, 4 or 8 bytes, and up to 2^21 where rows are no
    multiples of 16 elements; else Triton, a few rows of the same channels a program, for more than 8 rows of a multiple of 16
    elements that have at least 512 bytes or at most 4096 elements a multiprocessor, and for 2 to 32 rows that are not whole
    vectors and together more than 64 MiB; else and where rows are too long for Triton's grid CUDA C++.

    Triton loads no vectors of other rows, and has few threads a program for short ones. The kernels of few elements know the
    size of the matrix. H200, by Triton and CUDA C++: 300 rows of 3 fp32 1.43 and 1.53 us, 6 of 614 1.18 and 1.37, 8 of 2648 1.43
    and 1.66, 181 of 247 1.62 and 2.75; 3790 rows of 43 fp16 1.68 and 2.00; 8 of 6344 bf16 1.51 and
    1.73, 3576 of 248 fp16 2.58 and 3.02; 65,536 of 4 fp32 1.82 and 1.83, and 512 of 180 fp32 2.34 and 1.82, with half as many
    programs as now; 20 of 31,413 bf16 2.77 and 3.78; 43,803 rows of 2 fp32
    2.08 and 1.51, since a 16-byte vector has whole rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2, 13), (16, 2**20 + 1), (2**20, 13), (2**20, 32), (1, 2**26), (1, 1), (29008, 16), (7, 46187))
    >>> shapes = (*shapes, (8, 6344), (512, 184), (7108, 1), (3576, 248))
    >>> [batchnorm_relu(Problem(op="batchnorm_relu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_fused', 'triton_fused', 'cuda_columns', 'cuda_columns', 'cuda_columns', 'cuda_columns', 'triton_fused', \
'triton_fused', 'triton_fused', 'triton_fused', 'triton_fused', 'cuda_columns', 'triton_fused']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    first, second = ("triton_fused", "cuda_columns"), ("cuda_columns", "triton_fused")
    if m * n <= (FEW_OF_SHORT_ROWS if of_row in (2, 4, 8) else FEW_ELEMENTS):
        return first
    if of_row > LONGEST_BATCHNORM_BYTES or of_row in (2, 4, 8):
        return second
    if triton_vectorises(n):
        long = of_row >= SHORT_BATCHNORM_BYTES or elements_a_multiprocessor(m * n, card) <= ONE_WAVE
        return first if m > FEW_EVEN_ROWS and long else second
    if m * n <= UNEVEN_ELEMENTS:
        return first
    few_long_rows_of_many_bytes = 1 < m <= FEW_ROWS and m * of_row > LARGE_BYTES
    return first if few_long_rows_of_many_bytes and not whole_vectors(problem, "n") else second
