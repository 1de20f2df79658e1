"""The variant that a user of a normalisation gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import SHORT_ROW_BYTES, Card, row_bytes, triton_vectorises, whole_vectors
from kernelviz.ops.kernels.known_lengths import known_tile
from kernelviz.ops.normalisation.cuda_slab_backward import LONGEST_ROW_BYTES

KIB = 1024
SPLIT_ROW_BYTES, SPLIT_SUM_BYTES = 2048 * KIB, 1024 * KIB
"""Of a row, and of one of two tensors, that the registers and shared memory of a cluster just hold."""
SPLIT_BACKWARD_ROW_BYTES, SPLIT_FEW_BACKWARD_ROW_BYTES = 512 * KIB, 16 * KIB
"""Of a row that a cluster just holds, and of few, whose clusters would leave most multiprocessors idle. H200: 6 rows of 24 KB
take 7.84 us by several blocks each and 10.3 by clusters, 36 of 509 KB 42.8 and 116, but 64 of 512 KiB 71.9 and 48.2."""
FEW = 3
"""Multiprocessors for each of few rows."""
SLAB_ROW_BYTES = 2 * KIB
"""Of a row that begins within 16-byte vectors, of which no slab has longer ones."""
PROGRAM_ROW_BYTES, PROGRAM_SUM_BYTES, PROGRAM_BACKWARD_ROW_BYTES = 32 * KIB, 64 * KIB, 16 * KIB
"""Of a row that a program of Triton has in registers."""
BLOCK_ROW_BYTES = 64 * KIB
"""Of a row that a block has in registers."""
CLUSTER_ROW_BYTES = 512 * KIB
"""Of a row that begins within 16-byte vectors, up to which persistent clusters gain nothing."""


def rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks a row over 2 MiB (backward 512 KiB, of few rows 16 KiB); forward a kernel for the length of short or few
    rows; slabs up to 2 KiB if not whole 16-byte vectors (backward any up to 512 bytes); Triton for multiples of 16 elements from
    2 to 32 KiB (backward 16 KiB); else blocks or clusters.

    Which rows are short or few, `known_tile` decides; backward, few are at most a third of the multiprocessors. A slab is a piece
    of shared memory with several rows. Triton loads vectors of multiples of 16 elements only. A block keeps a row of 64 KiB;
    forward, clusters are persistent except for rows up to 512 KiB that are not whole vectors.

    H200: 10,569 rows of 19 bf16 take 2.12 us by a kernel for the length and 2.28 in slabs, layernorm of 200,000 of 300 bytes 31
    through a ring of slabs and 104 by a warp each. 1376 of 1632 fp16 take 3.26 in Triton and 3.52 by a block each, 512 of 32,768
    18.3 and 17.0; 1771 of 68,916 166 by a cluster each and 222 by persistent ones, layernorm of 3288 of 51,272 230 and 205.
    Backward, 8192 of 8192 bf16 take 98 in Triton and 111 by clusters, 2048 of 32,768 311 and 112; add_rmsnorm of 1,438,707 of 11
    37.6 in slabs and 119 by clusters.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((2, 2**22), (16, 8192), (2**20, 64), (2**20, 7), (8192, 8192), (8192, 8195), (1024, 131_072), (340, 77_917))
    >>> [rmsnorm(Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'cuda_columns', 'cuda_columns', 'cuda_slab_stages', 'triton_block_per_row', 'cuda_registers', 'cuda_async', \
'cuda_cluster']
    """
    if problem.direction == "backward":
        return _backward(problem, card)
    return _forward(problem, "cuda_async", split_bytes=SPLIT_ROW_BYTES, program_bytes=PROGRAM_ROW_BYTES)


def layernorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """As the rule of rmsnorm (`kernelviz best rmsnorm` prints it), but persistent clusters have fixed columns, whose weight
    and bias stay in registers.

    H200: 512 rows of 131,072 bf16 take 15 % less time than by clusters that read them again.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (32_768, 2048), (512, 131_072), (3, 102_693))
    >>> [layernorm(Problem(op="layernorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'triton_block_per_row', 'cuda_columns', 'cuda_cluster']
    """
    if problem.direction == "backward":
        return _backward(problem, card)
    return _forward(problem, "cuda_columns", split_bytes=SPLIT_ROW_BYTES, program_bytes=PROGRAM_ROW_BYTES)


def add_rmsnorm(problem: Problem, card: Card) -> tuple[str, ...]:
    """As the rule of rmsnorm (`kernelviz best rmsnorm` prints it), but forward several blocks a row over 1 MiB and Triton up
    to 64 KiB.

    H200: 160 rows of 2,081,216 bf16 take 943 us by several blocks each and 1,753 by one; 16 of 1,048,576 fp16 42.5 and, by
    persistent clusters, 40.7; 2048 of 32,768 bf16 4 % less time in Triton than by a block each.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 8192), (2048, 32_768), (512, 131_072), (2048, 32_769), (4, 2**20))
    >>> [add_rmsnorm(Problem(op="add_rmsnorm", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'triton_block_per_row', 'cuda_async', 'cuda_cluster', 'cuda_split']
    """
    if problem.direction == "backward":
        return _backward(problem, card)
    return _forward(problem, "cuda_async", split_bytes=SPLIT_SUM_BYTES, program_bytes=PROGRAM_SUM_BYTES)


def _forward(problem: Problem, persistent: str, *, split_bytes: int, program_bytes: int) -> tuple[str, ...]:
    """The rule with these persistent clusters, the longest rows of a cluster and those of a program of Triton.

    >>> problem = Problem(op="rmsnorm", sizes={"m": 2048, "n": 32_768}, dtype="bf16")
    >>> [_forward(problem, "cuda_async", split_bytes=2**20, program_bytes=most)[0] for most in (2**15, 2**16)]
    ['cuda_registers', 'triton_block_per_row']
    """
    m, n, of_row, whole = problem.sizes["m"], problem.sizes["n"], row_bytes(problem), whole_vectors(problem, "n")
    if of_row > split_bytes:
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_registers")
    if known_tile(m, n, dtype_named(problem.dtype).itemsize_bytes) is not None:
        return ("cuda_columns", "triton_known_size", "triton_block_per_row", "cuda_registers", "triton_persistent")
    if not whole and of_row <= SLAB_ROW_BYTES:
        return ("cuda_slab_stages", "cuda_slab", "triton_known_size", "triton_persistent", "cuda_registers")
    if triton_vectorises(n) and SHORT_ROW_BYTES <= of_row <= program_bytes:
        return ("triton_block_per_row", "cuda_registers", "triton_known_size", "triton_persistent", "cuda_columns")
    if of_row <= BLOCK_ROW_BYTES:
        return ("cuda_registers", "cuda_columns", "triton_known_size", "cuda_split", "cuda_slab_stages")
    clusters = (persistent, "cuda_cluster") if whole or of_row > CLUSTER_ROW_BYTES else ("cuda_cluster", persistent)
    return (*clusters, "cuda_split", "cuda_columns", "cuda_registers")


def _backward(problem: Problem, card: Card) -> tuple[str, ...]:
    """The rule of all three backward.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((2**21, 11), (600, 2**22), (3, 12_623), (8192, 8192), (2048, 32_768), (8192, 8195))
    >>> sizes = [{"m": m, "n": n} for m, n in shapes]
    >>> problems = [Problem(op="rmsnorm", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [_backward(problem, H200)[0] for problem in problems]
    ['cuda_slab_stages', 'cuda_split', 'cuda_split', 'triton_persistent', 'cuda_cluster', 'cuda_cluster']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    if of_row <= LONGEST_ROW_BYTES:
        return ("cuda_slab_stages", "triton_persistent", "cuda_split", "cuda_cluster")
    is_few = FEW * m <= card.multiprocessors
    if of_row > (SPLIT_FEW_BACKWARD_ROW_BYTES if is_few else SPLIT_BACKWARD_ROW_BYTES):
        return ("cuda_split", "triton_persistent", "cuda_cluster")
    if triton_vectorises(n) and SHORT_ROW_BYTES <= of_row <= PROGRAM_BACKWARD_ROW_BYTES:
        return ("triton_persistent", "cuda_cluster")
    return ("cuda_cluster", "triton_persistent")
