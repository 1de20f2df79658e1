"""The variant that a user of `sum` or `mean` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

ONE_BLOCK_BYTES = 96 * 1024
"""One block takes about 1.3 µs and reads 60 to 70 bytes per ns; at most 64 bytes per cycle reach an SM from L2. The kernels with
a second stage take 3.2 to 3.5 µs up to 256 KiB on an H200. So they break even at about 128 KiB, and the limit is below that."""


def reduction(problem: Problem, card: Card) -> tuple[str, ...]:
    """One block up to 96 KiB, else the persistent kernel, which is within 3 % of our fastest in each recorded case.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [reduction(Problem(op="sum", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (949, 24576, 24577)]
    ['cuda_one_block', 'cuda_one_block', 'cuda_persistent']
    """
    if problem.sizes["n"] * dtype_named(problem.dtype).itemsize_bytes <= ONE_BLOCK_BYTES:
        return ("cuda_one_block", "cuda_persistent", "triton_two_pass")
    return ("cuda_persistent", "triton_two_pass")
