"""The variant that a user of `cumsum` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

ONE_BLOCK_BYTES = 64 * 1024
"""One tile of the largest block. One SM reads and writes it in about 2 µs, after 1.3 µs of launch and first load; look-back takes
3.7 to 4.0 µs up to 256 KiB on an H200."""


def scan(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 64 KiB, else one pass with decoupled look-back.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [scan(Problem(op="cumsum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (11622, 65536)]
    ['cuda_one_block', 'cuda_look_back']
    """
    if problem.sizes["n"] * dtype_named(problem.dtype).itemsize_bytes <= ONE_BLOCK_BYTES:
        return ("cuda_one_block", "cuda_look_back", "triton_three_kernels")
    return ("cuda_look_back", "triton_three_kernels")
