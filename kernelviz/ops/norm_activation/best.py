"""The variant that a user of a normalisation with an activation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    Card,
    elements_a_multiprocessor,
    few_long_rows,
    many_short_rows,
    row_bytes,
    slabs_of_rows,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.row_lanes import row_lanes

SHORT_ROW = 4096
"""H200: 16384 rows of 4096 take 69 us in triton_fused and 74 in cuda_columns; 8192 rows of 8192 take 74 and 72."""
FEW_ROWS = 32
"""Of a matrix whose rows begin within vectors. H200: 16 rows of 11,190,089 bf16 take 269 us in Triton and 478 in CUDA C++."""
SHORT_BYTES = 1024
"""The gelu of a row of 1 KiB takes as long as the start of a program."""
SLAB_ROW_BYTES, UNEVEN_SLAB_ROW_BYTES = 256, 2048
"""Of rows that are whole 16-byte vectors and of others, of which no slab has longer ones. H200: 300,000 rows of 192 bytes take
31 us through a ring of slabs, 47 as slabs and 55 by warps; 1773 rows of 737 fp16 4.78, 4.39 and 6.39."""
FEW_SLABS_BYTES, LONG_UNEVEN_BYTES = 2**24, 1024
"""Of a matrix of rows of more than 1 KiB, up to which slabs without a ring are faster: an estimate."""
RING_ROW = 2
"""Elements of a row, for up to which a ring hides less than it costs. H200: 537 million rows of 2 bf16 take 1182 us as slabs and
1250 through the ring."""
LONGEST_BATCHNORM_BYTES = LARGEST_GRID_Y * 512
"""The second dimension of Triton's grid counts parts of 512 bytes of a row."""


def layernorm_gelu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Lanes of a warp for each of few short rows, which are together at most about 1000 lanes a multiprocessor, with the length
    of a row as a constant; else Triton for rows of at most 4096, and persistent clusters of CUDA C++ for longer ones; several
    blocks a row for a few rows that no cluster keeps; many short rows as pieces of shared memory, without a ring for at most 2
    elements and for rows of more than 1 KiB that are together at most 16 MiB; blocks of CUDA C++ for other short rows and those
    of no multiple of 16 elements, except up to 256 elements a multiprocessor.

    Triton loads no vectors of such rows, and starting a program takes longer than a row of less than 1 KiB. Few elements take
    the latency of one load, whatever its width. H200, fp32: 19 rows of 17 took 1.49 us in Triton, which loads the weight once
    the row has arrived, 1.39 in torch.compile. How many lanes are few is an estimate.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((512, 4096), (512, 8192), (512, 4099), (2**20, 64), (2**20, 6), (1366, 6), (4, 2**22), (1773, 737))
    >>> [layernorm_gelu(Problem(op="norm_activation", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_fused', 'cuda_columns', 'cuda_cluster', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_slab', 'cuda_split', \
'cuda_slab']
    """
    n = problem.sizes["n"]
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_fused")
    if row_lanes(problem.sizes["m"], n, dtype_named(problem.dtype).itemsize_bytes) is not None:
        return ("cuda_slab", "triton_fused", "cuda_fused")
    if slabs_of_rows(
        problem, card, longest_bytes=SLAB_ROW_BYTES if whole_vectors(problem, "n") else UNEVEN_SLAB_ROW_BYTES
    ):
        of_row = row_bytes(problem)
        few_slabs = of_row > LONG_UNEVEN_BYTES and problem.sizes["m"] * of_row <= FEW_SLABS_BYTES
        slabs = ("cuda_slab", "cuda_slab_stages")
        return (*(slabs if n <= RING_ROW or few_slabs else slabs[::-1]), "cuda_fused")
    if elements_a_multiprocessor(problem.sizes["m"] * n, card) <= 256 and n <= SHORT_ROW:
        return ("triton_fused", "cuda_fused")
    if not triton_vectorises(n) or many_short_rows(problem, card, short_bytes=SHORT_BYTES):
        return ("cuda_cluster", "cuda_fused")
    return ("triton_fused", "cuda_fused") if n <= SHORT_ROW else ("cuda_columns", "triton_fused")


ONE_WARP = 32
"""Elements, one a thread."""
ONE_WAVE = 4096
"""Elements a multiprocessor, of short rows of a multiple of 16 elements. H200: 29,008 rows of 16 fp32 take 2.09 us by Triton's
programs and 2.28 in CUDA C++; 3.7 million of 112 bf16 393 and 401, 16.8 million of 16 fp16 320 and 256."""


def batchnorm_relu(problem: Problem, card: Card) -> tuple[str, ...]:
    """Up to 32 elements CUDA C++, one a thread; else Triton, a few rows of the same channels a program, or one element a thread;
    CUDA C++ where rows are short or no multiple of 16 elements, except up to 256 elements a multiprocessor (4096 in short rows
    of a multiple of 16 elements) and 2 to 32 such rows, and where they are too long for Triton's grid.

    Triton loads no vectors of such rows, and has few threads a program for short ones. Few elements take the latency of one
    load, whatever its width. H200, one fp16: CUDA C++ 1.23 us, Triton 1.57. With more than one block Triton is faster (fp32 by
    Triton and CUDA C++: 300 x 3 1.43 and 1.53, 16 x 221 1.46 and 1.66, 16 x 2000 1.53 and 1.85). These are times of Triton's
    kernel of several rows a program; that of one element a thread, which few elements have now, and the limit of 32 elements
    were not measured.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2, 13), (16, 2**20 + 1), (2**20, 13), (2**20, 32), (1, 2**26), (1, 1), (29008, 16))
    >>> [batchnorm_relu(Problem(op="batchnorm_relu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_fused', 'cuda_columns', 'triton_fused', 'cuda_columns', 'cuda_columns', 'cuda_columns', 'cuda_columns', \
'triton_fused']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    fits = row_bytes(problem) <= LONGEST_BATCHNORM_BYTES
    few_odd_rows = 1 < m <= FEW_ROWS and n > m and not whole_vectors(problem, "n")
    even = triton_vectorises(n) and not many_short_rows(problem, card, short_bytes=SHORT_BYTES)
    if m * n <= ONE_WARP:
        return ("cuda_columns", "triton_fused")
    few_elements = elements_a_multiprocessor(m * n, card) <= (ONE_WAVE if triton_vectorises(n) else 256)
    if fits and (even or few_odd_rows or few_elements):
        return ("triton_fused", "cuda_columns")
    return ("cuda_columns", "triton_fused")
