"""The variant that a user of `softmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import CLUSTER_ROW_BYTES, ONE_PROGRAM, Card, few_slabs, row_bytes, whole_vectors

SHORT_ROW_BYTES, UNEVEN_ROW_BYTES = 128, 1024
"""Of rows of whole 16-byte vectors and of others, up to which a block has a piece of many rows in its shared memory."""
LONGEST_ROW_BYTES, LONGEST_BACKWARD_ROW_BYTES = 9 * CLUSTER_ROW_BYTES // 4, CLUSTER_ROW_BYTES
"""Of a row that a cluster holds, of one tensor forward and of two backward (`kernels/row_tiles.py`)."""


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Several blocks share a row that no cluster holds; Triton compiled for the size for rows of at most 1024 elements, together
    at most 16 KiB a multiprocessor; slabs for others up to 128 bytes, or 1 KiB if not whole 16-byte vectors; else clusters,
    forward persistent for whole vectors.

    A slab is a piece of shared memory with several rows. In CUDA C++ a row that begins within a vector takes one vector more than
    it fills, which is much of a short row.

    H200: 2,048 rows of 128 bf16 take 1.72 us in Triton for the size and 1.86 by clusters, backward 1,985 of 17 fp32 1.61 and, as
    slabs, 2.58. A million rows of 42 bytes take 21 us through a ring of slabs and 109 by a warp each. 74 rows of 9 MB take 577 us
    by several blocks each and 825 by a cluster each; 1024 of 131,072 bf16 134 by persistent clusters and 142 by others; 663 of
    50,044 fp16, which begin within vectors, 43.6 and 35.2.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((4, 2**22), (100, 7), (2000, 7), (2**20, 7), (2**19, 24), (8192, 8192))
    >>> [softmax(Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_split', 'triton_known_size', 'triton_known_size', 'cuda_slab_stages', 'cuda_slab_stages', 'cuda_columns']
    >>> sizes = {"m": 8192, "n": 8192}
    >>> softmax(Problem(op="softmax", sizes=sizes, dtype="bf16", direction="backward"), H200)[0]
    'cuda_cluster'
    """
    n, of_row, whole = problem.sizes["n"], row_bytes(problem), whole_vectors(problem, "n")
    backward = problem.direction == "backward"
    if of_row > (LONGEST_BACKWARD_ROW_BYTES if backward else LONGEST_ROW_BYTES):
        return ("cuda_split", "cuda_columns", "cuda_cluster", "cuda_row")
    if n <= ONE_PROGRAM and few_slabs(problem, card):
        return ("triton_known_size", "triton_block_per_row", "triton_online", "cuda_slab_stages", "cuda_cluster")
    if of_row <= (SHORT_ROW_BYTES if whole else UNEVEN_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "triton_known_size", "cuda_cluster")
    clusters = ("cuda_columns", "cuda_cluster") if whole and not backward else ("cuda_cluster", "cuda_columns")
    return (*clusters, "cuda_row", "triton_known_size", "cuda_slab_stages")
