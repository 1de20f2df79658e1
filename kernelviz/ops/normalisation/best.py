"""The variant that a user of a normalisation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    SHORT_ROW_BYTES,
    Card,
    few_long_rows,
    many_short_rows,
    row_bytes,
    slabs_of_rows,
    triton_vectorises,
    whole_vectors,
)
from kernelviz.ops.kernels.known_lengths import known_tile
from kernelviz.ops.kernels.known_rows import LONGEST_ROW as LONGEST_KNOWN_ROW
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.normalisation.cuda import FEW_ROWS, SHORT_VECTORS, async_tile, cluster_tile, power_of_2
from kernelviz.ops.normalisation.cuda_backward import one_block_tile
from kernelviz.ops.normalisation.cuda_slab_backward import LONGEST_ROW_BYTES

LONG_ROW = 16384
"""From 16384 elements of bf16 on, a row takes more than the registers that Triton's programs have for it where rows are many.
H200, rmsnorm: 512 rows of 32,768 fp16 take 18.3 us in Triton, 18.3 by prefetched rows and 17.0 by a block of CUDA C++ each."""
PROGRAM_PART = 2 / 3
"""Of the power of two elements that a program of Triton processes, which a row of many must fill. H200: rmsnorm of 20,464 rows of
5040 bf16, 62 % of 8192, takes 108.6 us in Triton and 95.4 by a block of CUDA C++ each; layernorm of 26,695 rows of 3152, 77 % of
4096, 90.4 and 97.6. Between the two, an estimate."""
SHORT_CENTRED_ROW_BYTES = 4096
"""H200, layernorm: 4096 rows of 4 KiB take 8.77 us by persistent programs of Triton and 9.32 by a program each, 512 rows of 8 KiB
4.93 and 3.85, 32,768 rows of 4 KiB, more than fit into L2, 78.8 and 65.3."""
SLAB_ROW_BYTES = 2048
"""Of rows that are not whole 16-byte vectors, of which no slab has longer ones. H200, layernorm: 200,000 rows of 300 bytes take
31 us through a ring of slabs, 35 as slabs and 104 by warps. Rows that are whole vectors are slower: rmsnorm of 400,000 rows of
128 bytes takes 25 us through a ring, and 24 by warps."""
LONG_SLAB_ROW_BYTES, FEW_SLABS_BYTES = 1024, 6 * 2**20
"""Of longer rows of a smaller matrix, slabs without a ring are faster. H200, add_rmsnorm: 2424 rows of 1870 bytes take 7.31 us as
slabs, 8.73 through a ring and 9.27 by a block each; norm_activation of 4516 rows of 1766 bytes 10.76, 8.50 and 14.6. Between the
two, an estimate."""
THREE_VECTORS_ROW_BYTES = (6, 12, 24)
"""Of rows of which a thread of the ring reads three adjacent vectors straight into registers, each a part of a sector of L2;
slabs without a ring are faster where such rows are many. H200, rmsnorm: 680,083 rows of 3 fp32, 8.2 MB, take 5.28 us as slabs
and 5.65 in the ring, 73 million of 3 bf16 222 and 259; but norm_activation of 263,537 of 3 bf16, 1.6 MB, 3.03 and 2.42."""
LEAST_PROGRAM_BYTES, MOST_PROGRAM_ELEMENTS = 512, 512
"""Of rows of no more than so many elements that are not whole 16-byte vectors, but multiples of 4 bytes, of more than
FEW_SLABS_BYTES together, from which on programs for the size come first, as for those of one element, if all together are whole
vectors; shorter rows leave more of their threads idle. Estimates from inductor's kernels, which have such programs. H200:
add_rmsnorm of 59,794 rows of 490 fp16 takes 55.1 us by inductor's and 61.2 through a ring, rmsnorm of 224,939 of 262 fp32 115 and
119, layernorm of 38,841,088 of one fp32 71.0 and 74.2, of 200,670,640 of one fp16 185 and 192; but of 39,260,491 67.2 and 37.0,
add_rmsnorm of 42,076 rows of 135 fp16 14.2 and 13.6, of 4,751,392 of 18 fp16 184 and 167, and norm_activation of 4516 of 883 fp16
13.3 and 8.5, quantize_int8 of 187,286 of 919 fp32 220 and 203."""
BLOCK_ROW_BYTES, SMALL_BLOCK_ROW_BYTES = 64 * 1024, 48 * 1024
"""Of the longest rows that a block keeps, and of those of few that begin within vectors. H200: rmsnorm of 4742 rows of 55 KB
takes 141 us by a block each and 157 to 162 by clusters, layernorm of 17 rows of 54 KB 8.94 and 7.95, rmsnorm of 5 rows of 35 KB
5.65 and 6.36, of 10 rows of 47 KB 5.28 and 5.50, of 18 of 44 KB, whole vectors, 2.99 by Triton's programs, 3.21 and 3.48."""
CLUSTER_OF_8_ROW_BYTES = 256 * 1024
"""Of rows that are not whole 16-byte vectors, up to which a cluster of at most eight blocks each is faster than persistent
clusters and than parts; of 16 blocks, few clusters run at once. H200: layernorm of 1240 rows of 81 KB takes 92 us by a cluster
each and 109 by persistent ones; add_rmsnorm of 17 rows of 138 KB 7.32, 10.6 and, in parts, 9.44, of 44 rows of 268 KB 25.9, 23.9
and 22.4, of 4 rows of 433 KB 9.32, 14.5 and 7.67."""
FEW_SPLIT_ROWS, FEW_SPLIT_SUMS = 1, 4
"""Rows of whole 16-byte vectors of more than SPLIT_ROW_BYTES, of two and of four tensors, up to which parts are faster than a
cluster each, which has too few multiprocessors: estimates from a model of both. H200, add_rmsnorm: 4 rows of 2 MiB take 15.2 us
in parts and 15.9 by clusters."""
FEW_UNEVEN_SPLIT_ROWS = 3
"""The same of other rows of more than half as many bytes. H200, rmsnorm: 3 rows of 686 KB take 7.46 us in parts and 7.96 by
clusters, 6 rows of 1.3 MB 13.0 and 8.48."""
SPLIT_ROW_BYTES = 2**20
LONGEST_BACKWARD_ROW_BYTES = 2**19
"""Of a row that the 16 blocks of a cluster hold. The kernel for longer ones has one block a row."""
SPLIT_BACKWARD_BYTES_A_ROW = 2048
"""Of a row for each row, from which on parts are faster: their second kernel passes over all rows one after the other, and a
cluster over its own. H200: 3 rows of 7 KB take 6.68 us in parts and 7.80 by clusters, 21 rows of 121 KB 16.6 and 40.3, 36 rows of
509 KB 42.8 and 116; 64 rows of 131 KB 33.4 and 15.3, 28 rows of 4 KB 16.3 and 9.0."""
PROGRAM_BACKWARD_ROW_BYTES, FEWEST_PROGRAMS = 16 * 1024, 64
"""H200: 8192 rows of 16 KiB take 98 us in persistent programs of Triton and 111 in clusters, 2048 rows of 32 KiB 100 and 61; 64
rows of 1 KiB 6.53 and 5.37. And rows of at least 2 KiB, which keep half of the multiprocessors busy: 64 rows of 8 KiB 6.22 and
7.52."""


def rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ for the length of a row (`known_tile`) where rows fit into the lanes of a warp or a few into a block each; several
    blocks a row for rows that no cluster keeps and for very few of more than 1 MiB; slabs for other rows of up to 2 KiB that are
    not whole 16-byte vectors; a program of Triton a row up to 16384 elements, or 64 KiB of few rows, if rows are multiples of 16
    elements of at least 2 KiB and fill two thirds of a program; else a block of CUDA C++ a row up to 64 KiB, or 48 KiB where few
    rows begin within vectors, and clusters or prefetched rows beyond; backward, one block for few elements, slabs of rows of up
    to 512 bytes, several blocks a row for few rows of more than 512 KiB or 2 KiB for each of them, persistent programs of Triton
    for other rows of more than 512 KiB and for at least 64 of 2 to 16 KiB that are multiples of 16 elements, and clusters for the
    rest; forward, programs of Triton for the size are the second choice of rows of up to 8192 elements, and the first before
    slabs of more than 6 MiB in rows of one element that are whole vectors together, or of at most 512 elements that have at least
    512 bytes, a multiple of four.

    Triton loads no vectors of other rows, and starting a program takes longer than a row of less than 2 KiB. A program processes
    a power of two elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (8, 2**18), (8192, 8192), (1024, 131072), (8192, 8195), (2**20, 64), (2**20, 7), (2, 2**22))
    >>> shapes = (*shapes, (20_464, 5040), (512, 32_768))
    >>> [rmsnorm(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'cuda_cluster', 'triton_block_per_row', 'cuda_async', 'cuda_registers', 'cuda_columns', \
'cuda_slab_stages', 'cuda_split', 'cuda_registers', 'cuda_registers']
    """
    return _with_known_size(problem, _without_triton(problem, card) or _by_length(problem, card, LONG_ROW))


def layernorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """As rmsnorm, but persistent programs of Triton for rows of 2 to 4 KiB of a matrix that fits into L2, persistent clusters for
    longer rows than Triton's programs keep, and backward no programs for fp32 of up to 512 KiB.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (32768, 2048), (8192, 1536), (512, 131072), (16, 4099), (3, 102693), (2**20, 8))
    >>> [layernorm(Problem(op="layernorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'triton_block_per_row', 'triton_persistent', 'cuda_columns', 'cuda_columns', 'cuda_cluster', \
'cuda_columns']
    """
    other = _without_triton(problem, card)
    if other:
        return _with_known_size(problem, other)
    if problem.sizes["n"] <= LONG_ROW or _is_few(problem, card):
        of_row = row_bytes(problem)
        persistent = of_row <= SHORT_CENTRED_ROW_BYTES and problem.sizes["m"] * of_row <= card.l2_bytes
        named = ("triton_persistent" if persistent else "triton_block_per_row", "cuda_registers")
        return _with_known_size(problem, named)
    return ("cuda_columns", "cuda_registers")


def add_rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """As rmsnorm, but several blocks a row for rows of more than 256 KiB that are not whole 16-byte vectors while half of L2
    keeps the sum, and a program of Triton a row up to 32768 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (2048, 32768), (512, 131072), (2048, 32769), (2**20, 21), (24, 840), (4, 216_529))
    >>> [add_rmsnorm(Problem(op="add_rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'triton_block_per_row', 'cuda_async', 'cuda_cluster', 'cuda_slab_stages', 'cuda_columns', 'cuda_split']
    """
    return _with_known_size(problem, _without_triton(problem, card) or _by_length(problem, card, 2 * LONG_ROW))


def _with_known_size(problem: Problem, names: tuple[str, ...]) -> tuple[str, ...]:
    """Forward, programs for the size as the second choice of rows that they keep, and as the first of those of one element or of
    LEAST_PROGRAM_BYTES.

    >>> shapes = ((64, 128), (2**20, 1), (59_794, 490), (42_076, 135), (16, 8193))
    >>> problems = [Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> [_with_known_size(problem, ("cuda_slab_stages", "cuda_slab"))[:2] for problem in problems]
    [('cuda_slab_stages', 'triton_known_size'), ('cuda_slab_stages', 'triton_known_size'), ('triton_known_size', \
'cuda_slab_stages'), ('cuda_slab_stages', 'triton_known_size'), ('cuda_slab_stages', 'cuda_slab')]
    """
    n, of_row = problem.sizes["n"], row_bytes(problem)
    if problem.direction == "backward" or n > LONGEST_KNOWN_ROW:
        return names
    many = problem.sizes["m"] * of_row > FEW_SLABS_BYTES and names[0] in ("cuda_slab", "cuda_slab_stages")
    is_long = of_row >= LEAST_PROGRAM_BYTES and n <= MOST_PROGRAM_ELEMENTS and of_row % 4 == 0
    one_vector = n == 1 and problem.sizes["m"] * of_row % VEC16_BYTES == 0
    is_first = many and (one_vector or is_long)
    return ("triton_known_size", *names) if is_first else (names[0], "triton_known_size", *names[1:])


def _without_triton(problem: Problem, card: Card) -> tuple[str, ...]:
    """For a backward pass, for rows whose length a kernel knows, for those that are split, and for those that Triton cannot load
    as vectors, that are too short for a program each or, of many, that fill less of it than two thirds; else none.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of a short row. Many of
    them are pieces of shared memory.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((2**20, 21), (2**18, 150), (500, 21), (100, 80), (4, 2**22), (4, 4099), (10, 27175), (5274, 6526), (2**25, 3))
    >>> [_without_triton(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_slab_stages', 'cuda_slab_stages', 'cuda_columns', 'cuda_columns', 'cuda_split', 'cuda_columns', 'cuda_cluster', \
'cuda_registers', 'cuda_slab']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    if problem.direction == "backward":
        return _backward(problem, card)
    if known_tile(m, n, dtype_named(problem.dtype).itemsize_bytes) is not None:
        return ("cuda_columns", "triton_block_per_row", "cuda_registers")
    if _is_split(problem, card):
        return ("cuda_split", "cuda_registers")
    if triton_vectorises(n) and not many_short_rows(problem, card) and not _fills_little(problem, card):
        return ()
    whole = whole_vectors(problem, "n")
    if not whole and slabs_of_rows(problem, card, longest_bytes=SLAB_ROW_BYTES):
        few = m * of_row <= FEW_SLABS_BYTES
        ring = of_row <= LONG_SLAB_ROW_BYTES if few else of_row not in THREE_VECTORS_ROW_BYTES
        slabs = ("cuda_slab_stages", "cuda_slab")
        return (*(slabs if ring else slabs[::-1]), "cuda_registers")
    if m <= FEW_ROWS and of_row <= SHORT_VECTORS * VEC16_BYTES:
        return ("cuda_columns", "cuda_registers")
    if of_row <= BLOCK_ROW_BYTES:
        clusters = not whole and of_row > SMALL_BLOCK_ROW_BYTES and m <= card.multiprocessors
        return ("cuda_cluster", "cuda_registers") if clusters else ("cuda_registers",)
    clusters = not whole and (of_row <= CLUSTER_OF_8_ROW_BYTES or _all_in_progress(problem, card))
    return ("cuda_cluster" if clusters else "cuda_columns", "cuda_registers")


def _is_split(problem: Problem, card: Card) -> bool:
    """Whether several blocks share each row, in two launches: no persistent cluster keeps it, or clusters would have few
    multiprocessors.

    H200, by persistent clusters and in parts: layernorm of 24 rows of 1.4 MB 34 and 40 us, of 8 rows of 3.0 MB 33.4 and 34.2;
    rmsnorm of 28 rows of 1.8 MB 36 and 49, of 4 rows of 2.6 MB 12.8 and 14.3; add_rmsnorm of 16 rows of 2 MiB 40.7 and 42.5.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((24, 624_912), (6, 632_372), (3, 342_927), (1, 2**20), (4, 2**19), (4, 1_307_432), (500, 2**22))
    >>> [_is_split(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200) for m, n in shapes]
    [False, False, True, True, False, False, True]
    """
    m, of_row, adds, whole = (
        problem.sizes["m"],
        row_bytes(problem),
        problem.op == "add_rmsnorm",
        whole_vectors(problem, "n"),
    )
    vectors = (
        -(-of_row // VEC16_BYTES) if whole else of_row // VEC16_BYTES + 2
    )  # that a row touches, wherever it begins
    stays = async_tile(vectors, 2 if adds else 1, centred=problem.op == "layernorm") is not None
    if not stays and few_long_rows(problem, card):
        return True
    if not whole:
        if adds:
            return of_row > CLUSTER_OF_8_ROW_BYTES and m * of_row <= card.l2_bytes // 2
        return m <= FEW_UNEVEN_SPLIT_ROWS and of_row > SPLIT_ROW_BYTES // 2
    return m <= (FEW_SPLIT_SUMS if adds else FEW_SPLIT_ROWS) and of_row > SPLIT_ROW_BYTES


def _by_length(problem: Problem, card: Card, longest: int) -> tuple[str, ...]:
    """A program a row up to the longest, or of few rows as long as one keeps them; a block as long as one keeps them, and
    prefetched rows beyond.
    """
    if problem.sizes["n"] <= longest or _is_few(problem, card):
        return ("triton_block_per_row", "cuda_registers")
    if row_bytes(problem) <= BLOCK_ROW_BYTES:
        return ("cuda_registers",)
    return ("cuda_cluster" if _all_in_progress(problem, card) else "cuda_async", "cuda_registers")


def _fills_little(problem: Problem, card: Card) -> bool:
    """Whether rows that a block keeps are more than the multiprocessors, and fill less of a program of Triton than pays."""
    n = problem.sizes["n"]
    many = problem.sizes["m"] > card.multiprocessors and row_bytes(problem) <= BLOCK_ROW_BYTES
    return many and n < PROGRAM_PART * power_of_2(n)


def _is_few(problem: Problem, card: Card) -> bool:
    """Whether no multiprocessor has two programs, of rows that each keeps in registers."""
    return problem.sizes["m"] <= card.multiprocessors and row_bytes(problem) <= BLOCK_ROW_BYTES


def _all_in_progress(problem: Problem, card: Card) -> bool:
    """Whether the clusters of all rows run at once: none is left to prefetch."""
    tile = cluster_tile(-(-row_bytes(problem) // VEC16_BYTES))
    return tile is not None and problem.sizes["m"] * tile.cluster <= card.multiprocessors


def _backward(problem: Problem, card: Card) -> tuple[str, ...]:
    """H200: 8192 rows of 8192 take 98 us in Triton and 111 in clusters; 2048 rows of 32768 take 311 and 112, and 49751 rows
    of 23, of which Triton loads no vectors, 37 and 14. 8 rows of 3.5 million take 2261 and 3211: one block or cluster a row
    leaves multiprocessors idle, so several share each of a few rows that no cluster holds, and of rows that are long for their
    number. Few elements have one block and one launch in `cuda_cluster`; larger problems of short rows pass as slabs:
    add_rmsnorm of 1,438,707 rows of 11 bf16 takes 37.6 us so and 119 in clusters, layernorm of 131,072 rows of 128 bf16 28.2 and
    34.8, of 65,864 rows of 104 fp32 24.4 and 27.4. Of fp32, which clusters need not convert, layernorm is faster in them: 16,384
    rows of 8 KiB take 111 us and 123 in Triton, of 16 bits 13,848 rows of 6 KB 83.9 and 78.2; rmsnorm of 512 rows of 16 KiB of
    fp32 13.4 and 12.9.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2048, 32768), (8192, 8195), (8, 2**22), (3, 12623), (600, 2**22), (2, 261), (2**21, 11))
    >>> sizes = [{"m": m, "n": n} for m, n in shapes]
    >>> problems = [Problem(op="rmsnorm", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [_backward(problem, H200)[0] for problem in problems]
    ['triton_persistent', 'cuda_cluster', 'cuda_cluster', 'cuda_split', 'cuda_split', 'triton_persistent', 'cuda_cluster', \
'cuda_slab_stages']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    centred = problem.op == "layernorm"
    if one_block_tile(m, n, dtype_named(problem.dtype).itemsize_bytes, centred=centred) is not None:
        return ("cuda_cluster", "triton_persistent")
    if of_row <= LONGEST_ROW_BYTES:
        return ("cuda_slab_stages", "triton_persistent", "cuda_cluster")
    if few_long_rows(problem, card, longest_bytes=min(LONGEST_BACKWARD_ROW_BYTES, m * SPLIT_BACKWARD_BYTES_A_ROW)):
        return ("cuda_split", "triton_persistent", "cuda_cluster")
    in_program = (
        SHORT_ROW_BYTES <= of_row <= PROGRAM_BACKWARD_ROW_BYTES and triton_vectorises(n) and m >= FEWEST_PROGRAMS
    )
    if of_row > LONGEST_BACKWARD_ROW_BYTES or (in_program and not (centred and problem.dtype == "fp32")):
        return ("triton_persistent", "cuda_cluster")
    return ("cuda_cluster", "triton_persistent")
