"""The variant that a user of a quantisation of rows gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    SHORT_ROW_BYTES,
    Card,
    all_on_chip,
    few_long_rows,
    row_bytes,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.known_lengths import block_tile
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.quantize.slab_ring import LONGEST_ROW_BYTES as UNEVEN_SLAB_ROW_BYTES

FEW_ELEMENTS, FEW_ROWS_LENGTH, SHORT_KNOWN_ROW = 2**21, 4096, 1024
"""Of all rows, of one of them, and of one that Triton is compiled for."""
TINY_ROW, POWER_ROW = 8, 64
"""Elements of rows that begin within vectors, of which slabs have many, and of those that programs of Triton load as vectors and
need not pad. H200: 249,253 rows of 3 bf16 take fp8 2.18 us in slabs and 2.95 in Triton, 294,602 of 6 3.09 and 3.39; 19,747,008 of
16 bf16 260 and 234, 4,194,304 of 64 fp32 332 and 304, int8 33,117,625 of 4 fp32 201 and 179."""
SLAB_ROW_BYTES = 256
"""Of a row of whole 16-byte vectors, up to which `cuda_slab` has several in a piece of shared memory."""
PROGRAM_ROW, WEIGHTED_PROGRAM_ROW, SLAB_ROW = 8192, 2048, 1024
"""Elements of a row of many that a program of Triton has in registers, without and with a normalisation, and of one that a warp
of the kernel of slabs has in registers."""
BLOCK_ROW_BYTES = 2**15
"""Of a row that a block of CUDA C++ has in registers, four vectors a thread."""


def quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks a row for few rows over 1 MiB; a kernel for the length where all warps or blocks run together; Triton for
    2^21 elements in rows of 8 to 4096, powers of 2 to 64, or multiples of 16 from 2 KiB to 8192; slabs to 256 bytes, 4 KiB if
    not whole vectors; else blocks or clusters.

    A slab is a piece of shared memory with several rows. Triton loads no vectors of other rows, and starting a program takes
    longer than a row of less than 2 KiB. A block keeps a row of 32 KiB; clusters are persistent unless the GPU holds all rows at
    once.

    H200, int8: 20,893 rows of 60 bf16 take 2.45 us in Triton and 3.49 as slabs, 213,637 of 104 fp16 164 and 19.0; 276,663 of 674
    fp32 221.5 in a ring of slabs and 269.4 by a block each. fp8: 8192 rows of 8192 47 in Triton and 48 by clusters, 23 of 3699
    fp32 1.92 and, by a block each, 2.25; 2048 of 16,384 fp16 23.1 by a block each and 24.7 by persistent clusters; 32 of 93,924
    fp32 7.90 by a cluster each and 9.25 by persistent ones. 48 of 2549 bf16 1.82 by a block each
    of the kernel for the length, 2.39 in Triton and 2.06 in torch.compile.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((19, 2**20), (128, 128), (89, 157), (237, 1340), (900, 1340), (2**20, 64), (2**17, 1083), (512, 8192))
    >>> shapes = (*shapes, (512, 8195), (32, 93_924), (512, 131_072))
    >>> [quantize(Problem(op="quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'cuda_slab', 'cuda_slab', 'cuda_slab', 'triton_row', 'triton_known_length', 'cuda_slab', \
'triton_row', 'cuda_registers', 'cuda_cluster', 'cuda_columns']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_registers")
    if _has_known_length(problem):
        return ("cuda_slab", "triton_known_length", "triton_row", "cuda_registers")
    is_tiny = n < TINY_ROW and not whole_vectors(problem, "n")
    if m * n <= FEW_ELEMENTS and n <= FEW_ROWS_LENGTH and not is_tiny:
        programs = ("triton_known_length", "triton_row")
        return (*(programs if n <= SHORT_KNOWN_ROW else programs[::-1]), "cuda_slab", "cuda_registers")
    if n <= POWER_ROW and n & (n - 1) == 0 and whole_vectors(problem, "n"):
        return ("triton_known_length", "triton_row", "cuda_slab", "cuda_registers")
    if _has_slabs(problem):
        return ("cuda_slab", "triton_known_length", "triton_row", "cuda_registers")
    if of_row >= SHORT_ROW_BYTES and n <= PROGRAM_ROW and triton_vectorises(n):
        return ("triton_row", "triton_known_length", "cuda_registers", "cuda_columns")
    if of_row <= BLOCK_ROW_BYTES:
        return ("cuda_registers", "triton_known_length", "cuda_cluster", "triton_row", "cuda_slab")
    return (*_clusters(problem, card), "cuda_registers", "triton_known_length", "cuda_split")


def rmsnorm_quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks a row for few rows over 1 MiB; a kernel for the length of a row where lanes of a warp or blocks of all rows
    run at once; slabs for others up to 256 bytes, or 4 KiB if not whole 16-byte vectors; from 2 KiB to 2048 elements in
    multiples of 16, slabs for at most 1024 and Triton for more; else clusters.

    Clusters are persistent unless the GPU holds all rows at once.

    H200: one row of 26 fp16 takes 2.05 us in the kernel of slabs and 1.34 in torch.compile; 4 of 50,048 3.71
    by a cluster each and 5.27 by persistent ones; 131,072 of 1024 bf16 94 in the kernel of slabs and 118 in Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((19, 24_846_327), (1, 26), (16, 4096), (180_692, 2), (32_768, 2047), (32_768, 2048), (27, 80_016), (8192, 8192))
    >>> shapes = (*shapes, (131_072, 1024))
    >>> [rmsnorm_quantize(Problem(op="rmsnorm_quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'cuda_slab', 'cuda_slab', 'cuda_slab', 'cuda_slab', 'triton_fused', 'cuda_cluster', 'cuda_columns', \
'cuda_slab']
    """
    n, of_row = problem.sizes["n"], row_bytes(problem)
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_fused")
    if _has_known_length(problem) or _has_slabs(problem):
        return ("cuda_slab", "triton_fused", "cuda_fused", "cuda_columns")
    if of_row >= SHORT_ROW_BYTES and n <= WEIGHTED_PROGRAM_ROW and triton_vectorises(n):
        programs = ("triton_fused", "cuda_fused", "cuda_slab", "cuda_columns", "cuda_cluster")
        return ("cuda_slab", *(name for name in programs if name != "cuda_slab")) if n <= SLAB_ROW else programs
    slabs_or_blocks = "cuda_slab" if of_row <= BLOCK_ROW_BYTES else "cuda_split"
    return (*_clusters(problem, card), "cuda_fused", "triton_fused", slabs_or_blocks)


def _clusters(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters first where a cluster has a next row that it can load early."""
    return ("cuda_cluster", "cuda_columns") if all_on_chip(problem, card) else ("cuda_columns", "cuda_cluster")


def _has_known_length(problem: Problem) -> bool:
    """Whether `cuda_slab` gives each row lanes of a warp or a block, in a kernel that knows the length of a row."""
    m, n, itemsize_bytes = problem.sizes["m"], problem.sizes["n"], dtype_named(problem.dtype).itemsize_bytes
    return row_lanes(m, n, itemsize_bytes) is not None or block_tile(m, n, itemsize_bytes) is not None


def _has_slabs(problem: Problem) -> bool:
    """Whether `cuda_slab` processes rows of such a length as pieces of shared memory, if they are many."""
    return row_bytes(problem) <= (SLAB_ROW_BYTES if whole_vectors(problem, "n") else UNEVEN_SLAB_ROW_BYTES)
