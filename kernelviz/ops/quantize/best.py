"""The variant that a user of a quantisation of rows gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    SHORT_ROW_BYTES,
    Card,
    all_on_chip,
    few_long_rows,
    many_short_rows,
    row_bytes,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.known_lengths import block_tile
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.quantize.slab_ring import number_slab

TRITON_VECTOR = 4
"""Elements, of which a row has a multiple, that Triton compiled for the rows loads at once."""
SHORT_ROW = 8192
"""H200, fp8: 8192 rows of 8192 take 47 us in Triton and 48 in clusters; 2048 rows of 32768 take 54 and 48."""
LONGEST_SLAB_ROW_BYTES = 256
"""`cuda_slab` has no kernel for longer rows."""
BLOCK_ROW_BYTES = 2**15
"""Of a row that a block has in registers, four vectors a thread. H200, fp8: 2048 rows of 16,384 fp16 take 23.1 us so and 24.7 in
persistent clusters; 2048 of 32,768 bf16 48 in these."""
FEW_ROWS_LENGTH = 4096
"""Elements of a row of no multiple of 16, of at most two rows a multiprocessor, up to which a program of Triton is faster. H200,
fp8: 23 rows of 3699 fp32 take 1.92 us so and 2.25 by a block of CUDA C++ each, 237 of 1340 1.90 and 1.99; int8: 2 of 6767 bf16
3.31 and 2.25."""
FEW_ELEMENTS, SOME_ELEMENTS, SHORT_KNOWN_ROW = 2**19, 2**21, 1024
"""Of all rows, of all rows of which Triton loads four elements at once, and of one, for Triton compiled for them. H200, int8:
20,893 rows of 60 bf16 take 2.45 us so and 3.49 as slabs, 22,256 of one fp16 1.35 and 1.37, and 1.25 in torch.compile, but
459,402 of 73 fp32 68.9 and 57.0; torch.compile, fp8: 89 rows of 157 bf16 1.55, and 2.00 by a block a row."""
FP32_ROWS = (4, 8, *range(224, 256))
"""Elements of rows of fp32 that fill nearly all of a tile of Triton, and whose single elements it loads as whole sectors. H200,
int8: 66,120 rows of 8 take 2.09 us so and 2.32 as slabs; 381,919 of 246 108.2 in torch.compile and 115.8, but 187,286 of 919
219.9 and 202.8."""
SOME_VECTORS_BYTES = 64
"""Of a row of whole vectors. H200: 131,072 rows of 32 fp16 take 4.71 us in Triton, 4.81 by blocks of CUDA C++ and 5.12 as
slabs, 1,202,328 rows of 8 bf16 8.85 by blocks and 9.22 as slabs."""


SHORT_WEIGHTED_ROW_BYTES = 96
"""The same with a normalisation. H200: 1,347,592 rows of 48 bf16 take 60.2 us so and 67.6 as slabs; 49,240 of 16 2.05 and
1.93."""
UNEVEN_SPLIT_ROW_BYTES = 2**19
"""Of rows that are not whole 16-byte vectors, which persistent clusters do not process, from which on parts are faster than a
cluster of 16 blocks while L2 keeps the matrix. H200, with a normalisation: 5 rows of 882 KB take 12.2 us in parts and 15.9 by
clusters, 12 of 167 KB 8.48 and 7.10. Between the two, an estimate."""


def quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks a row for few rows of more than 1 MiB; lanes of a warp each for few short rows of several elements; Triton
    compiled for the rows for others of up to 1024 elements, together at most 2^19, or 2^21 in rows of a multiple of four, and
    for fp32 of 4, 8, 224 to 255, or whole vectors of 256 bytes to 2 KiB; up to 256 bytes, Triton for multiples of 16 elements of
    at least 64 bytes, several rows a block of CUDA C++ for shorter whole vectors of 16-bit numbers, and slabs of rows for the
    rest; a ring of slabs for many rows of up to 4 KiB that are not whole vectors; a program of Triton a row up to 8192 elements,
    but a block of CUDA C++ for no multiple of 16 elements and short rows, unless few of up to 4096; of longer rows a block each
    up to 32 KiB, a cluster each if all are on chip at once, and persistent clusters for more.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB. No cluster holds
    a row of more than 1 MiB, and one block a row would leave multiprocessors idle. H200, int8: 213,637 rows of 104 fp16,
    whole vectors, take 19.0 us as slabs and 164 in Triton; 1,328,300 of 180 fp32 271.8 in Triton for the rows and 304.2 by a
    block of CUDA C++; 276,663 rows of 674 fp32 221.5 in a ring of slabs, 231.8 in Triton, 269.4 by a block of CUDA C++ a row and
    210.8 in torch.compile.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((512, 8192), (512, 131072), (512, 4099), (2**20, 64), (19, 2**20), (2**20, 30), (128, 128), (2**17, 1083))
    >>> [quantize(Problem(op="quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_row', 'cuda_columns', 'cuda_registers', 'triton_row', 'cuda_split', 'cuda_slab', 'cuda_slab', \
'cuda_slab']
    >>> shapes = ((2**20, 104), (89, 157), (32, 93_924), (23, 3699))
    >>> [quantize(Problem(op="quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_slab', 'triton_known_length', 'cuda_cluster', 'triton_row']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_registers")
    if n > 1 and _known_length(problem):
        return ("cuda_slab", "triton_row", "cuda_registers")
    if _for_the_rows(problem):
        return ("triton_known_length", "cuda_registers")
    if row_bytes(problem) <= LONGEST_SLAB_ROW_BYTES:
        if row_bytes(problem) >= SOME_VECTORS_BYTES and triton_vectorises(n):
            return ("triton_row", "cuda_slab", "cuda_registers")
        few_vectors = (
            problem.dtype != "fp32" and whole_vectors(problem, "n") and row_bytes(problem) < SOME_VECTORS_BYTES
        )
        if few_vectors:
            return ("cuda_registers", "cuda_slab")
        return ("cuda_slab", "triton_known_length", "cuda_registers")
    if _slab_ring(problem, card, weighted=False):
        return ("cuda_slab", "cuda_registers", "triton_row")
    if n > SHORT_ROW:
        long = "cuda_cluster" if all_on_chip(problem, card) else "cuda_columns"
        return ("cuda_registers" if row_bytes(problem) <= BLOCK_ROW_BYTES else long, "cuda_columns", "cuda_registers")
    few = m <= 2 * card.multiprocessors and n <= FEW_ROWS_LENGTH
    return ("cuda_registers", "triton_row") if _uneven(problem, card) and not few else ("triton_row", "cuda_registers")


def rmsnorm_quantize(problem: Problem, card: Card) -> tuple[str, ...]:
    """Lanes of a warp for each of few short rows, which are together at most about 1000 lanes a multiprocessor, and a block for
    each of few others of up to about 16 KiB, with the length of a row as a constant; else a block of CUDA C++ a row for short
    rows and those of no multiple of 16 elements; else Triton up to 2048 elements, and beyond a cluster each if all are on chip at
    once, and persistent clusters for more; several blocks a row for few rows of more than 1 MiB, and for others than whole
    16-byte vectors of more than 512 KiB while half of L2 keeps the matrix; one or several rows a thread or warp for rows of up
    to 256 bytes, but Triton from 96 bytes on for multiples of 16 elements; a ring of slabs for many rows of up to 4 KiB that are
    not whole 16-byte vectors.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 2 KiB. H200, fp16: 19 rows
    of 24.8 million, one block each, take 5984 us; bf16: 180,692 rows of 2, bytes of each stored apart, take 8.12 us; fp16: one
    row of 26 took 2.05 us in the kernel of slabs, 2.62 to 2.72 in others, and 1.34 in torch.compile; 13 rows of 189 took 2.28
    and 1.57 in torch.compile; 4 rows of 50,048 take 3.71 us by a cluster each and 5.27 by persistent ones.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (32768, 2048), (8192, 8192), (32768, 2047), (19, 24_846_327), (180_692, 2), (2**16, 64), (1, 26))
    >>> shapes = (*shapes, (27, 80_016), (5, 440_927))
    >>> [rmsnorm_quantize(Problem(op="rmsnorm_quantize_fp8", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_slab', 'triton_fused', 'cuda_columns', 'cuda_slab', 'cuda_split', 'cuda_slab', 'triton_fused', 'cuda_slab', \
'cuda_cluster', 'cuda_split']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    uneven = not whole_vectors(problem, "n") and of_row > UNEVEN_SPLIT_ROW_BYTES and m * of_row <= card.l2_bytes // 2
    if uneven or few_long_rows(problem, card):
        return ("cuda_split", "cuda_columns", "cuda_fused")
    if _known_length(problem) or block_tile(m, n, dtype_named(problem.dtype).itemsize_bytes) is not None:
        return ("cuda_slab", "triton_fused", "cuda_fused")
    vectors = SHORT_WEIGHTED_ROW_BYTES <= of_row <= LONGEST_SLAB_ROW_BYTES and triton_vectorises(n)
    if of_row <= LONGEST_SLAB_ROW_BYTES and not vectors:
        return ("cuda_slab", "cuda_fused")
    if _slab_ring(problem, card, weighted=True):
        return ("cuda_slab", "cuda_fused")
    if n <= SHORT_ROW and _uneven(problem, card) and not vectors:
        return ("cuda_fused",)
    if n <= 2048:
        return ("triton_fused", "cuda_fused")
    return ("cuda_cluster" if all_on_chip(problem, card) else "cuda_columns", "cuda_fused")


def _for_the_rows(problem: Problem) -> bool:
    """Whether Triton compiled for the number and length of the rows is fastest for those without lanes of a warp."""
    m, n = problem.sizes["m"], problem.sizes["n"]
    if problem.dtype == "fp32" and (
        n in FP32_ROWS
        or (whole_vectors(problem, "n") and LONGEST_SLAB_ROW_BYTES < row_bytes(problem) < SHORT_ROW_BYTES)
    ):
        return True
    return n <= SHORT_KNOWN_ROW and m * n <= (FEW_ELEMENTS if n % TRITON_VECTOR else SOME_ELEMENTS)


def _known_length(problem: Problem) -> bool:
    """Whether `cuda_slab` gives each row some lanes."""
    itemsize_bytes = dtype_named(problem.dtype).itemsize_bytes
    return row_lanes(problem.sizes["m"], problem.sizes["n"], itemsize_bytes) is not None


def _slab_ring(problem: Problem, card: Card, *, weighted: bool) -> bool:
    """Whether `cuda_slab` copies rows of medium length in slabs, which begin within 16-byte vectors."""
    (m, n), itemsize_bytes = (problem.sizes[axis] for axis in "mn"), dtype_named(problem.dtype).itemsize_bytes
    many = number_slab(m, n, itemsize_bytes, card.multiprocessors, weighted=weighted) is not None
    return many and not whole_vectors(problem, "n")


def _uneven(problem: Problem, card: Card) -> bool:
    """Whether Triton cannot load rows as vectors, or they are too short for a program each."""
    return not triton_vectorises(problem.sizes["n"]) or many_short_rows(problem, card)
