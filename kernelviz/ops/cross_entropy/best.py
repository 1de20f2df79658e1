"""The variant that a user of a cross entropy gets."""

from __future__ import annotations

from math import gcd

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    TMA_BYTES,
    Card,
    elements_a_multiprocessor,
    row_bytes,
    whole_vectors,
)

PROGRAM_ROWS, PROGRAM_BYTES, BACKWARD_PROGRAM_BYTES = 64, 2**14, 2**12
"""Of a multiprocessor, up to which programs of Triton are chosen. H200: 149 rows of 733 bf16 take 2.1 us so and 2.6 in CUDA C++;
with gradient, 4,517 of 26 fp16 1.87 and 2.55, 49,225 of 9 4.90 and 2.70; backward, 9 of 1,556 fp16 1.37 and 1.75, one of 6,315
2.42 and 1.62."""
THREAD_ROW_BYTES, THREAD_ACCESSES = 64, 3
"""Of a row for a thread: the second with a gradient, whose accesses L2 does not join. H200, with gradient: 473,504 rows of 3 bf16
take 4.3 us so and 5.7 in shared memory, 16,387,637 of 7 335 and 161; backward, 982,968 of 16 fp32 50 and by warps 32."""
SHARED_ROW_BYTES, SHARED_VECTORS_BYTES = 2048, 128
"""Of rows that are no whole vectors, and of any with gradient, which are processed in shared memory. H200: 36,058 rows of 1,654
bytes take 23.1 us so and 26.7 with a block each; with gradient, 4,977,690 of 80 bytes 215 and 381."""
LONG_ROW_BYTES = 2**19
"""Of a row from which on blocks of the whole GPU are faster than a cluster, which has eight: 2 rows of 547 KB take 5.2 us so on
an H200 and 8.4 in clusters, 40 of 1.6 MB 21.0 and 21.1, 32 of 1 MiB 14.3 and 12.6. More rows take 194.5 us in clusters and 202.4
with a block each, 528 of 1.6 MB."""


def cross_entropy(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton for at most 64 rows and 16 KiB (backward 4) a multiprocessor; a thread a row up to 64 bytes (backward three
    accesses); shared memory for unaligned rows up to 2 KiB; else a block a row; forward, a cluster if rows are no more than
    multiprocessors or have 512 KiB, and all blocks of the GPU if both.

    Unaligned rows are no whole 16-byte vectors; an access is the widest of 2 to 16 bytes that begins with each row.

    H200: 23 rows of 33,855,006 bf16 take 592 us in clusters and 3,954 with a block each, 7 of 101,816 5.1 and 14.6, 2048 of
    128,256 118 in both; one of 167,590,671 takes 86 by the whole GPU and 2,403 in a cluster. 171,201 of 7 take 2.36 by a thread
    each and 4.80 in Triton. Backward, one row of 83,241,104 fp32 takes 158 in CUDA C++ and 749 in Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(m, v, direction="forward"):
    ...     return cross_entropy(
    ...         Problem(op="cross_entropy", sizes={"m": m, "v": v}, dtype="bf16", direction=direction), H200
    ...     )[0]
    >>> [best(m, v) for m, v in ((16, 4096), (10**6, 7), (10**6, 91), (4096, 4096), (16, 128_256), (500, 2**22), (2, 2**23))]
    ['triton_known_size', 'cuda_known_length', 'cuda_slab_stages', 'cuda_row', 'cuda_cluster', 'cuda_cluster', 'cuda_split']
    >>> [best(m, v, "backward") for m, v in ((35, 40), (5000, 32), (10**6, 3), (10**6, 7), (10**6, 91), (16, 128_256))]
    ['triton_online', 'triton_known_size', 'cuda_known_length', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_row']
    """
    m, of_row = problem.sizes["m"], row_bytes(problem, "v")
    if short := _short(problem, card):
        return short
    if problem.direction == "backward":
        return ("cuda_row", "triton_known_size", "triton_online", "cuda_slab_stages", "cuda_known_length")
    few, long = m <= card.multiprocessors, of_row >= LONG_ROW_BYTES
    if few and long:
        return ("cuda_split", "cuda_cluster", "cuda_row", "triton_known_size")
    if few or long:
        return ("cuda_cluster", "cuda_row", "cuda_split", "triton_known_size")
    return ("cuda_row", "cuda_cluster", "triton_known_size", "cuda_slab_stages")


def with_grad(problem: Problem, card: Card) -> tuple[str, ...]:
    """Programs of Triton for at most 64 rows and 16 KiB a multiprocessor; a thread a row of at most three accesses; shared memory
    for others up to 128 bytes, and for unaligned ones up to 2 KiB; else all blocks from 512 KiB on for no more rows than
    multiprocessors, and clusters for others, persistent if aligned or no more than multiprocessors.

    An access is the widest of 2 to 16 bytes that begins with each row; unaligned rows are no whole 16-byte vectors.

    H200: 40 rows of 66,760 fp32 take 9.8 us in persistent clusters, and 12.8 in others, 4096 of 50,257 bf16 282 and 206; 3 of
    44,201,385 fp16 220 by the whole GPU and 6,854 in clusters, 44 of 324,938 fp32 46 and 43; 10 rows of 1,181,880 fp32, with a
    block each, take 207, and 70 in torch_compile.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 500), (10**5, 3), (76_709, 15), (2**22, 40), (1024, 128_256), (10, 2**21), (4096, 50_257))
    >>> [with_grad(Problem(op="cross_entropy_with_grad", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['triton_known_size', 'cuda_known_length', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_columns', 'cuda_split', \
'cuda_cluster']
    """
    of_row = row_bytes(problem, "v")
    if short := _short(problem, card):
        return short
    if of_row <= SHARED_VECTORS_BYTES:
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    few = problem.sizes["m"] <= card.multiprocessors
    if of_row >= LONG_ROW_BYTES and few:
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_row")
    if not few and not whole_vectors(problem, "v"):
        return ("cuda_cluster", "cuda_row", "cuda_columns", "cuda_split", "triton_known_size")
    return ("cuda_columns", "cuda_cluster", "cuda_row", "cuda_split", "triton_known_size")


def _short(problem: Problem, card: Card) -> tuple[str, ...]:
    """The variants for few or short rows, or none."""
    of_row, rows = row_bytes(problem, "v"), elements_a_multiprocessor(problem.sizes["m"], card)
    backward = problem.direction == "backward"
    any_size = "triton_online" if backward else "triton_block_per_row"
    if rows <= PROGRAM_ROWS and rows * of_row <= (BACKWARD_PROGRAM_BYTES if backward else PROGRAM_BYTES):
        sizes = (any_size, "triton_known_size") if backward and rows == 1 else ("triton_known_size", any_size)
        return (*sizes, "cuda_known_length", "cuda_row", "cuda_slab_stages")
    has_gradient = backward or problem.op == "cross_entropy_with_grad"
    accesses = of_row // gcd(TMA_BYTES, of_row)
    if of_row <= THREAD_ROW_BYTES and (accesses <= THREAD_ACCESSES or not has_gradient):
        return ("cuda_known_length", "triton_known_size", "cuda_slab_stages", "cuda_row")
    if of_row <= SHARED_ROW_BYTES and not whole_vectors(problem, "v"):
        return ("cuda_slab_stages", "triton_known_size", "cuda_slab", "cuda_known_length", "cuda_row")
    return ()
