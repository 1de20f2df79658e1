"""The variant that a user of `softmax` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_PROGRAM, Card, few_long_rows, many_short_rows, slabs_of_rows, whole_vectors

WARP = 32
SLAB_ROW_BYTES = 512
"""H200: a million rows of 42 bytes take 21 us through a ring of slabs, 26 as slabs and 109 by warps; 200,000 rows of 400 bytes,
which are whole vectors, 67 as slabs and 38 by warps. The backward pass takes rows of twice as many: 100,000 of 666 bytes
take 53 us through a ring, and 63 by programs of Triton."""
LONGEST_BACKWARD_ROW_BYTES = 2**19
"""Both y and dy of a row must fit into a cluster."""


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters with fixed columns forward, clusters backward, and a block a row where there are no clusters;
    several blocks a row for a few rows that no cluster keeps; rows of at most 1024 elements that are no more than the
    multiprocessors by a program of Triton each; many short rows that are no whole 16-byte vectors as pieces of shared memory,
    a few of fewer than 32 elements by persistent programs of Triton, and longer ones backward by a program each.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of a short row. That a
    program each is best for few rows is inferred from `cross_entropy_with_grad`, whose kernels in CUDA C++ have the same tiles.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 7), (200, 7), (100, 7), (4, 2**22))
    >>> [softmax(Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_columns', 'cuda_slab_stages', 'triton_persistent', 'triton_block_per_row', 'cuda_split']
    >>> sizes = [{"m": m, "n": n} for m, n in (*shapes, (2**17, 333), (2**17, 777))]
    >>> [softmax(Problem(op="softmax", sizes=one, dtype="bf16", direction="backward"), H200)[0] for one in sizes]
    ['cuda_cluster', 'cuda_slab_stages', 'cuda_cluster', 'triton_block_per_row', 'cuda_split', 'cuda_slab_stages', \
'triton_block_per_row']
    """
    backward, uneven = problem.direction == "backward", not whole_vectors(problem, "n")
    longest_bytes = SLAB_ROW_BYTES * (2 if backward else 1)
    if uneven and slabs_of_rows(problem, card, longest_bytes=longest_bytes):
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= ONE_PROGRAM:
        return ("triton_block_per_row", "cuda_row")
    if backward:
        if few_long_rows(problem, card, longest_bytes=LONGEST_BACKWARD_ROW_BYTES):
            return ("cuda_split", "cuda_row")
        if uneven and many_short_rows(problem, card) and problem.sizes["n"] > WARP:
            return ("triton_block_per_row", "cuda_row")
        return ("cuda_cluster", "cuda_row")
    if few_long_rows(problem, card):
        return ("cuda_split", "cuda_row")
    if problem.sizes["n"] < WARP and uneven:
        return ("triton_persistent", "cuda_row")
    return ("cuda_columns", "cuda_row")
