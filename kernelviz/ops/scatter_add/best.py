"""The variant that a user of `scatter_add` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

WARP = 32


def segments(problem: Problem, card: Card) -> tuple[str, ...]:
    """One sum for each row of the table; atomic additions for rows of fewer than 32 elements.

    Sorting the ids takes as long for a short row as for a long one, and a row of fewer elements than a warp has threads leaves
    threads idle.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"v": 8192, "t": 262144}
    >>> [segments(Problem(op="scatter_add", sizes={**sizes, "d": d}, dtype="bf16"), H200)[0] for d in (1024, 2)]
    ['cuda_segments', 'cuda_atomics_vec16']
    """
    if problem.sizes["d"] < WARP:
        return ("cuda_atomics_vec16", "triton_atomics")
    return ("cuda_segments", "triton_segments")
